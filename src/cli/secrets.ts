/** `toolgate secrets`: for people. No value is taken from the command line or the environment, and none is ever shown. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import {
  type Config,
  didYouMean,
  findKey,
  GatewayError,
  INSECURE_TEXT,
  keyMissing,
  loadConfig,
  nameProblem,
  openSecretStore,
  readKeyFile,
  type SecretStatus,
  SHORTEST_SECRET,
  scanFolders,
  wantedSecrets,
} from '../internal.ts';
import { askTwice, confirm, hasTerminal, readInput } from './ask.ts';
import type { Options } from './commands.ts';
import { edit } from './secrets-edit.ts';
import { loadOptions } from './session.ts';
import { jsonText, paint, plain, table } from './terminal.ts';

type Run = (config: Config, name: string, options: Options) => Promise<number>;

const runs: Readonly<Record<string, { readonly run: Run; readonly named: boolean }>> = {
  list: { run: list, named: false },
  check: { run: check, named: false },
  set: { run: set, named: true },
  remove: { run: remove, named: true },
  edit: { run: editAll, named: false },
  rotate: { run: rotate, named: false },
};

/** No server is started for it. */
export async function secrets(args: readonly string[], options: Options): Promise<number> {
  const [what = 'list', ...names] = args;
  if (what === 'keygen') return keygen(options);
  const found = Object.hasOwn(runs, what) ? runs[what]! : null;
  if (found === null) {
    const all = [...Object.keys(runs), 'keygen'];
    throw new GatewayError(
      'usage',
      `toolgate secrets has no "${what}".${didYouMean(what, all)} Choose from ${all.join(', ')}.`,
    );
  }
  const [name = options.key ?? '', ...more] = names;
  // Never shown: it may well be a value.
  if (more.length > 0)
    throw new GatewayError(
      'usage',
      `toolgate secrets ${what} takes ${found.named ? 'one name' : 'no name'} and no value: everybody on this machine could read it there, and may have. It is asked for, or read with --stdin.`,
    );
  if (found.named && name === '')
    throw new GatewayError(
      'usage',
      `toolgate secrets ${what} needs the name of a secret: toolgate secrets ${what} GITHUB_TOKEN`,
    );
  if (!found.named && name !== '')
    throw new GatewayError('usage', `toolgate secrets ${what} takes no name. See toolgate secrets --help.`);
  const problem = found.named ? nameProblem(name) : null;
  if (problem !== null) throw new GatewayError('usage', `${problem}.`);
  const config = await loadConfig(loadOptions(options));
  if ((await findKey(config.vault).catch(() => null))?.isInsecure === true) warn(INSECURE_TEXT);
  return found.run(config, name, options);
}

function scopeOf({ namespace, scope }: Options): string | null {
  if (namespace !== undefined && scope !== undefined)
    throw new GatewayError('usage', '--namespace and --scope say the same. Give one.');
  const named = namespace ?? scope;
  return named === undefined || (named === 'global' && namespace === undefined) ? null : named;
}

/** Whether a secret is one of those that were asked for; all where nothing was said. */
function isIn(options: Options): (status: SecretStatus) => boolean {
  if (options.namespace === undefined && options.scope === undefined) return () => true;
  const wanted = scopeOf(options);
  return ({ scope }) => scope === wanted;
}

function wordsFor(scope: string | null): string {
  return scope === null ? 'global' : `for the namespace "${scope}"`;
}

const open = ({ dataDir, vault }: Config) => openSecretStore(dataDir, vault);

async function requireKey({ vault }: Config): Promise<void> {
  if ((await findKey(vault)) === null) throw keyMissing();
}

async function set(config: Config, name: string, options: Options): Promise<number> {
  const scope = scopeOf(options);
  const store = open(config);
  // Nobody is to type a secret that cannot be kept.
  await requireKey(config);
  await store.read();
  if (options.stdin !== true && !hasTerminal())
    throw new GatewayError(
      'usage',
      'A secret is typed on a terminal, and this is none. Give it on the standard input: toolgate secrets set NAME --stdin < FILE',
    );
  const value = options.stdin === true ? await readInput() : await askTwice(`Value of ${name}`, 'The same again');
  await store.set(name, scope, value);
  if (value.trim().length < SHORTEST_SECRET)
    warn(
      `${name} has fewer than ${SHORTEST_SECRET} characters: it cannot be told from other text, and is not taken out of logs.`,
    );
  say(options, { name, scope: scope ?? 'global', status: 'set' }, `Set ${name}, ${wordsFor(scope)}.`);
  return 0;
}

