/** The temporary grants of agents, in addition to what their policy allows. */
import type { Grant } from '../../access/permission.ts';
import { isObject } from '../../base/objects.ts';
import type { Replica } from '../../store/shared/replica.ts';

export interface Grants {
  of(agent: string): readonly Grant[];
  /** `tool` has the form `server.tool`. */
  add(agent: string, tool: string, until: number): void;
  close(): void;
}

const NONE: readonly Grant[] = [];

/** `changed` is called when the grants of an agent have changed. */
export function createGrants(changed: (agent: string) => void, replica: Replica | null = null): Grants {
  const byAgent = new Map<string, readonly Grant[]>();
  const timers = new Set<NodeJS.Timeout>();

  function expire(agent: string): void {
    const left = (byAgent.get(agent) ?? NONE).filter(({ until }) => until > Date.now());
    if (left.length === 0) byAgent.delete(agent);
    else byAgent.set(agent, left);
    changed(agent);
  }

  const shared = replica?.map('grants', (_, value) => {
    if (!isObject(value)) return;
    const { agent, tool, until } = value;
    if (Number(until) > Date.now()) add(String(agent), String(tool), Number(until));
  });

  function add(agent: string, tool: string, until: number): void {
    const others = (byAgent.get(agent) ?? NONE).filter((grant) => grant.tool !== tool);
    byAgent.set(agent, [...others, { tool, until }]);
    const timer: NodeJS.Timeout = setTimeout(
      () => {
        timers.delete(timer);
        expire(agent);
        shared?.set(JSON.stringify([agent, tool]), null).catch(() => {});
      },
      Math.max(0, until - Date.now()) + 1,
    ).unref();
    timers.add(timer);
    changed(agent);
  }

  return {
    of: (agent) => byAgent.get(agent) ?? NONE,
    add(agent, tool, until) {
      add(agent, tool, until);
      shared?.set(JSON.stringify([agent, tool]), { agent, tool, until }).catch(() => {});
    },
    close() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
