/**
 * The valid tokens and their agents: BEARER_TOKEN, the tokens of the configuration, and those of `toolgate agents`,
 * whose file is watched. Only their hashes are kept.
 */
import { messageOf } from '../../../base/errors.ts';
import { sha256 } from '../../../base/hash.ts';
import { isSameValue } from '../../../base/objects.ts';
import { watchFile } from '../../../base/watch-file.ts';
import type { Credential } from '../../../calls/identity.ts';
import type { Task } from '../../../config/task.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { type Agent, openAgentStore, writeAgents } from '../../../store/agents.ts';

export interface KnownToken {
  readonly agent: string;
  /** Whether it is BEARER_TOKEN, which names no agent. */
  readonly isCommon: boolean;
  /** The only tasks that its holder may work on; null for any. */
  readonly tasks: readonly Task[] | null;
  readonly credential: Credential;
}

export interface Tokens {
  /** Whether clients need a token: tokens exist or have existed, or there is an agents file, which may have some. */
  readonly areRequired: boolean;
  find(token: string): KnownToken | undefined;
  /** Reads the agents file again. Resolves to whether it has changed; rejects if it is malformed. */
  read(): Promise<boolean>;
  /** Applies the current configuration, and the file as it was last read. Tokens that were removed are revoked. */
  rebuild(): void;
  /** Resolves when a change has been requested for an edit of the agents file that is on the disk now. */
  settled(): Promise<void>;
  close(): void;
}

/** `common` is the value of BEARER_TOKEN. Rejects if the agents file is malformed. */
export async function openTokens(gateway: Gateway, common: string | null): Promise<Tokens> {
  const store = openAgentStore(gateway.config.dataDir);
  // Watched before it is read, so that no change in between is missed.
  const watcher = watchFile(store.file, () => void gateway.change({ tokens: true }), true);
  let isStarting = true;
  let saved = await store.read().catch((error: unknown) => {
    watcher.close();
    throw error;
  });
  // Replicas with data folders of their own have the same agents: an edit of one file reaches the others.
  const shared = gateway.replica?.map('agents', (_, agents) => {
    if (agents === null || isSameValue(agents, saved)) return;
    writeAgents(gateway.config.dataDir, agents).then(
      () => void gateway.change({ tokens: true }),
      (error: unknown) =>
        gateway.events.emit('note', { source: 'agents', message: `agents of another replica: ${messageOf(error)}` }),
    );
  });
  await gateway.replica?.loaded();
  share();

  function share(): void {
    if (shared === undefined || saved === null || isSameValue(shared.get('all'), saved)) return;
    // When it starts, a replica takes what the others have.
    if (isStarting && shared.get('all') !== undefined) return;
    shared.set('all', saved).catch((error: unknown) => {
      const message = `other replicas do not know of changed agents: ${messageOf(error)}`;
      gateway.events.emit('note', { source: 'agents', message });
    });
  }

  /** The agents of the last rebuild. */
  let applied = saved;
  let known = new Map<string, KnownToken>();
  // A door that has required a token stays closed when the last token is revoked. Only a restart opens it.
  let areRequired = false;
  rebuild();

  async function read(): Promise<boolean> {
    const before = saved;
    saved = await store.read();
    isStarting = false;
    share();
    return !isSameValue(saved, before);
  }

  function rebuild(): void {
    const next = new Map<string, KnownToken>();
    const { held } = gateway.config;
    const add = (hash: string, expires: number | null, token: Omit<KnownToken, 'credential'>) => {
      if (next.has(hash) || (!token.isCommon && held?.tokens.has(hash) === true)) return;
      const old = known.get(hash);
      const { agent, isCommon, tasks } = token;
      const isSame = old?.agent === agent && old.isCommon === isCommon && isSameValue(old.tasks, tasks);
      if (isSame) old.credential.expires = expires;
      next.set(hash, isSame ? old : { ...token, credential: { expires, revocation: { isRevoked: false } } });
    };
    if (common !== null) add(sha256(common), null, { agent: 'default', isCommon: true, tasks: null });
    for (const { name, tokens, tasks } of gateway.config.agents)
      for (const hash of tokens) add(hash, null, { agent: name, isCommon: false, tasks });
    for (const { name, tokens, tasks = null } of saved ?? [])
      for (const { sha256: hash, expires } of tokens)
        add(hash, expires === null ? null : Date.parse(expires), { agent: name, isCommon: false, tasks });
    for (const [hash, old] of known) if (next.get(hash) !== old) old.credential.revocation.isRevoked = true;
    known = next;
    areRequired ||= known.size > 0 || saved !== null || (held?.tokens.size ?? 0) > 0;
    reportChanges(applied ?? [], saved ?? []);
    applied = saved;
  }

  function reportChanges(before: readonly Agent[], after: readonly Agent[]): void {
    // The file does not say who changed it.
    const report = (act: string, detail: string) => gateway.events.emit('admin', { act, agent: '', detail });
    const earlier = new Map(before.map((agent) => [agent.name, agent]));
    for (const agent of after) {
      const old = earlier.get(agent.name);
      earlier.delete(agent.name);
      if (old === undefined) report('agent_added', agent.name);
      else if (!isSameValue(old.tokens, agent.tokens)) report('agent_rotated', agent.name);
    }
    for (const name of earlier.keys()) report('agent_revoked', name);
  }

  return {
    get areRequired() {
      return areRequired;
    },
    find: (token) => known.get(sha256(token)),
    read,
    rebuild,
    settled: () => watcher.settled(),
    close: () => watcher.close(),
  };
}
