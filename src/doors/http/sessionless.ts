/**
 * Clients without a session. They are recognized by their identity, by the scope that their requests name, and by the id
 * that they send, if they do.
 */
import type { TokenClaims } from '../../access/circumstances.ts';
import { canonicalJson, sha256 } from '../../base/hash.ts';
import { memo } from '../../base/memo.ts';
import type { Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import { taskKey } from '../../plans/narrow-to-task.ts';

/** The state kept for a client. */
export interface SessionlessClient {
  /** Whether forgetting it would lose only its selection. */
  readonly isIdle: boolean;
  close(): void;
}

export interface SessionlessClients<R extends SessionlessClient> {
  of(identity: Identity, scope: Scope, clientId?: string | null): R;
  readonly all: Iterable<R>;
  readonly size: number;
  /** Forgets idle clients whose last request is older than `ttl`. */
  sweep(now: number): void;
}

/** How many clients are remembered, and for how many milliseconds. Default: forever. */
export interface Memory {
  readonly most?: number;
  readonly ttl?: number;
}

interface RememberedClient<R> {
  readonly client: R;
  /** Whether it has sent another request since the last time that room was made. */
  wasUsed: boolean;
  lastUse: number;
}

function keyOf(identity: Identity, { toolset, namespace, task }: Scope, clientId: string | null): string {
  const { principal, agent, claims } = identity;
  const said = claims === null ? null : hashOf(claims);
  const inside = task === null ? null : taskKey(task);
  return JSON.stringify([principal, agent, said, toolset?.name, namespace, inside, clientId]);
}

/** Tokens of one principal that say different things are told apart: policies may decide by it. */
const hashOf = memo((claims: TokenClaims) => sha256(canonicalJson(claims)));

/** Tokens can name any number of principals. Beyond this many clients, some that were not used lately are forgotten. */
const MOST = 4_096;

/** Without sessions, lists may differ only by what a request says, so the agent owns the selection, or its client. */
export function createSessionlessClients<R extends SessionlessClient>(
  create: (identity: Identity, scope: Scope, clientId: string | null) => R,
  { most = MOST, ttl = Number.POSITIVE_INFINITY }: Memory = {},
): SessionlessClients<R> {
  const sessionless = new Map<string, RememberedClient<R>>();

  /**
   * Forgets a quarter of the clients at a time, because finding a single one to forget takes just as long. Idle clients
   * that sent no other request go first, then the other idle ones.
   */
  function makeRoom(): void {
    for (const isLast of [false, true]) {
      for (const [key, known] of sessionless) {
        if (sessionless.size < most * 0.75) return;
        if (known.client.isIdle && (isLast || !known.wasUsed)) forget(key, known);
        else known.wasUsed = false;
      }
    }
  }

  /** Reading the clock takes time, so it is skipped if there is no `ttl` to check. */
  function lastUse(): number {
    return ttl === Number.POSITIVE_INFINITY ? 0 : Date.now();
  }

  function forget(key: string, { client }: RememberedClient<R>): void {
    sessionless.delete(key);
    client.close();
  }

  function join(key: string, identity: Identity, scope: Scope, clientId: string | null): R {
    if (sessionless.size >= most) makeRoom();
    const client = create(identity, scope, clientId);
    sessionless.set(key, { client, wasUsed: false, lastUse: lastUse() });
    return client;
  }

  return {
    of(identity, scope, clientId = null) {
      const { principal, agent, claims } = identity;
      const { toolset, namespace, task } = scope;
      // A principal's agent can change with the configuration, so both are part of the key.
      const isPlain = toolset === null && namespace === null && task === null && principal === agent && claims === null;
      const key = isPlain && clientId === null ? agent : keyOf(identity, scope, clientId);
      const known = sessionless.get(key);
      if (known === undefined) return join(key, identity, scope, clientId);
      known.wasUsed = true;
      known.lastUse = lastUse();
      return known.client;
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
