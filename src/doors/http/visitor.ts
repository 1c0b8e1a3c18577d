/** Who sends a request, and what its address says that it is to see. */
import type { Toolset } from '../../access/toolset.ts';
import type { Task } from '../../config/task.ts';
import type { Pass } from '../pass.ts';

export interface Visitor {
  /** By whose name policies and limits are looked up. */
  readonly agent: string;
  /** Whom sessions, streams, parked calls and tasks belong to: several people may come as one agent. */
  readonly principal: string;
  /** Whether it may see what is about the whole gateway. */
  readonly isAdmin: boolean;
  /** What says who it is. */
  readonly via: 'nothing' | 'token' | 'jwt' | 'header';
  readonly pass: Pass;
  readonly toolset: Toolset | null;
  readonly namespace: string | null;
  readonly task: Task | null;
}
