/** `toolgate agents`: who may connect over HTTP with a token. No server is started. */
import { GatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { loadTask, type Task } from '../config/task.ts';
import { requireProfile } from '../plans/plan.ts';
import { type Agent, agentUnknown, openAgentStore } from '../store/agents.ts';
import { onlyName, readDuration, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { brief, columns, paint, printResult, table } from './terminal.ts';
import { trustAdded } from './trust.ts';

export const agents = withVerbs('agents', { list, add, rotate, revoke });

const SHOWN_ONCE = 'Give it to the agent now: it is not stored and cannot be shown again.';

async function add(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate agents add ci');
  const expires = readDuration('--expires', options.expires);
  const { dataDir, tasks: rules } = await loadConfig(loadOptions(options, io));
  const task = options.task === undefined ? null : await loadTask(options.task, io.cwd());
  if (task !== null) requireProfile(task, rules.rules());
  const bound = task === null ? undefined : [task];
  const added = await trustAdded(options, io, () =>
    openAgentStore(dataDir).add(name, options.description ?? '', expires, bound),
  );
  return showToken(added, options, SHOWN_ONCE, io);
}

async function rotate(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate agents rotate ci');
  const grace = readDuration('--grace', options.grace) ?? 0;
  const expires = readDuration('--expires', options.expires);
  const { dataDir } = await loadConfig(loadOptions(options, io));
  const rotated = await trustAdded(options, io, () => openAgentStore(dataDir).rotate(name, grace, expires));
  const old = grace > 0 ? `Its old tokens stay valid for ${options.grace}.` : 'Its old tokens are no longer valid.';
  return showToken(rotated, options, `${SHOWN_ONCE} ${old}`, io);
}

async function revoke(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate agents revoke ci');
  const config = await loadConfig(loadOptions(options, io));
  const store = openAgentStore(config.dataDir);
  const isConfigured = config.agents.some((agent) => agent.name === name && agent.tokens.length > 0);
  const wasStored = await store.revoke(name);
  if (isConfigured)
    throw new GatewayError(
      'usage',
      `The agent "${name}" still has a token in the configuration. Remove it there; a running gateway notices.`,
    );
  if (!wasStored) throw agentUnknown(name, (await store.read()) ?? []);
  return printResult(options, { name, revoked: true }, `Revoked "${name}": its tokens are no longer valid.`, io);
}

/** Only the token goes to stdout, so that a script can store it without showing it. */
function showToken(result: { token: string }, options: Options, note: string, io: CommandIo): number {
  printResult(options, result, result.token, io);
  io.stderr.write(`${paint('dim', note, io, 'stderr')}\n`);
  return 0;
}

interface ListedAgent {
  readonly name: string;
  readonly description: string;
  /** Where its tokens come from. */
  readonly from: readonly ('configuration' | 'agents')[];
  readonly tokens: readonly { readonly created: string | null; readonly expires: string | null }[];
  readonly admin: boolean;
  /** The only tasks that its clients may work on; null for any. */
  readonly tasks: readonly Task[] | null;
}

/** All agents that have a token; never a token or its hash. */
async function list(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const stored = (await openAgentStore(config.dataDir).read()) ?? [];
  const names = new Set([...config.agents.map(({ name }) => name), ...stored.map(({ name }) => name)]);
  const all = [...names].sort().map((name) => describe(name, config, stored));
  const text =
    all.length === 0
      ? 'There are no agents. Add one: toolgate agents add NAME'
      : table(all.map((agent) => toRow(agent, io)));
  return printResult(options, all, text, io);
}

function describe(name: string, { agents: configured, http }: Config, stored: readonly Agent[]): ListedAgent {
  const inConfig = configured.find((agent) => agent.name === name);
  const inStore = stored.find((agent) => agent.name === name);
  return {
    name,
    description: inConfig?.description || inStore?.description || '',
    from: [
      ...(inConfig === undefined ? [] : (['configuration'] as const)),
      ...(inStore === undefined ? [] : (['agents'] as const)),
    ],
    tokens: [
      ...(inConfig?.tokens ?? []).map(() => ({ created: null, expires: null })),
      ...(inStore?.tokens ?? []).map(({ created, expires }) => ({ created, expires })),
    ],
    admin: http.admins.includes(name),
    tasks: inConfig?.tasks ?? inStore?.tasks ?? null,
  };
}

function toRow({ name, description, from, tokens, admin }: ListedAgent, io: CommandIo): string[] {
  const now = new Date().toISOString();
  const valid = tokens.filter(({ expires }) => expires === null || expires > now);
  const ends = valid.map(({ expires }) => expires);
  const latest = ends.includes(null) ? null : (ends.sort().at(-1) ?? null);
  return [
    paint('bold', name, io),
    valid.length > 0 ? counted(valid.length, 'token') : paint('red', tokens.length === 0 ? 'no token' : 'expired', io),
    latest === null ? '' : `until ${latest.slice(0, 16).replace('T', ' ')} UTC`,
    admin ? 'admin' : '',
    from.join(', '),
    brief(description, Math.max(20, columns(io) - 80)),
  ];
}
