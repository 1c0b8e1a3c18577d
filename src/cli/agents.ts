/** `toolgate agents`: who is let in over HTTP by a token of its own. */
import {
  type Agent,
  agentUnknown,
  type Config,
  didYouMean,
  GatewayError,
  loadConfig,
  openAgentStore,
  toLifetime,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions } from './session.ts';
import { brief, columns, jsonText, paint, table } from './terminal.ts';

type Run = (config: Config, name: string, options: Options) => Promise<void>;

const runs: Readonly<Record<string, Run>> = {
  list: (config, _, options) => listAll(config, options),
  add,
  rotate,
  revoke,
};

/** No server is started for it. */
export async function agents(args: readonly string[], options: Options): Promise<number> {
  const [what = 'list', name = '', ...more] = args;
  const run = Object.hasOwn(runs, what) ? runs[what] : undefined;
  if (run === undefined) {
    const names = Object.keys(runs);
    throw new GatewayError(
      'usage',
      `toolgate agents has no "${what}".${didYouMean(what, names)} Choose from ${names.join(', ')}.`,
    );
  }
  if (what !== 'list' && (name === '' || more.length > 0))
    throw new GatewayError('usage', `toolgate agents ${what} needs the name of one agent: toolgate agents ${what} ci`);
  await run(await loadConfig(loadOptions(options)), name, options);
  return 0;
}

async function add({ dataDir }: Config, name: string, { expires, description = '', json }: Options): Promise<void> {
  const made = await openAgentStore(dataDir).add(name, description, readLifetime('--expires', expires));
  show(made, json, 'Give it to the agent now: it is not kept and cannot be shown again.');
}

async function rotate({ dataDir }: Config, name: string, { expires, grace, json }: Options): Promise<void> {
  const left = readLifetime('--grace', grace) ?? 0;
  const made = await openAgentStore(dataDir).rotate(name, left, readLifetime('--expires', expires));
  const old = left > 0 ? `Those before it are good for another ${grace}.` : 'Those before it are no longer good.';
  show(made, json, `Give it to the agent now: it is not kept and cannot be shown again. ${old}`);
}

async function revoke(config: Config, name: string, { json }: Options): Promise<void> {
  const store = openAgentStore(config.dataDir);
  const isWritten = config.agents.some((agent) => agent.name === name && agent.tokens.length > 0);
  const wasThere = await store.revoke(name);
  if (isWritten)
    throw new GatewayError(
      'usage',
      `The agent "${name}" still has a token in the configuration. Take it out there; a running gateway notices.`,
    );
  if (!wasThere) throw agentUnknown(name, (await store.read()) ?? []);
  if (json === true) process.stdout.write(`${jsonText({ name, revoked: true }, 2)}\n`);
  else process.stdout.write(`Revoked "${name}": its tokens are no longer good.\n`);
}

/** Nothing but the token goes to the standard output, so that it can be put where it belongs without being seen. */
function show(made: { token: string }, json: boolean | undefined, text: string): void {
  process.stdout.write(json === true ? `${jsonText(made, 2)}\n` : `${made.token}\n`);
  process.stderr.write(`${paint('dim', text, process.stderr)}\n`);
}

function readLifetime(option: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const lifetime = toLifetime(text);
  if (lifetime === null)
    throw new GatewayError('usage', `${option} is a time such as "90s", "12h", "30d" or "4w", not "${text}".`);
  return lifetime;
}

interface Listed {
  readonly name: string;
  readonly description: string;
  /** Where its tokens come from. */
  readonly from: readonly ('configuration' | 'agents')[];
  readonly tokens: readonly { readonly created: string | null; readonly expires: string | null }[];
  readonly admin: boolean;
}

/** All agents with tokens of their own; never a token, and never a hash. */
export async function listAll(config: Config, { json }: Options): Promise<void> {
  const saved = (await openAgentStore(config.dataDir).read()) ?? [];
  const names = new Set([...config.agents.map(({ name }) => name), ...saved.map(({ name }) => name)]);
  const all = [...names].sort().map((name) => describe(name, config, saved));
  if (json === true) process.stdout.write(`${jsonText(all, 2)}\n`);
  else if (all.length === 0) process.stdout.write('There are no agents. Make one: toolgate agents add NAME\n');
  else process.stdout.write(`${table(all.map(toRow))}\n`);
}

function describe(name: string, { agents: written, http }: Config, saved: readonly Agent[]): Listed {
  const ours = written.find((agent) => agent.name === name);
  const theirs = saved.find((agent) => agent.name === name);
  return {
    name,
    description: ours?.description || theirs?.description || '',
    from: [
      ...(ours === undefined ? [] : (['configuration'] as const)),
      ...(theirs === undefined ? [] : (['agents'] as const)),
    ],
    tokens: [
      ...(ours?.tokens ?? []).map(() => ({ created: null, expires: null })),
      ...(theirs?.tokens ?? []).map(({ created, expires }) => ({ created, expires })),
    ],
    admin: http.admins.includes(name),
  };
}

function toRow({ name, description, from, tokens, admin }: Listed): string[] {
  const now = new Date().toISOString();
  const good = tokens.filter(({ expires }) => expires === null || expires > now);
  const ends = good.map(({ expires }) => expires);
  const latest = ends.includes(null) ? null : (ends.sort().at(-1) ?? null);
  const state =
    good.length === 0
      ? paint('red', tokens.length === 0 ? 'no token' : 'expired')
      : `${good.length} ${good.length === 1 ? 'token' : 'tokens'}`;
  return [
    paint('bold', name),
    state,
    latest === null ? '' : `until ${latest.slice(0, 16).replace('T', ' ')} UTC`,
    admin ? 'admin' : '',
    from.join(', '),
    brief(description, Math.max(20, columns() - 80)),
  ];
}
