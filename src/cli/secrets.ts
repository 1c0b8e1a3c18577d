/** `toolgate secrets`: no value is read from the command line or shown. No server is started. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { wantedSecrets } from '../config/wanted-secrets.ts';
import { scanFolders } from '../gateway/folders.ts';
import { SHORTEST as SHORTEST_SECRET } from '../secrets/forms.ts';
import type { SecretStatus } from '../secrets/payload.ts';
import { nameProblem } from '../secrets/secret-names.ts';
import { findKey, INSECURE_TEXT, keyMissing, newKey, readKeyFile } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { editSecrets } from './edit-secrets.ts';
import { loadOptions, type Options } from './options.ts';
import { askTwice, confirm, hasTerminal, readInput } from './prompts.ts';
import { paint, plain, printResult, table, warn } from './terminal.ts';

export const secrets = withVerbs('secrets', { list, set, edit, remove, check, keygen, rotate });

async function list(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  refuseNames('list', args, options);
  const shown = (await openStore(await readConfig(options, io)).list()).filter(scopeFilter(options));
  const rows = shown.map(({ name, scope, status, updated }: SecretStatus) => ({
    name,
    scope: scope ?? 'global',
    status,
    updated_at: updated,
  }));
  const cells = rows.map(({ name, scope, status, updated_at: at }) => [
    paint('bold', name, io),
    scope,
    status === 'set' ? paint('green', status, io) : paint('yellow', status, io),
    at === null ? '' : `${at.slice(0, 16).replace('T', ' ')} UTC`,
  ]);
  const none = 'There are no secrets. Set one: toolgate secrets set NAME';
  return printResult(options, rows, rows.length === 0 ? none : table(cells), io);
}

async function set(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = readName('set', args, options);
  const config = await readConfig(options, io);
  const scope = scopeOf(options);
  const store = openStore(config);
  // Checked first, so that a person does not type a secret that cannot be stored.
  await requireKey(config);
  await store.read();
  if (options.stdin !== true && !hasTerminal(io))
    throw new GatewayError(
      'usage',
      'There is no terminal to type the secret on. Give it on standard input: toolgate secrets set NAME --stdin < FILE',
    );
  const value = options.stdin === true ? await readInput(io) : await askTwice(`Value of ${name}`, 'The same again', io);
  await store.set(name, scope, value);
  if (value.trim().length < SHORTEST_SECRET)
    warn(
      `${name} has fewer than ${SHORTEST_SECRET} characters: it cannot be distinguished from other text, so it is not removed from logs.`,
      io,
    );
  const status = { name, scope: scope ?? 'global', status: 'set' };
  return printResult(options, status, `Set ${name}, ${scopeText(scope)}.`, io);
}

async function edit(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  refuseNames('edit', args, options);
  const config = await readConfig(options, io);
  await requireKey(config);
  if (!hasTerminal(io) || io.stdout.isTTY !== true)
    throw new GatewayError('usage', 'toolgate secrets edit needs a terminal. Set single secrets with --stdin instead.');
  const changes = await editSecrets(openStore(config), scopeFilter(options), io);
  const counts = {
    set: changes.filter(({ value }) => typeof value === 'string').length,
    waiting: changes.filter(({ value }) => value === null).length,
    removed: changes.filter(({ value }) => value === undefined).length,
  };
  const parts = Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  return printResult(options, counts, parts.length === 0 ? 'Nothing was changed.' : `${parts.join(', ')}.`, io);
}

async function remove(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = readName('remove', args, options);
  const config = await readConfig(options, io);
  const scope = scopeOf(options);
  if (options.yes !== true && !(await confirm(`Remove ${name}, ${scopeText(scope)}?`, io))) {
    io.stderr.write('Nothing was removed.\n');
    return 1;
  }
  const store = openStore(config);
  if (!(await store.remove(name, scope))) {
    const names = (await store.list()).filter((one) => one.scope === scope).map((one) => one.name);
    throw new GatewayError(
      'usage',
      `There is no secret ${name}, ${scopeText(scope)}.${didYouMean(name, names)} See toolgate secrets list.`,
    );
  }
  const status = { name, scope: scope ?? 'global', removed: true };
  return printResult(options, status, `Removed ${name}, ${scopeText(scope)}.`, io);
}

/** Which server needs which secrets. Exit code 1 if one is missing. */
async function check(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  refuseNames('check', args, options);
  const config = await readConfig(options, io);
  const { servers } = await scanFolders(config);
  const only = options.namespace ?? options.scope;
  const wanted = wantedSecrets([...config.servers, ...servers], await openStore(config).list()).filter(
    ({ namespace, server }) => only === undefined || namespace === only || server === only,
  );
  const lines = wanted.flatMap(({ server, satisfied, missing, placeholders }) => [
    ...satisfied.map((name) => `${paint('green', '✓', io)} ${plain(server)}: ${name}`),
    ...[...missing, ...placeholders].map(
      (name) => `${paint('red', '✗', io)} ${plain(server)}: ${name} is not set: toolgate secrets set ${name}`,
    ),
  ]);
  printResult(options, wanted, lines.length === 0 ? 'No server needs a secret.' : lines.join('\n'), io);
  return wanted.some(({ missing, placeholders }) => missing.length + placeholders.length > 0) ? 1 : 0;
}

