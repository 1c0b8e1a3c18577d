/** `toolgate init`: imports the servers of other clients, points the clients at Toolgate, and undoes both. No server is started. */
import { resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { ownFile } from '../base/own-files.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { type FoundConfig, findOrNewConfig } from '../config/find.ts';
import { isForeign } from '../config/foreign.ts';
import { loadConfig, loadConfigText } from '../config/load.ts';
import { type PlainSecret, withReferences } from '../config/plain-secrets.ts';
import {
  applyChanges,
  endJournal,
  type Journal,
  lastJournal,
  type MovedSecret,
  undoChanges,
  writeJournal,
} from '../store/init-journal.ts';
import { findKey, keyMissing, makeKeyFile, userKeyFile } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import type { CommandIo } from './command-io.ts';
import {
  clientChanges,
  configChange,
  type ImportedServer,
  type InitPlan,
  planInit,
  servedByToolgate,
} from './init-plan.ts';
import { loadOptions, type Options } from './options.ts';
import { canPick, confirm } from './prompts.ts';
import { brief, cell, columns, jsonText, paint, plain, print, table, warn } from './terminal.ts';
import { plainPath, trustServers } from './trust.ts';
import { inHome, keyText } from './user-key.ts';

export async function init(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const found = targetOf(options, io);
  if (options.undo === true) return undo(found, options, io);
  const target = found.file;
  const plan = await planInit({ cwd: io.cwd(), env: io.env, target, from: options.from ?? null });
  const secrets = plan.imported.flatMap((one) => one.secrets);
  if (options.json !== true) print(planText(plan, target, io), io);
  const mayAsk = canPick(io) && options.json !== true && options.yes !== true;
  const isOnlyShown = options['dry-run'] === true || (options.yes !== true && !mayAsk);
  const isNew = plan.imported.length > 0;
  const canPoint = plan.present.length > 0 && (options.point === true || mayAsk);
  if ((!isNew && !canPoint) || isOnlyShown) {
    if (options.json === true) print(jsonText(planJson(plan, target, []), 2), io);
    else if (isNew || plan.present.length > 0)
      print(
        `Nothing was changed.${options['dry-run'] === true ? '' : ' Add --yes to do it, and --point to let the clients use Toolgate.'}`,
        io,
      );
    return 0;
  }
  if (isNew && mayAsk && !(await confirm(`Write ${target}?`, io))) return print('Nothing was changed.', io);
  const moves =
    options['move-secrets'] === true ||
    (mayAsk && secrets.length > 0 && (await confirm('Move the secrets to the secrets store?', io)));
  const points =
    options.point === true ||
    (mayAsk && (await confirm(`Let ${clientsOf(plan).join(', ')} use Toolgate in place of these servers?`, io)));
  if (!isNew && !points) return print('Nothing was changed.', io);
  const { written, key } = await carryOut(plan, found, { moves, points }, io);
  const clients = written.filter((file) => file !== target);
  if (options.json === true)
    return print(jsonText({ ...planJson(plan, target, written), key_file: key?.file ?? null }, 2), io);
  return print(
    plain(
      [
        ...(isNew ? [`Wrote ${counted(plan.imported.length, 'server')} to ${target}.`] : []),
        ...(clients.length === 0
          ? []
          : [`Toolgate is now the server of: ${clients.join(', ')}. Restart these clients.`]),
        ...(key === null ? [] : [keyText(key.file, key.isNew)]),
        ...(secrets.length > 0 && !moves
          ? ['Secrets are in plain text in it: see docs/secrets.md, or run init with --move-secrets.']
          : []),
        'Next: toolgate doctor. To take it all back: toolgate init --undo',
      ].join('\n'),
    ),
    io,
  );
}

/** The configuration to write. Files that belong to other programs are read and not added to. */
function targetOf(options: Options, io: CommandIo): FoundConfig {
  const found = findOrNewConfig(loadOptions(options, io));
  if (found.isNamed || !isForeign(found.file)) return found;
  return { file: resolve(io.cwd(), 'tools.toml'), isNamed: false, others: [] };
}

interface InitDone {
  readonly written: readonly string[];
  /** The key file that the configuration names now; null if it has a key, or needs none. */
  readonly key: { readonly file: string; readonly isNew: boolean } | null;
}

/** Everything that can fail for a reason in the plan does so before anything is changed. */
async function carryOut(
  plan: Awaited<ReturnType<typeof planInit>>,
  found: FoundConfig,
  { moves, points }: { readonly moves: boolean; readonly points: boolean },
  io: CommandIo,
): Promise<InitDone> {
  const { imported } = plan;
  const load = (text: string) => loadConfigText(text, found, { cwd: io.cwd(), env: io.env });
  const clients = points ? await clientChanges(plan.read, plan, commandOf(found.file, io)) : [];
  const keyless = await configChange(found.file, imported, moves, null);
  if (keyless === null) {
    await writeJournal({ config: plainPath(found.file), changes: clients, secrets: [], keyFile: null }, io.env);
    await applyChanges(clients);
    return { written: clients.map(({ file }) => file), key: null };
  }
  const isMoving = moves && imported.some(({ secrets }) => secrets.length > 0);
  const needsKey = isMoving && (await findKey((await load(keyless.after)).vault)) === null;
  const keyFile = needsKey ? userKeyFile(io.env) : null;
  const named = keyFile === null ? null : inHome(keyFile, io);
  const own = named === null ? keyless : ((await configChange(found.file, imported, moves, named)) ?? keyless);
  const config = await load(own.after);
  if (config.vault.keyFile !== keyFile && needsKey) throw keyMissing();
  const moved = isMoving ? await secretsToMove(imported, config) : [];
  const changes = [own, ...clients];
  // Undoing leaves the key: other configurations may use it by then.
  const key = keyFile === null ? null : { file: keyFile, isNew: await makeKeyFile(keyFile) };
  const names = moved.map(({ name, scope }) => ({ name, scope }));
  await writeJournal({ config: plainPath(found.file), changes, secrets: names, keyFile }, io.env);
  const store = openSecretStore(config.dataDir, config.vault);
  if (moved.length > 0) await store.change(moved);
  await trustServers(
    imported.map(({ server }) => server.namespace),
    io,
  )(config);
  await applyChanges(changes);
  for (const { key: name, problem } of config.broken)
    if (imported.some(({ server }) => server.namespace === name)) warn(`"${name}" cannot start yet: ${problem}`, io);
  return { written: changes.map(({ file }) => file), key };
}

/** Each secret for its server only, so that two servers can have different ones of one name. */
async function secretsToMove(
  imported: readonly ImportedServer[],
  config: Config,
): Promise<(MovedSecret & Pick<PlainSecret, 'value'>)[]> {
  const known = await openSecretStore(config.dataDir, config.vault).list();
  return imported.flatMap(({ server: { namespace: scope }, secrets }) =>
    secrets.map(({ name, value }) => {
      if (known.some((one) => one.name === name && one.scope === scope && one.status === 'set'))
        throw new GatewayError(
          'usage',
          `There is a secret ${name} for "${scope}" already. Remove it first: toolgate secrets remove ${name} --namespace ${scope}`,
        );
      return { name, scope, value };
    }),
  );
}

/** How clients start Toolgate. Programs with a window often do not have the PATH of a terminal, so it is a whole path. */
function commandOf(config: string, io: CommandIo): [string, ...string[]] {
  const installed = findExecutable('toolgate', io.cwd(), io.env.PATH);
  if (installed.code === undefined && !installed.path.includes('_npx')) return [installed.path, '--config', config];
  // The single file unpacks its program into a cache.
  if (io.env.TOOLGATE_BINARY) return [io.env.TOOLGATE_BINARY, '--config', config];
  const program = ownFile('bin/toolgate.mjs');
  // The cache of npx is emptied from time to time.
  return program.includes('_npx')
    ? ['npx', '-y', 'toolgate', '--config', config]
    : [process.execPath, program, '--config', config];
}

function clientsOf(plan: InitPlan): string[] {
  return [...new Set(servedByToolgate(plan).map(({ file }) => file.client))];
}

function planText(plan: InitPlan, target: string, io: CommandIo): string {
  const { files, imported, leftOut, problems, pointed } = plan;
  const rows = imported.map(({ server, secrets, from }) => [
    `  ${paint('bold', cell(server.namespace), io)}`,
    brief(whatRuns(withReferences(server, secrets)), Math.max(20, columns(io) - 60)),
    cell([...new Set(from.map(({ file }) => file.client))].join(', ')),
  ]);
  const named = new Set(files.map(({ file }) => file));
  const secrets = imported.flatMap(({ server, secrets: all }) =>
    all.map(({ place }) => `  ${server.namespace}: ${place}`),
  );
  const notes = imported.flatMap(({ server, notes: all }) => all.map((note) => `  ${server.namespace}: ${note}`));
  const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : ['', title, ...lines]);
  const head =
    imported.length === 0
      ? `There is nothing to import${named.size === 0 ? ': no file of a client was found' : ''}. Add a server: toolgate add NAME -- COMMAND`
      : `${counted(imported.length, 'server')} in ${counted(named.size, 'file')}, for ${target}:`;
  return [
    plain(head),
    ...(rows.length === 0 ? [] : [table(rows)]),
    ...section(
      'Not imported:',
      leftOut.map(({ file, name, reason }) => plain(`  ${name} (${file.client}, ${file.file}): ${reason}`)),
    ),
    ...section('Not taken over from their entries:', notes.map(plain)),
    ...section('Secrets in plain text (--move-secrets puts them into the secrets store):', secrets.map(plain)),
    ...section(
      'Could not be read:',
      problems.map((problem) => plain(`  ${problem}`)),
    ),
    ...section('Use Toolgate already:', [
      ...new Set(pointed.map(({ client, file }) => plain(`  ${client} (${file})`))),
    ]),
    ...section(
      'With --point, these files get one entry, which starts Toolgate:',
      changedFiles(plan).map((file) => plain(`  ${file}`)),
    ),
    '',
  ].join('\n');
}

