/** `toolgate namespaces`: folders of tools. No server is started. */
import { basename, dirname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { loadConfig } from '../config/load.ts';
import { type FoundFolder, scanFolders } from '../gateway/folders.ts';
import { createNamespace, deleteNamespace } from '../workers/namespace-folders.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import type { Namespace } from '../workers/scan-folder.ts';
import { LANGUAGES, type Language } from '../workers/tool-files.ts';
import { prepareNamespace } from '../workers/toolchains.ts';
import { onlyName, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { confirm } from './prompts.ts';
import { loadOptions } from './session.ts';
import { brief, columns, jsonText, paint, plain, print, printResult, table, warn } from './terminal.ts';

export const namespaces = withVerbs('namespaces', { list, create, sync, delete: remove });

async function list(names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const { folders, problems } = await scanFolders(config);
  const shown = select(folders, names);
  const none = `There are no namespaces in ${toolsFolder(config.dataDir)}. Make one: toolgate namespaces create NAME`;
  printResult(
    options,
    shown.map(toJson),
    shown.length === 0 ? none : table(shown.map((folder) => toRow(folder, io))),
    io,
  );
  if (options.json !== true)
    for (const { key, problems: own } of shown) for (const problem of own) warn(`${key}: ${problem}`, io);
  const others = problems.filter(({ source }) => names.length === 0 && folders.every(({ name }) => name !== source));
  for (const { message } of others) warn(message, io);
  return 0;
}

function toJson({ key: name, folder, metadata, parts, problems }: FoundFolder) {
  const languages = Object.fromEntries(parts.map(({ language, files }) => [language, files]));
  return { name, folder, state: stateOf(parts, problems), ...metadata, languages, problems };
}

function toRow({ key, metadata, parts, problems }: FoundFolder, io: CommandIo): string[] {
  const state = stateOf(parts, problems);
  const files = parts.map(({ language, files: all }) => `${language}: ${all.join(', ')}`).join('; ');
  return [
    paint('bold', key, io),
    paint(state === 'ok' ? 'green' : 'yellow', state, io),
    brief(metadata.version, 20),
    brief(files, Math.max(20, columns(io) - 60)),
    brief(metadata.description, Math.max(20, columns(io) - 80)),
  ];
}

function stateOf(parts: Namespace['parts'], problems: readonly string[]): 'empty' | 'problems' | 'ok' {
  if (problems.length > 0) return 'problems';
  return parts.length === 0 ? 'empty' : 'ok';
}

async function create(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate namespaces create github');
  const { language = 'typescript', description = '' } = options;
  if (!isLanguage(language))
    throw new GatewayError('usage', `--language is ${LANGUAGES.join(' or ')}, not "${language}".`);
  const { dataDir } = await loadConfig(loadOptions(options, io));
  const created = await createNamespace(dataDir, name, language, description);
  return printResult(options, created, `Created ${created.file}. Edit it; a running gateway serves it at once.`, io);
}

function isLanguage(text: string): text is Language {
  return (LANGUAGES as readonly string[]).includes(text);
}

async function sync(names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const { folders } = await scanFolders(config);
  const results = [];
  for (const namespace of select(folders, names)) {
    const { key: name } = namespace;
    const note = (language: Language, message: string) =>
      io.stderr.write(`${paint('dim', plain(`${name} (${language}): ${message}`), io, 'stderr')}\n`);
    const prepared = await prepareNamespace(namespace, config.dataDir, note, io.env);
    results.push(...prepared);
    if (options.json === true) continue;
    for (const { language, error } of prepared) {
      const state = error === null ? paint('green', 'ready', io) : paint('red', 'failed', io);
      print(`${paint('bold', name, io)} ${language}: ${state}`, io);
      if (error !== null) io.stderr.write(`${plain(`${error.message}\n${error.log}`.trimEnd())}\n`);
    }
  }
  if (options.json === true) print(jsonText(results, 2), io);
  return results.some(({ error }) => error !== null) ? 1 : 0;
}

async function remove(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate namespaces delete github');
  const config = await loadConfig(loadOptions(options, io));
  const [{ folder }] = select((await scanFolders(config)).folders, [name]) as [FoundFolder];
  if (dirname(folder) !== toolsFolder(config.dataDir)) {
    const file = config.file ?? 'the configuration';
    throw new GatewayError(
      'usage',
      `${file} names ${folder}: remove its entry "${name}", then delete the folder yourself.`,
    );
  }
  if (options.yes !== true && !(await confirm(`Delete ${folder} and everything in it?`, io))) {
    io.stderr.write('Nothing was deleted.\n');
    return 1;
  }
  const deleted = await deleteNamespace(config.dataDir, basename(folder));
  return printResult(options, { name, deleted }, `Deleted "${name}".`, io);
}

/** The folders with these names; all if none is given. */
function select(folders: readonly FoundFolder[], names: readonly string[]): FoundFolder[] {
  const known = folders.map(({ key }) => key);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new GatewayError('usage', `There is no namespace "${unknown}".${didYouMean(unknown, known)}`);
  return names.length === 0 ? [...folders] : folders.filter(({ key }) => names.includes(key));
}
