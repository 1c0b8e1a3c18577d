/**
 * Agents that were given tokens: one file in the data folder, with hashes and never a token. Several processes may change it
 * at the same time, and a running gateway watches it. One that makes no sense is reported and never overwritten.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { withLock } from '../base/lock.ts';
import { sha256 } from '../config/identity.ts';
import { AGENT_NAME } from '../config/identity-schema.ts';

export interface AgentToken {
  readonly sha256: string;
  readonly created: string;
  /** A time in the form of ISO 8601; null for none. */
  readonly expires: string | null;
}

/** An agent that has tokens. */
export interface Agent {
  readonly name: string;
  readonly description: string;
  readonly created: string;
  readonly tokens: readonly AgentToken[];
}

/** A token that was just made. It is shown to nobody but whoever asked for it, and kept nowhere. */
export interface NewToken {
  readonly name: string;
  readonly token: string;
  readonly expires: string | null;
}

/** The agents and their tokens, as `toolgate agents` keeps them. Tokens are kept as hashes. */
export interface AgentStore {
  readonly file: string;
  /** Null where there is no file. Throws where it makes no sense. */
  read(): Promise<readonly Agent[] | null>;
  /** `lifetime` in milliseconds; null for a token that does not run out. */
  add(name: string, description: string, lifetime: number | null): Promise<NewToken>;
  /** Another token for the agent; those it has stay good for `grace` milliseconds. */
  rotate(name: string, grace: number, lifetime: number | null): Promise<NewToken>;
  /** Takes all tokens back. False where there is no such agent. */
  revoke(name: string): Promise<boolean>;
}

const MARK = 'tg_';

/** The store of agents in the data folder of a configuration (`config.dataDir`). */
export function openAgentStore(dataDir: string): AgentStore {
  const file = join(dataDir, 'agents.json');

  async function read(): Promise<readonly Agent[] | null> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
      throw damaged(file, error.message);
    });
    if (text === null) return null;
    try {
      return readAgents(JSON.parse(text));
    } catch (error) {
      throw damaged(file, messageOf(error));
    }
  }

  /** Saves what `change` makes of the agents; null leaves them as they are. */
  function change(make: (agents: readonly Agent[]) => readonly Agent[] | null): Promise<void> {
    return withLock(file, async () => {
      const next = make((await read()) ?? []);
      if (next !== null) await replaceFile(file, print(next));
    });
  }

  return {
    file,
    read,
    async add(name, description, lifetime) {
      if (!AGENT_NAME.test(name))
        throw new GatewayError(
          'usage',
          `"${name}" is no name for an agent: it has at most 64 letters, digits and "_", ".", "@", ":", "-", and begins with a letter or digit.`,
        );
      const { token, ...made } = makeToken(lifetime);
      await change((agents) => {
        if (agents.some((agent) => agent.name === name))
          throw new GatewayError(
            'usage',
            `There is an agent "${name}" already. Give it another token with toolgate agents rotate ${name}, or choose another name.`,
          );
        return [...agents, { name, description, created: made.created, tokens: [made] }];
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

function makeToken(lifetime: number | null): AgentToken & { readonly token: string } {
  const now = Date.now();
  const token = MARK + randomBytes(32).toString('base64url');
  const expires = lifetime === null ? null : new Date(now + lifetime).toISOString();
  return { token, sha256: sha256(token), created: new Date(now).toISOString(), expires };
}

/** Tokens that will soon be no longer good, and none that are not. */
function draining(tokens: readonly AgentToken[], grace: number): AgentToken[] {
  const end = new Date(Date.now() + grace).toISOString();
  const now = new Date().toISOString();
  return tokens
    .map((token) => ({ ...token, expires: token.expires !== null && token.expires < end ? token.expires : end }))
    .filter(({ expires }) => expires > now);
}

export function agentUnknown(name: string, agents: readonly { readonly name: string }[]): GatewayError {
  const names = agents.map((agent) => `"${agent.name}"`).join(', ');
  const there = names === '' ? 'There are none; make one with toolgate agents add NAME.' : `There are ${names}.`;
  return new GatewayError('usage', `toolgate agents has no agent "${name}". ${there}`);
}

function damaged(file: string, why: string): GatewayError {
  return new GatewayError('config_invalid', `${file} is not a list of agents (${why}). Correct or remove it.`);
}

function print(agents: readonly Agent[]): string {
  return `${JSON.stringify({ agents }, null, 2)}\n`;
}

function readAgents(value: unknown): Agent[] {
  const { agents } = (value ?? {}) as { agents?: unknown };
  if (!Array.isArray(agents)) throw new Error('"agents" must be a list');
  const read = agents.map(readAgent);
  if (new Set(read.map(({ name }) => name)).size < read.length) throw new Error('an agent is in it twice');
  return read;
}

function readAgent(value: unknown): Agent {
  const { name, description, created, tokens } = (value ?? {}) as Record<string, unknown>;
  if (typeof name !== 'string' || !AGENT_NAME.test(name))
    throw new Error('an agent has no "name", or none that can be');
  if (!Array.isArray(tokens)) throw new Error(`the agent "${name}" has no list "tokens"`);
  return {
    name,
    description: typeof description === 'string' ? description : '',
    created: typeof created === 'string' ? created : '',
    tokens: tokens.map((token) => readToken(token, name)),
  };
}

/** An expiry that cannot be read must not make a token last for ever. */
function readToken(value: unknown, name: string): AgentToken {
  const { sha256: hash, created, expires } = (value ?? {}) as Record<string, unknown>;
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash))
    throw new Error(`a token of the agent "${name}" has no "sha256"`);
  if (expires !== null && (typeof expires !== 'string' || Number.isNaN(Date.parse(expires))))
    throw new Error(`a token of the agent "${name}" has an "expires" that is no time`);
  return {
    sha256: hash,
    created: typeof created === 'string' ? created : '',
    expires: expires === null ? null : new Date(expires as string).toISOString(),
  };
}
