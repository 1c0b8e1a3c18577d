/** Who comes without a session: known again by who it is, and by the toolset, namespace or task that its address names. */
import type { Toolset } from '../../access/toolset.ts';
import type { Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import { taskKey } from '../../plans/narrow-to-task.ts';

/** What is kept for such a client. */
export interface SessionlessClient {
  /** Whether nothing would be lost but what it has switched on. */
  readonly isIdle: boolean;
  close(): void;
}

export interface SessionlessClients<R extends SessionlessClient> {
  of(identity: Identity, scope: Scope): R;
  readonly all: Iterable<R>;
  readonly size: number;
  /** Forgets those that are idle and have not come for longer than they are remembered. */
  sweep(now: number): void;
}

/** How many are remembered, and for how many milliseconds; for ever where that is not said. */
export interface Memory {
  readonly most?: number;
  readonly ttl?: number;
}

interface Known<R> {
  readonly client: R;
  readonly toolset: Toolset | null;
  /** Whether it came again since the last time that room was made. */
  wasUsed: boolean;
  lastUse: number;
}

function keyOf({ principal, agent }: Identity, { toolset, namespace, task }: Scope): string {
  return JSON.stringify([principal, agent, toolset?.name, namespace, task === null ? null : taskKey(task)]);
}

/** Tokens name any number of principals; beyond this many, those who have not come for longest are forgotten. */
const MOST = 4_096;

/** Lists may differ by agent and by nothing else, so what an agent has switched on is its own, whatever it comes through. */
export function createSessionlessClients<R extends SessionlessClient>(
  create: (identity: Identity, scope: Scope) => R,
  { most = MOST, ttl = Number.POSITIVE_INFINITY }: Memory = {},
): SessionlessClients<R> {
  const sessionless = new Map<string, Known<R>>();

  /** Forgets some that are idle: first those that came once, or not since the last time, then any. Not just one, which takes as long. */
  function makeRoom(): void {
    for (const isLast of [false, true]) {
      for (const [key, known] of sessionless) {
        if (sessionless.size < most * 0.75) return;
        if (known.client.isIdle && (isLast || !known.wasUsed)) forget(key, known);
        else known.wasUsed = false;
      }
    }
  }

  /** Nobody looks at it where all are remembered, and then nobody asks for the time. */
  function lastUse(): number {
    return ttl === Number.POSITIVE_INFINITY ? 0 : Date.now();
  }

  function forget(key: string, { client }: Known<R>): void {
    sessionless.delete(key);
    client.close();
  }

  function join(key: string, identity: Identity, scope: Scope): R {
    if (sessionless.size >= most) makeRoom();
    const client = create(identity, scope);
    sessionless.set(key, { client, toolset: scope.toolset, wasUsed: false, lastUse: lastUse() });
    return client;
  }

  return {
    of(identity, scope) {
      const { principal, agent } = identity;
      const { toolset, namespace, task } = scope;
      // A principal comes as another agent when the configuration says so.
      const isPlain = toolset === null && namespace === null && task === null && principal === agent;
      const key = isPlain ? agent : keyOf(identity, scope);
      const known = sessionless.get(key);
      if (known === undefined) return join(key, identity, scope);
      known.wasUsed = true;
      known.lastUse = lastUse();
      if (toolset === null || JSON.stringify(known.toolset) === JSON.stringify(toolset)) return known.client;
      // One that was changed since makes another of them.
      forget(key, known);
      return join(key, identity, scope);
    },
    get all() {
      return [...sessionless.values()].map(({ client }) => client);
    },
    get size() {
      return sessionless.size;
    },
    sweep(now) {
      if (ttl === Number.POSITIVE_INFINITY) return;
      for (const [key, known] of sessionless) if (known.client.isIdle && now - known.lastUse > ttl) forget(key, known);
    },
  };
}
