/**
 * Agents that were given tokens: one file in the data folder. It has the hashes of tokens, never a token. Several
 * processes may change it at the same time, and a running gateway watches it.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { jsonFile } from '../base/json-file.ts';
import { toObject } from '../base/objects.ts';
import { AGENT_NAME } from '../config/agents.ts';
import { type Task, tasksFromValue } from '../config/task.ts';

export interface AgentToken {
  readonly sha256: string;
  readonly created: string;
  /** As ISO 8601; null if it never expires. */
  readonly expires: string | null;
}

/** An agent that has tokens. */
export interface Agent {
  readonly name: string;
  readonly description: string;
  readonly created: string;
  readonly tokens: readonly AgentToken[];
  /** The only tasks that clients with these tokens may work on; absent for any. */
  readonly tasks?: readonly Task[];
}

/** A new token. It is returned once and stored nowhere. */
export interface NewToken {
  readonly name: string;
  readonly token: string;
  readonly expires: string | null;
}

/** The agents of `toolgate agents` and the hashes of their tokens. */
export interface AgentStore {
  readonly file: string;
  /** Null if there is no file. Throws if it cannot be understood. */
  read(): Promise<readonly Agent[] | null>;
  /** `lifetime` is in milliseconds; null for a token that never expires. */
  add(name: string, description: string, lifetime: number | null, tasks?: readonly Task[]): Promise<NewToken>;
  /** Gives the agent another token; the present ones stay valid for `grace` milliseconds. */
  rotate(name: string, grace: number, lifetime: number | null): Promise<NewToken>;
  /** Removes the agent with all its tokens. False if there is no such agent. */
  revoke(name: string): Promise<boolean>;
}

const MARK = 'tg_';

/** What the holder of the operator key is called. No admin may be called so: the audit would not tell them apart. */
export const OPERATOR = 'operator';

/** The store of agents in the data folder of a configuration (`config.dataDir`). */
export function openAgentStore(dataDir: string): AgentStore {
  return openStore(dataDir, { file: 'agents.json', noun: 'agent', command: 'toolgate agents' });
}

/** Those who may use the dashboard and its API with a token of their own. They are no agents. */
export function openAdminStore(dataDir: string): AgentStore {
  return openStore(dataDir, { file: 'admins.json', noun: 'admin', command: 'toolgate dashboard' });
}

/** How the tokens of a store are kept and called. */
interface TokenWords {
  readonly file: string;
  readonly noun: 'agent' | 'admin';
  readonly command: string;
}

function openStore(dataDir: string, { file: name, noun, command }: TokenWords): AgentStore {
  const file = jsonFile(join(dataDir, name), `a list of ${noun}s`, readAgents);

  /** Saves what `make` returns; null leaves the agents as they are. */
  const change = (make: (agents: readonly Agent[]) => readonly Agent[] | null) =>
    file.change((known) => {
      const agents = make(known?.agents ?? []);
      return agents === null ? null : { agents };
    });

  return {
    file: file.path,
    read: async () => (await file.read())?.agents ?? null,
    async add(name, description, lifetime, tasks) {
      if (!AGENT_NAME.test(name))
        throw new GatewayError(
          'usage',
          `"${name}" is not a valid name for an ${noun}: use at most 64 letters, digits, "_", ".", "@", ":" and "-", and begin with a letter or digit.`,
        );
      if (noun === 'admin' && name === OPERATOR)
        throw new GatewayError('usage', `"${OPERATOR}" stands for the operator key. Choose another name.`);
      const { token, ...made } = makeToken(lifetime);
      await change((agents) => {
        if (agents.some((agent) => agent.name === name))
          throw new GatewayError(
            'usage',
            `There is an ${noun} "${name}" already. Give it another token with ${command} rotate ${name}, or choose another name.`,
          );
        const bound = tasks === undefined ? {} : { tasks };
        return [...agents, { name, description, created: made.created, tokens: [made], ...bound }];
      });
      return { name, token, expires: made.expires };
    },
    async rotate(name, grace, lifetime) {
      const { token, ...made } = makeToken(lifetime);
      await change((agents) => {
        if (!agents.some((agent) => agent.name === name)) throw agentUnknown(name, agents);
        return agents.map((agent) =>
          agent.name === name ? { ...agent, tokens: [made, ...draining(agent.tokens, grace)] } : agent,
        );
      });
      return { name, token, expires: made.expires };
    },
    async revoke(name) {
      let found = false;
      await change((agents) => {
        found = agents.some((agent) => agent.name === name);
        return found ? agents.filter((agent) => agent.name !== name) : null;
      });
      return found;
    },
  };
}

/** Makes the file of a replica say what the others have. */
export async function writeAgents(dataDir: string, agents: unknown): Promise<void> {
  const read = readAgents({ agents });
  await jsonFile(join(dataDir, 'agents.json'), 'a list of agents', readAgents).change(() => read);
}

function makeToken(lifetime: number | null): AgentToken & { readonly token: string } {
  const now = Date.now();
  const token = MARK + randomBytes(32).toString('base64url');
  const expires = lifetime === null ? null : new Date(now + lifetime).toISOString();
  return { token, sha256: sha256(token), created: new Date(now).toISOString(), expires };
}

/** The tokens that are still valid, to expire after `grace` milliseconds at the latest. */
function draining(tokens: readonly AgentToken[], grace: number): AgentToken[] {
  const end = new Date(Date.now() + grace).toISOString();
  const now = new Date().toISOString();
  return tokens
    .map((token) => ({ ...token, expires: token.expires !== null && token.expires < end ? token.expires : end }))
    .filter(({ expires }) => expires > now);
}

export function agentUnknown(name: string, agents: readonly { readonly name: string }[]): GatewayError {
  const names = agents.map((agent) => `"${agent.name}"`).join(', ');
  const others = names === '' ? 'There are none; make one with toolgate agents add NAME.' : `There are ${names}.`;
  return new GatewayError('usage', `toolgate agents has no agent "${name}". ${others}`);
}

function readAgents(value: unknown): { readonly agents: readonly Agent[] } {
  const { agents } = toObject(value);
  if (!Array.isArray(agents)) throw new Error('"agents" must be a list');
  const read = agents.map(readAgent);
  if (new Set(read.map(({ name }) => name)).size < read.length) throw new Error('two agents have the same name');
  return { agents: read };
}

function readAgent(value: unknown): Agent {
  const { name, description, created, tokens, tasks } = toObject(value);
  if (typeof name !== 'string' || !AGENT_NAME.test(name)) throw new Error('an agent has no valid "name"');
  if (!Array.isArray(tokens)) throw new Error(`the agent "${name}" has no list "tokens"`);
  return {
    name,
    description: typeof description === 'string' ? description : '',
    created: typeof created === 'string' ? created : '',
    tokens: tokens.map((token) => readToken(token, name)),
    // A task that cannot be read is refused, because ignoring it would open more.
    ...(tasks !== undefined && { tasks: tasksFromValue(tasks, `The task of the agent "${name}"`) ?? [] }),
  };
}

/** Refuses an expiry that cannot be read, because ignoring it would make the token valid forever. */
function readToken(value: unknown, name: string): AgentToken {
  const { sha256: hash, created, expires } = toObject(value);
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash))
    throw new Error(`a token of the agent "${name}" has no "sha256"`);
  if (expires !== null && (typeof expires !== 'string' || Number.isNaN(Date.parse(expires))))
    throw new Error(`a token of the agent "${name}" has an "expires" that is not a time`);
  return {
    sha256: hash,
    created: typeof created === 'string' ? created : '',
    expires: expires === null ? null : new Date(expires as string).toISOString(),
  };
}
