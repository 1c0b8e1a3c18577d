/** `toolgate namespaces`: folders of tools. No server is started. */
import { basename, dirname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { counted, didYouMean } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { type FoundFolder, type FoundFolders, scanFolders } from '../gateway/folders.ts';
import { openOfferStore } from '../store/offers.ts';
import { writeEditorTypes } from '../workers/editor-types.ts';
import { createNamespace, deleteNamespace } from '../workers/namespace-folders.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { LANGUAGES, type Language } from '../workers/tool-files.ts';
import { prepareNamespace } from '../workers/toolchains.ts';
import { onlyName, readUrl, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { confirm } from './prompts.ts';
import { brief, columns, jsonText, paint, plain, print, printResult, table, warn } from './terminal.ts';
import { trustAdded } from './trust.ts';

export const namespaces = withVerbs('namespaces', { list, create, 'from-openapi': fromOpenApi, sync, delete: remove });

async function list(names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const found = await scanFolders(config);
  const { folders, problems } = found;
  const shown = select(folders, names).map((folder) => withLastLoad(folder, found, config));
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

interface ListedFolder extends FoundFolder {
  /** Whether a gateway has loaded these files since they were last changed. */
  readonly isLoaded: boolean;
}

/** A folder with the files that did not load when a gateway last served it as it is now. Nothing is started. */
function withLastLoad(folder: FoundFolder, { servers }: FoundFolders, { dataDir }: Config): ListedFolder {
  const offers = openOfferStore(dataDir);
  const loads = servers
    .filter(({ launch }) => launch.kind === 'folder' && launch.folder === folder.folder)
    .map(({ launchHash }) => offers.read(launchHash));
  return {
    ...folder,
    problems: [...folder.problems, ...loads.flatMap((load) => load?.problems ?? [])],
    isLoaded: loads.every((load) => load !== null),
  };
}

function toJson(listed: ListedFolder) {
  const { key: name, folder, metadata, parts, problems } = listed;
  const languages = Object.fromEntries(parts.map(({ language, files }) => [language, files]));
  return { name, folder, state: stateOf(listed), ...metadata, languages, problems };
}

function toRow(listed: ListedFolder, io: CommandIo): string[] {
  const { key, metadata, parts } = listed;
  const state = stateOf(listed);
  const files = parts.map(({ language, files: all }) => `${language}: ${all.join(', ')}`).join('; ');
  return [
    paint('bold', key, io),
    paint(state === 'ok' || state === 'new' ? 'green' : 'yellow', state, io),
    brief(metadata.version, 20),
    brief(files, Math.max(20, columns(io) - 60)),
    brief(metadata.description, Math.max(20, columns(io) - 80)),
  ];
}

/** `new`: no gateway has loaded its files yet, so nobody knows whether they load. */
function stateOf({ parts, problems, isLoaded }: ListedFolder): 'empty' | 'problems' | 'new' | 'ok' {
  if (problems.length > 0) return 'problems';
  if (parts.length === 0) return 'empty';
  return isLoaded ? 'ok' : 'new';
}

async function create(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate namespaces create github');
  const { language = 'typescript', description = '' } = options;
  if (!isLanguage(language))
    throw new GatewayError('usage', `--language is ${LANGUAGES.join(' or ')}, not "${language}".`);
  const { dataDir } = await loadConfig(loadOptions(options, io));
  const created = await trustAdded(options, io, () => createNamespace(dataDir, name, language, description));
  return printResult(options, created, `Created ${created.file}. Edit it; a running gateway serves it at once.`, io);
}

async function fromOpenApi(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [source = '', namespace = '', ...more] = args;
  if (namespace === '' || more.length > 0)
    throw new GatewayError(
      'usage',
      'Name the document and the namespace: toolgate namespaces from-openapi openapi.yaml pets',
    );
  const { dataDir } = await loadConfig(loadOptions(options, io));
  const { namespaceFromOpenApi } = await import('../manager/builder/from-openapi.ts');
  const baseUrl = options.url === undefined ? null : readUrl('--url', options.url).href.replace(/\/+$/, '');
  // A person names the source, so it may be a file, or an address in their own network.
  const request = {
    source,
    namespace,
    baseUrl,
    cwd: io.cwd(),
    mayReadFiles: true,
    mayReachPrivate: true,
    signal: null,
  };
  const made = await trustAdded(options, io, () => namespaceFromOpenApi(request, dataDir));
  const secrets = made.secrets_needed.map(
    (one) => `Set its secret: toolgate secrets set ${one} --namespace ${namespace}`,
  );
  const text = `Created ${counted(made.tools_found.length, 'tool')} in ${made.path} for ${made.base_url}.`;
  printResult(options, made, plain([text, ...secrets].join('\n')), io);
  if (options.json !== true) for (const note of made.notes) warn(note, io);
  return 0;
}

function isLanguage(text: string): text is Language {
  return (LANGUAGES as readonly string[]).includes(text);
}

async function sync(names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const { folders } = await scanFolders(config);
  const results = [];
  if (folders.some((one) => isInDataFolder(one, config.dataDir) && one.parts.some(isTypeScript)))
    await writeEditorTypes(config.dataDir);
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

function isInDataFolder({ folder }: FoundFolder, dataDir: string): boolean {
  return dirname(folder) === toolsFolder(dataDir);
}

const isTypeScript = ({ language }: { readonly language: Language }) => language === 'typescript';

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
