/** Who a client is, and what it is to see: the same for every door. */
import type { Toolset } from '../access/toolset.ts';
import type { CallerOptions, DoorKind } from '../calls/caller.ts';
import type { Task } from '../config/task.ts';

export interface Newcomer {
  readonly agent: string;
  /** Default: the agent. */
  readonly principal?: string;
  readonly door?: DoorKind;
  readonly selection: 'own' | 'default';
  /** The only tools that the client is to see; null where it has the choice. */
  readonly toolset?: Toolset | null;
  /** The only namespace that it is to see; null for all of them. */
  readonly namespace?: string | null;
  /** What it works on; null where it does not say. */
  readonly task?: Task | null;
}

type Presented = Pick<CallerOptions, 'agent' | 'principal' | 'door' | 'selection' | 'toolset' | 'namespace' | 'task'>;

/** The same for the gateway. */
export function present({ agent, principal = agent, door, selection, toolset, namespace, task }: Newcomer): Presented {
  return {
    agent,
    principal,
    ...(door !== undefined && { door }),
    selection,
    ...(toolset != null && { toolset }),
    ...(namespace != null && { namespace }),
    ...(task != null && { task }),
  };
}
