/** `toolgate namespaces`: folders of tools. Nothing is started for it. */
import { basename, dirname } from 'node:path';
import {
  type Config,
  createNamespace,
  deleteNamespace,
  didYouMean,
  type FoundFolder,
  GatewayError,
  LANGUAGES,
  type Language,
  loadConfig,
  type Namespace,
  prepareNamespace,
  scanFolders,
  toolsFolder,
} from '../internal.ts';
import { confirm } from './ask.ts';
import type { Options } from './commands.ts';
import { loadOptions } from './session.ts';
import { brief, columns, jsonText, paint, plain, table } from './terminal.ts';

type Run = (config: Config, names: readonly string[], options: Options) => Promise<number>;

const runs: Readonly<Record<string, Run>> = { list: listAll, create, sync, delete: remove };

export async function namespaces(args: readonly string[], options: Options): Promise<number> {
  const [what = 'list', ...names] = args;
  const run = Object.hasOwn(runs, what) ? runs[what] : undefined;
  if (run === undefined) {
    const known = Object.keys(runs);
    const text = `toolgate namespaces has no "${what}".${didYouMean(what, known)} Choose from ${known.join(', ')}.`;
    throw new GatewayError('usage', text);
  }
  if ((what === 'create' || what === 'delete') && names.length !== 1) {
    const text = `toolgate namespaces ${what} needs one name: toolgate namespaces ${what} github`;
    throw new GatewayError('usage', text);
  }
  return run(await loadConfig(loadOptions(options)), names, options);
}

async function listAll(config: Config, names: readonly string[], { json }: Options): Promise<number> {
  const { dataDir } = config;
  const { folders: all, problems } = await scanFolders(config);
  const shown = pick(all, names);
  const others = names.length > 0 ? [] : problems.filter(({ source }) => all.every(({ name }) => name !== source));
  if (json === true) {
    print(shown.map(describe));
  } else if (shown.length === 0) {
    const folder = toolsFolder(dataDir);
    process.stdout.write(`There are no namespaces in ${folder}. Make one: toolgate namespaces create NAME\n`);
  } else {
    process.stdout.write(`${table(shown.map(toRow))}\n`);
    for (const { key, problems: own } of shown) for (const problem of own) warn(`${key}: ${problem}`);
  }
  for (const { message } of others) warn(message);
  return 0;
}

function describe({ key: name, folder, metadata, parts, problems }: FoundFolder) {
  const languages = Object.fromEntries(parts.map(({ language, files }) => [language, files]));
  return { name, folder, state: stateOf(parts, problems), ...metadata, languages, problems };
}

function stateOf(parts: Namespace['parts'], problems: readonly string[]): 'empty' | 'problems' | 'ok' {
  if (problems.length > 0) return 'problems';
  return parts.length === 0 ? 'empty' : 'ok';
}

function toRow({ key, metadata, parts, problems }: FoundFolder): string[] {
  const state = stateOf(parts, problems);
  const files = parts.map(({ language, files: all }) => `${language}: ${all.join(', ')}`).join('; ');
  return [
    paint('bold', key),
    paint(state === 'ok' ? 'green' : 'yellow', state),
    brief(metadata.version, 20),
    brief(files, Math.max(20, columns() - 60)),
    brief(metadata.description, Math.max(20, columns() - 80)),
  ];
}

async function create({ dataDir }: Config, [name = '']: readonly string[], options: Options): Promise<number> {
  const { language = 'typescript', description = '', json } = options;
  if (!isLanguage(language))
    throw new GatewayError('usage', `--language is one of ${LANGUAGES.join(' and ')}, not "${language}".`);
  const made = await createNamespace(dataDir, name, language, description);
  if (json === true) print(made);
  else process.stdout.write(`Made ${made.file}: edit it, and a running gateway serves it at once.\n`);
  return 0;
}

function isLanguage(text: string): text is Language {
  return (LANGUAGES as readonly string[]).includes(text);
}

async function sync(config: Config, names: readonly string[], { json }: Options): Promise<number> {
  const { dataDir } = config;
  const { folders: all } = await scanFolders(config);
  const results = [];
  for (const namespace of pick(all, names)) {
    const { key: name } = namespace;
    const say = (language: Language, message: string) =>
      process.stderr.write(`${paint('dim', plain(`${name} (${language}): ${message}`), process.stderr)}\n`);
    const prepared = await prepareNamespace(namespace, dataDir, say);
    results.push(...prepared);
    if (json === true) continue;
    for (const { language, error } of prepared) {
      const state = error === null ? paint('green', 'ready') : paint('red', 'failed');
      process.stdout.write(`${paint('bold', name)} ${language}: ${state}\n`);
      if (error !== null) process.stderr.write(`${plain(`${error.message}\n${error.log}`.trimEnd())}\n`);
    }
  }
  if (json === true) print(results);
  return results.some(({ error }) => error !== null) ? 1 : 0;
}

async function remove(config: Config, [name = '']: readonly string[], options: Options): Promise<number> {
  const { dataDir } = config;
  const { folders: all } = await scanFolders(config);
  const [{ folder }] = pick(all, [name]) as [FoundFolder];
  if (dirname(folder) !== toolsFolder(dataDir)) {
    const text = `The configuration names ${folder}: take its entry "${name}" out of ${config.file ?? 'it'}. The folder is yours to delete.`;
    throw new GatewayError('usage', text);
  }
  if (options.yes !== true && !(await confirm(`Delete ${folder} with everything in it?`))) {
    process.stderr.write('Nothing was deleted.\n');
    return 1;
  }
  const deleted = await deleteNamespace(dataDir, basename(folder));
  if (options.json === true) print({ name, deleted });
  else process.stdout.write(`Deleted "${name}".\n`);
  return 0;
}

/** Those of these names, or all. */
function pick(all: readonly FoundFolder[], names: readonly string[]): FoundFolder[] {
  const known = all.map(({ key }) => key);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new GatewayError('usage', `There is no namespace "${unknown}".${didYouMean(unknown, known)}`);
  return names.length === 0 ? [...all] : all.filter(({ key }) => names.includes(key));
}

function print(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}

function warn(text: string): void {
  process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${plain(text)}\n`);
}