function changedFiles(plan: InitPlan): string[] {
  return [...new Set(servedByToolgate(plan).map(({ file }) => file.file))];
}

function whatRuns({ command, args = [], url }: ImportedServer['server']): string {
  return url ?? [command, ...args].join(' ');
}

function planJson(plan: InitPlan, target: string, written: readonly string[]) {
  return {
    file: target,
    servers: plan.imported.map(({ server, from, secrets, notes }) => ({
      ...withReferences(server, secrets),
      from: from.map(({ file, name }) => ({ client: file.client, file: file.file, name })),
      plain_secrets: secrets.map(({ place }) => place),
      notes,
    })),
    left_out: plan.leftOut.map(({ file, name, reason }) => ({ client: file.client, file: file.file, name, reason })),
    problems: plan.problems,
    written,
  };
}

async function undo(found: FoundConfig, options: Options, io: CommandIo): Promise<number> {
  const journal = await lastJournal(plainPath(found.file), io.env);
  if (journal === null) {
    print(`There is no init of ${found.file} to undo.`, io);
    return 1;
  }
  const files = journal.changes.map(({ file }) => file);
  if (canPick(io) && options.yes !== true) {
    print(plain(`This restores:\n${files.map((file) => `  ${file}`).join('\n')}`), io);
    if (!(await confirm('Undo the last init?', io))) return print('Nothing was changed.', io);
  }
  // The configuration says where the secrets are, and may be gone afterwards.
  const config = journal.secrets.length === 0 ? null : await configOf(found, options, io);
  const undone = await undoChanges(journal);
  const isLeft = undone.some(({ outcome }) => outcome === 'left');
  if (!isLeft) {
    await removeSecrets(journal, config, io);
    await endJournal(journal);
  }
  if (options.json === true) print(jsonText(undone, 2), io);
  else {
    for (const { file, outcome, copy } of undone) print(plain(outcomeText(file, outcome, copy)), io);
    if (journal.keyFile !== null)
      print(plain(`${journal.keyFile}: the key of the secrets stays, because other configurations may use it`), io);
  }
  return isLeft ? 1 : 0;
}

