/**
 * The tokens that are good here and whose they are: that of BEARER_TOKEN, those of the configuration, and those of
 * `toolgate agents`, whose file is watched. They are known by their hashes only.
 */

import { isSameValue } from '../../../base/same-value.ts';
import { sha256 } from '../../../base/sha256.ts';
import { watchFile } from '../../../base/watch-file.ts';
import type { Credential } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { type Agent, openAgentStore } from '../../../store/agents.ts';

export interface KnownToken {
  readonly agent: string;
  /** Whether it is that of BEARER_TOKEN, which has no name of its own. */
  readonly isCommon: boolean;
  readonly credential: Credential;
}

export interface Tokens {
  /** Whether there are any, or were, or a file that may have some: then nobody gets in without. */
  readonly areWanted: boolean;
  find(token: string): KnownToken | undefined;
  /** Reads the file of the agents again. Resolves to whether it differs; rejects where it makes no sense. */
  read(): Promise<boolean>;
  /** Takes up the configuration in force and the file as it was read. Tokens that are gone are revoked. */
  rebuild(): void;
  close(): void;
}

/** Rejects where the file of the agents makes no sense. */
export async function openTokens(gateway: Gateway, common: string | null): Promise<Tokens> {
  const store = openAgentStore(gateway.config.dataDir);
  // Watched before it is read, so that nothing is missed in between.
  const watcher = watchFile(store.file, () => void gateway.change({ tokens: true }), true);
  let saved = await store.read().catch((error: unknown) => {
    watcher.close();
    throw error;
  });
  /** Those of the last rebuild. */
  let inForce = saved;
  let known = new Map<string, KnownToken>();
  // What was once closed does not open because the last token is gone: only a new start decides that.
  let areWanted = false;
  rebuild();

  async function read(): Promise<boolean> {
    const before = saved;
    saved = await store.read();
    return !isSameValue(saved, before);
  }

  function rebuild(): void {
    const next = new Map<string, KnownToken>();
    const add = (hash: string, agent: string, expires: number | null, isCommon: boolean) => {
      if (next.has(hash)) return;
      const old = known.get(hash);
      const isSame = old?.agent === agent && old.isCommon === isCommon;
      if (isSame) old.credential.expires = expires;
      next.set(hash, isSame ? old : { agent, isCommon, credential: { expires, revocation: { isRevoked: false } } });
    };
    if (common !== null) add(sha256(common), 'default', null, true);
    for (const { name, tokens } of gateway.config.agents) for (const hash of tokens) add(hash, name, null, false);
    for (const { name, tokens } of saved ?? [])
      for (const token of tokens)
        add(token.sha256, name, token.expires === null ? null : Date.parse(token.expires), false);
    for (const [hash, old] of known) if (next.get(hash) !== old) old.credential.revocation.isRevoked = true;
    known = next;
    areWanted ||= known.size > 0 || saved !== null;
    tellOf(inForce ?? [], saved ?? []);
    inForce = saved;
  }

  function tellOf(before: readonly Agent[], after: readonly Agent[]): void {
    // Whoever changed the file did not say who they are.
    const tell = (act: string, detail: string) => gateway.events.emit('admin', { act, agent: '', detail });
    const earlier = new Map(before.map((agent) => [agent.name, agent]));
    for (const agent of after) {
      const old = earlier.get(agent.name);
      earlier.delete(agent.name);
      if (old === undefined) tell('agent_added', agent.name);
      else if (JSON.stringify(old.tokens) !== JSON.stringify(agent.tokens)) tell('agent_rotated', agent.name);
    }
    for (const name of earlier.keys()) tell('agent_revoked', name);
  }

  return {
    get areWanted() {
      return areWanted;
    },
    find: (token) => known.get(sha256(token)),
    read,
    rebuild,
    close: () => watcher.close(),
  };
}