async function keygen(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { out } = options;
  const key = newKey();
  if (out === undefined) return printResult(options, { key }, key, io);
  try {
    writeFileSync(resolve(io.cwd(), out), `${key}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'exists and is not overwritten' : `cannot be written (${code})`;
    throw new GatewayError('usage', `${out} ${why}. Name another file.`);
  }
  const text = `Wrote a key to ${out}. Keep a copy elsewhere: without it the secrets are lost.`;
  return printResult(options, { file: out }, text, io);
}

async function rotate(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  refuseNames('rotate', args, options);
  const config = await readConfig(options, io);
  await requireKey(config);
  const rotated = await openStore(config).rotate(await readNewKey(options, io));
  const text = rotated
    ? 'The secrets are encrypted with the new key. Put it where the old one was; until then a running gateway keeps the secrets it has.'
    : 'There are no secrets yet. Put the new key in its place and set them.';
  return printResult(options, { rotated }, text, io);
}

async function readNewKey({ 'new-key-file': file, stdin }: Options, io: CommandIo): Promise<string> {
  if (file !== undefined) return readKeyFile(resolve(io.cwd(), file));
  if (stdin === true) return (await readInput(io)).trim();
  if (!hasTerminal(io))
    throw new GatewayError(
      'usage',
      'There is no terminal to type the new key on. Give --new-key-file FILE or --stdin.',
    );
  return askTwice('New key', 'The same again', io);
}

/** The name of a secret. Arguments are not quoted in errors: they may be values. */
function readName(verb: string, args: readonly string[], options: Options): string {
  const [name = options.key ?? '', ...more] = args;
  if (more.length > 0) throw valueGiven(verb, 'one name');
  if (name === '')
    throw new GatewayError(
      'usage',
      `toolgate secrets ${verb} needs the name of a secret: toolgate secrets ${verb} GITHUB_TOKEN`,
    );
  const problem = nameProblem(name);
  if (problem !== null) throw new GatewayError('usage', `${problem}.`);
  return name;
}

function refuseNames(verb: string, args: readonly string[], options: Options): void {
  if (args.length > 1) throw valueGiven(verb, 'no name');
  if (args.length > 0 || options.key !== undefined)
    throw new GatewayError('usage', `toolgate secrets ${verb} takes no name. See toolgate secrets --help.`);
}

function valueGiven(verb: string, takes: string): GatewayError {
  return new GatewayError(
    'usage',
    `toolgate secrets ${verb} takes ${takes} and no value: everyone on this machine can read the command line, and may have done so already. Type the value when asked, or use --stdin.`,
  );
}

/** The configuration. Warns if secrets are kept without a key. */
async function readConfig(options: Options, io: CommandIo): Promise<Config> {
  const config = await loadConfig(loadOptions(options, io));
  if ((await findKey(config.vault).catch(() => null))?.isInsecure === true) warn(INSECURE_TEXT, io);
  return config;
}

const openStore = ({ dataDir, vault }: Config) => openSecretStore(dataDir, vault);

async function requireKey({ vault }: Config): Promise<void> {
  if ((await findKey(vault)) === null) throw keyMissing();
}

/** The namespace that was asked for; null for global. */
function scopeOf({ namespace, scope }: Options): string | null {
  if (namespace !== undefined && scope !== undefined)
    throw new GatewayError('usage', '--namespace and --scope mean the same. Give one of them.');
  const named = namespace ?? scope;
  return named === undefined || (named === 'global' && namespace === undefined) ? null : named;
}

/** Matches the secrets of the scope that was asked for, or all if none was. */
function scopeFilter(options: Options): (status: SecretStatus) => boolean {
  if (options.namespace === undefined && options.scope === undefined) return () => true;
  const wanted = scopeOf(options);
  return ({ scope }) => scope === wanted;
}

function scopeText(scope: string | null): string {
  return scope === null ? 'global' : `for the namespace "${scope}"`;
}