async function remove(config: Config, name: string, options: Options): Promise<number> {
  const scope = scopeOf(options);
  if (options.yes !== true && !(await confirm(`Remove ${name}, ${wordsFor(scope)}?`))) {
    process.stderr.write('Nothing was removed.\n');
    return 1;
  }
  const store = open(config);
  if (!(await store.remove(name, scope))) {
    const names = (await store.list()).filter((one) => one.scope === scope).map((one) => one.name);
    throw new GatewayError(
      'usage',
      `There is no secret ${name}, ${wordsFor(scope)}.${didYouMean(name, names)} See toolgate secrets list.`,
    );
  }
  say(options, { name, scope: scope ?? 'global', removed: true }, `Removed ${name}, ${wordsFor(scope)}.`);
  return 0;
}

async function editAll(config: Config, _: string, options: Options): Promise<number> {
  await requireKey(config);
  if (!hasTerminal() || process.stdout.isTTY !== true)
    throw new GatewayError('usage', 'toolgate secrets edit needs a terminal. Set single ones with --stdin instead.');
  const changes = await edit(open(config), isIn(options));
  const count = (isIt: (value: string | null | undefined) => boolean) =>
    changes.filter(({ value }) => isIt(value)).length;
  const [isSet, waiting, removed] = [
    count((value) => typeof value === 'string'),
    count((value) => value === null),
    count((value) => value === undefined),
  ];
  const parts = [
    isSet > 0 ? `${isSet} set` : '',
    waiting > 0 ? `${waiting} waiting` : '',
    removed > 0 ? `${removed} removed` : '',
  ].filter((part) => part !== '');
  say(options, { set: isSet, waiting, removed }, parts.length === 0 ? 'Nothing was changed.' : `${parts.join(', ')}.`);
  return 0;
}

async function list(config: Config, _: string, options: Options): Promise<number> {
  const shown = (await open(config).list()).filter(isIn(options));
  const rows = shown.map(({ name, scope, status, updated }: SecretStatus) => ({
    name,
    scope: scope ?? 'global',
    status,
    updated_at: updated,
  }));
  const text =
    rows.length === 0
      ? 'There are no secrets. Set one: toolgate secrets set NAME'
      : table(
          rows.map(({ name, scope, status, updated_at: at }) => [
            paint('bold', name),
            scope,
            status === 'set' ? paint('green', status) : paint('yellow', status),
            at === null ? '' : `${at.slice(0, 16).replace('T', ' ')} UTC`,
          ]),
        );
  say(options, rows, text);
  return 0;
}

async function check(config: Config, _: string, options: Options): Promise<number> {
  const { servers } = await scanFolders(config);
  const only = options.namespace ?? options.scope;
  const all = wantedSecrets([...config.servers, ...servers], await open(config).list()).filter(
    ({ namespace, server }) => only === undefined || namespace === only || server === only,
  );
  const lacking = all.filter(({ missing, placeholders }) => missing.length + placeholders.length > 0);
  const lines = all.flatMap(({ server, satisfied, missing, placeholders }) => [
    ...satisfied.map((name) => `${paint('green', '✓')} ${plain(server)}: ${name}`),
    ...[...missing, ...placeholders].map(
      (name) => `${paint('red', '✗')} ${plain(server)}: ${name} is not set: toolgate secrets set ${name}`,
    ),
  ]);
  say(options, all, lines.length === 0 ? 'Nothing asks for a secret.' : lines.join('\n'));
  return lacking.length > 0 ? 1 : 0;
}

function keygen({ out, json }: Options): number {
  const key = randomBytes(32).toString('base64url');
  if (out === undefined) {
    process.stdout.write(json === true ? `${jsonText({ key }, 2)}\n` : `${key}\n`);
    return 0;
  }
  try {
    writeFileSync(out, `${key}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'is there already, and is not overwritten' : `cannot be written (${code})`;
    throw new GatewayError('usage', `${out} ${why}. Name another file.`);
  }
  say({ json }, { file: out }, `Wrote a key to ${out}. Keep a copy elsewhere: without it the secrets are lost.`);
  return 0;
}

async function rotate(config: Config, _: string, options: Options): Promise<number> {
  await requireKey(config);
  const from = options['new-key-file'];
  if (from === undefined && options.stdin !== true && !hasTerminal())
    throw new GatewayError(
      'usage',
      'The new key is typed on a terminal, and this is none. Give --new-key-file FILE or --stdin.',
    );
  const next =
    from !== undefined
      ? await readKeyFile(from)
      : options.stdin === true
        ? (await readInput()).trim()
        : await askTwice('New key', 'The same again');
  const done = await open(config).rotate(next);
  const text = done
    ? 'The secrets are encrypted with the new key. Put it in the place of the old one; a running gateway goes on with what it has until then.'
    : 'There are no secrets yet. Put the new key in its place and set them.';
  say(options, { rotated: done }, text);
  return 0;
}

function say({ json }: Pick<Options, 'json'> & { json?: boolean | undefined }, value: unknown, text: string): void {
  process.stdout.write(json === true ? `${jsonText(value, 2)}\n` : `${text}\n`);
}

export function warn(text: string): void {
  process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${text}\n`);
}