function outcomeText(
  file: string,
  outcome: Awaited<ReturnType<typeof undoChanges>>[number]['outcome'],
  copy: string | null,
): string {
  switch (outcome) {
    case 'restored':
      return `${file}: as it was before`;
    case 'removed':
      return `${file}: removed, because it did not exist before`;
    case 'same':
      return `${file}: is as it was before already`;
    case 'taken back':
      return `${file}: changed since, so only what Toolgate wrote was taken back`;
    case 'left':
      return `${file}: changed since, and left as it is. ${
        copy === null
          ? 'It did not exist before: remove it, if you do not need it, and undo again.'
          : `What it was before is in ${copy}: copy that over it, and undo again.`
      }`;
  }
}

/** As it is, or with nothing in it, if an init was killed before it was written. */
function configOf(found: FoundConfig, options: Options, io: CommandIo): Promise<Config | null> {
  return loadConfig(loadOptions(options, io))
    .catch(() => loadConfigText('', found, loadOptions(options, io)))
    .catch(() => null);
}

async function removeSecrets({ secrets, keyFile }: Journal, config: Config | null, io: CommandIo): Promise<void> {
  if (secrets.length === 0) return;
  const names = secrets.map(({ name }) => name).join(', ');
  if (config === null) return warn(`the secrets ${names} are still in the secrets store. Remove them yourself.`, io);
  // The configuration does not name the key if the init was killed before it was written.
  const vault = (await findKey(config.vault)) === null ? { ...config.vault, keyFile } : config.vault;
  const store = openSecretStore(config.dataDir, vault);
  for (const { name, scope } of secrets) await store.remove(name, scope);
}
