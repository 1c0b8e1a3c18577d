/** The section `agents`: agents by name, with the tokens that let them in over HTTP. */
import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import type { ResolveContext } from './context.ts';
import { expand, variablesIn } from './expand.ts';
import { mapOf, section, text, textList } from './fields.ts';
import type { Path } from './issues.ts';
import { type Task, tasksFromValue } from './task.ts';

/** An agent in the configuration. */
export interface AgentConfig {
  readonly name: string;
  readonly description: string;
  /** SHA-256 hashes. */
  readonly tokens: readonly string[];
  /** The only tasks that clients with these tokens may work on; null for any. */
  readonly tasks: readonly Task[] | null;
}

/** Names of agents, in policies, in files and in the header `X-Agent-Id`. */
export const AGENT_NAME = /^[A-Za-z0-9][\w.@:-]{0,63}$/;
export const WRONG_NAME =
  'is not a valid name for an agent: use at most 64 letters, digits, "_", ".", "@", ":" and "-", and begin with a letter or digit';
const MIN_TOKEN = 16;

const tokens = (expected: string) =>
  z.union([text(), textList()], { error: expected }).transform((value) => (Array.isArray(value) ? value : [value]));

const TASKS = 'expected a task or a list of tasks';
const taskText = () => z.union([text(), z.record(z.string(), text())], { error: TASKS });

const agentSchema = section(
  {
    token: tokens('expected a token or a list of tokens')
      .optional()
      .describe('The bearer token of the agent, or several that are valid at the same time. Write it as `${NAME}`.'),
    token_sha256: tokens('expected a SHA-256 hash in hexadecimal digits, or a list of them')
      .optional()
      .describe('The same, as a SHA-256 hash in hexadecimal digits.'),
    description: text().prefault('').describe('Who or what the agent is.'),
    tasks: z
      .union([taskText(), z.array(taskText(), { error: TASKS })], { error: TASKS })
      .optional()
      .describe(
        'The only tasks that clients with these tokens may work on: a description, a map of `service`, `type`, `description` and `profile`, or a list of these. The first one applies if a client names none.',
      ),
  },
  { id: 'Agent', description: 'A named client of the gateway.' },
);

export const agentsSchema = mapOf('agents', z.string().regex(AGENT_NAME, { error: WRONG_NAME }), agentSchema);

type AgentsSection = z.output<typeof agentsSchema> | null;

/** Variables that hold tokens of agents. Servers do not inherit them. */
export function tokenVariables(agents: AgentsSection): string[] {
  return [...new Set(Object.values(agents ?? {}).flatMap(({ token }) => (token ?? []).flatMap(variablesIn)))].sort();
}

/** The tokens as agents present them, for the redactor: an agent may pass its own on in an argument. */
export function agentTokens(agents: AgentsSection, { env }: Pick<ResolveContext, 'env'>): string[] {
  return Object.values(agents ?? {}).flatMap(({ token }) =>
    (token ?? []).flatMap((written) => {
      const expansion = expand(written, env);
      return 'text' in expansion ? expansion.text : [];
    }),
  );
}

function resolveTasks(name: string, written: unknown, add: ResolveContext['add']): readonly Task[] | null {
  try {
    return tasksFromValue(written, 'this task');
  } catch (error) {
    add(['agents', name, 'tasks'], messageOf(error));
    return [];
  }
}

/** Tokens are hashed here, so that the configuration in memory has none. */
export function resolveAgents(agents: AgentsSection, { text: expandAt, add }: ResolveContext): AgentConfig[] {
  const owners = new Map<string, string>();
  return Object.entries(agents ?? {}).map(([name, { token, tokenSha256, description, tasks }]) => {
    const read = (key: string, written: readonly string[] | null, hashOf: (text: string, path: Path) => string) =>
      (written ?? []).map((one, i, { length }) => {
        const path = length === 1 ? ['agents', name, key] : ['agents', name, key, i];
        return hashOf(expandAt(path, one), path);
      });
    const hashes = [
      ...read('token', token, (secret, path) => {
        if (secret.length < MIN_TOKEN)
          add(
            path,
            `is shorter than ${MIN_TOKEN} characters and could be guessed. toolgate agents add makes a good one`,
          );
        return sha256(secret);
      }),
      ...read('token_sha256', tokenSha256, (hash, path) => {
        if (!/^[0-9a-f]{64}$/i.test(hash)) add(path, 'is not a SHA-256 hash of 64 hexadecimal digits');
        return hash.toLowerCase();
      }),
    ];
    const distinct = [...new Set(hashes)];
    for (const hash of distinct) {
      const owner = owners.get(hash);
      if (owner !== undefined) add(['agents', name], `has the same token as "${owner}". Give each agent its own`);
      owners.set(hash, name);
    }
    return { name, description, tokens: distinct, tasks: resolveTasks(name, tasks, add) };
  });
}
