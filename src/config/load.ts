/** From a folder or a path to the configuration: finds the file, reads it, checks it and resolves it. */
import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { isObject, toObject } from '../base/objects.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import { type BadEntry, type BrokenDraft, sectionOf, splitIssues, withoutEntries } from './broken.ts';
import { type Config, type ConfigSource, resolveConfig } from './config.ts';
import { type FoundConfig, findConfig, type LoadOptions, TOOL_FOLDERS } from './find.ts';
import { isClientFile, isForeign, isPersona, isPolicyFile, readForeign, readPersona } from './foreign.ts';
import {
  type ConfigDocument,
  forbiddenKeys,
  InvalidConfig,
  type LineOf,
  type Path,
  pathText,
  schemaIssues,
  valueAt,
} from './issues.ts';
import { type ParsedText, parseConfig, readConfigText, withLines } from './parse.ts';
import { loadPins, NO_PINS } from './pins.ts';
import { type ConfigFile, fileSchema } from './schema.ts';
import { entriesOf, type ServerEntry } from './servers.ts';
import { loadTasks, tasksInCode } from './tasks.ts';

type SourceDefaults = Pick<ConfigSource, 'lenient' | 'defaultControls' | 'defaultNames'>;

/** The defaults for files of other programs. */
const FOREIGN: SourceDefaults = { lenient: true, defaultControls: ['equip'], defaultNames: 'flat' };

/** The defaults for policies of other programs: their agents have no controls. */
const POLICY: SourceDefaults = { lenient: true, defaultControls: [], defaultNames: 'join' };

const OWN: SourceDefaults = { lenient: false, defaultControls: [], defaultNames: 'join' };
const TOOLS_TOML: SourceDefaults = { ...OWN, defaultControls: ['activate'] };

/**
 * The configuration in a file. If it has problems, one error lists all of them, without secrets.
 *
 * @example
 * const config = await loadConfig({ cwd: process.cwd(), env: process.env });
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  try {
    const { file, others, dataDir } = findConfig(options);
    if (dataDir !== undefined) return await loadFromDataDir(file, dataDir, options);
    const document = await readDocument(file, options.cwd);
    if (isPersona(file)) return await loadPersona(file, document, options);
    const notices = others.length > 0 ? [ignoredText(document.name, others)] : [];
    return await withLines(document, () => loadDocument(file, document, notices, options));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const redact = redactorOf(options);
    throw new GatewayError(error.code, redact(error.message), { cause: error.cause, details: error.details });
  }
}

/** What the file would say with this text. So an edit is checked before it is written. */
export async function loadConfigText(text: string, found: FoundConfig, options: LoadOptions): Promise<Config> {
  const { file, dataDir } = found;
  const document = await parseConfig(text, displayName(file, options.cwd));
  const env = dataDir === undefined ? options.env : { ...options.env, DATA_DIR: dataDir };
  return withLines(document, () => loadDocument(file, document, [], { ...options, env }));
}

async function loadFromDataDir(file: string, dataDir: string, options: LoadOptions): Promise<Config> {
  const document = existsSync(file)
    ? await readDocument(file, options.cwd)
    : await parseConfig('', displayName(file, options.cwd));
  const env = { ...options.env, DATA_DIR: dataDir };
  return withLines(document, () => loadDocument(file, document, [], { ...options, env }));
}

function redactorOf({ env }: Pick<LoadOptions, 'env'>): (text: string) => string {
  return createRedactor(environmentSecrets(env)).redact;
}

async function readDocument(file: string, cwd: string): Promise<ParsedText> {
  const name = displayName(file, cwd);
  return parseConfig(await readConfigText(file, name), name);
}

async function loadDocument(
  file: string,
  document: ParsedText,
  notices: readonly string[],
  { cwd, env }: LoadOptions,
): Promise<Config> {
  const { value, name } = document;
  const redact = redactorOf({ env });
  const isPolicy = isPolicyFile(file, value);
  if (isPolicy || isForeign(file) || isClientFile(file, value)) {
    if (!isObject(value))
      throw new InvalidConfig(document, [{ path: [], message: 'expected a map with "mcpServers"' }]);
    const foreign = readForeign(value, name, file);
    if (foreign.issues.length > 0) throw new InvalidConfig(document, foreign.issues);
    return withBrokenLines(document, async (lineOf) =>
      resolveConfig(foreign.settings, foreign.entries, {
        ...(isPolicy ? POLICY : FOREIGN),
        document,
        file,
        cwd,
        env,
        tasks: await loadTasks(foreign.settings, document, file),
        pins: await loadPins(file, foreign.settings.lock),
        written: foreign.written,
        notices: [...notices, ...foreign.notices],
        lineOf,
        redact,
      }),
    );
  }
  const { settings, entries, bad } = validateEntries(value, document);
  return withBrokenLines(document, async (lineOf) => {
    return resolveConfig(
      settings,
      entries,
      {
        ...(basename(file) === 'tools.toml' ? TOOLS_TOML : OWN),
        lenient: true,
        document,
        file,
        cwd,
        env,
        tasks: await loadTasks(settings, document, file),
        pins: await loadPins(file, settings.lock),
        written: toObject(
          withoutEntries(
            value,
            bad.map(({ path }) => path),
          ),
        ),
        notices,
        lineOf,
        redact,
        needsServers: (dataDir) => !existsSync(join(dataDir, TOOL_FOLDERS)),
      },
      bad,
    );
  });
}

/** Loads again with the lines of the document if entries were left out: only reports about those need the lines. */
async function withBrokenLines(document: ParsedText, load: (lineOf?: LineOf) => Promise<Config>): Promise<Config> {
  const config = await load();
  return config.broken.length === 0 ? config : load(await document.lines());
}

/** The servers and toolsets of a persona package. Its errors have no line numbers, because two files make it up. */
async function loadPersona(file: string, { name, value }: ParsedText, { cwd, env }: LoadOptions): Promise<Config> {
  const document: ConfigDocument = { name };
  if (!isObject(value)) throw new InvalidConfig(document, [{ path: [], message: 'expected a map with "toolsets"' }]);
  const { toolsets, equipped, problems } = readPersona(value);
  const servers = await readDocument(resolve(dirname(file), 'mcp.json'), cwd);
  const foreign = readForeign(toObject(servers.value), servers.name, resolve(dirname(file), 'mcp.json'));
  if (foreign.issues.length > 0) throw new InvalidConfig(servers, foreign.issues);
  const settings = { ...foreign.settings, toolsets: { ...foreign.settings.toolsets, ...toolsets } };
  const config = resolveConfig(settings, foreign.entries, {
    ...FOREIGN,
    document,
    file,
    cwd,
    env,
    tasks: tasksInCode(settings, document),
    pins: await loadPins(file, settings.lock),
    written: foreign.written,
    notices: [...problems.map((problem) => `${name}: ${problem}`), ...foreign.notices],
  });
  return { ...config, equipped };
}

/**
 * The configuration from a value of the embedding program, in the format of a file. Paths are relative to `cwd`. All
 * mistakes are reported in one error.
 *
 * @example
 * const config = configFromValue(
 *   { servers: { docs: { url: 'https://example.com/mcp' } } },
 *   { cwd: process.cwd(), env: process.env },
 * );
 */
export function configFromValue(
  value: unknown,
  { cwd, env }: Pick<LoadOptions, 'cwd' | 'env'> = { cwd: process.cwd(), env: process.env },
): Config {
  const document: ConfigDocument = { name: 'configuration' };
  const settings = validate(value, document);
  return resolveConfig(settings, entriesIn(settings, value), {
    ...OWN,
    document,
    file: null,
    cwd,
    env,
    tasks: tasksInCode(settings, document),
    pins: NO_PINS,
    written: toObject(value),
    notices: [],
  });
}

interface ValidEntries {
  readonly settings: ConfigFile;
  readonly entries: readonly (ServerEntry | BadEntry)[];
  /** Entries of other sections that the schema refused. */
  readonly bad: readonly (BrokenDraft & { readonly path: Path })[];
}

/** Like `validate`, but entries with mistakes are set apart. */
function validateEntries(value: unknown, document: ConfigDocument): ValidEntries {
  const { data, error } = fileSchema.safeParse(value, { jitless: true });
  const forbidden = forbiddenKeys(value);
  if (!error && forbidden.length === 0) return { settings: data, entries: entriesIn(data, value), bad: [] };
  const { entries: bad, others } = splitIssues(error ? schemaIssues(fileSchema, error, value, document) : []);
  if (forbidden.length > 0 || others.length > 0) validate(value, document);
  const paths = [...bad.values()].map(({ path }) => path);
  // Throws if there is something wrong with what is left.
  const settings = validate(withoutEntries(value, paths), document);
  const isServer = ({ path }: { path: Path }) => sectionOf(path) === 'servers';
  const refused = [...bad.values()];
  const badServers = refused.filter(isServer).map(
    ({ path, issues }): BadEntry => ({
      path,
      name: typeof path[1] === 'string' ? path[1] : null,
      written: valueAt(value, path),
      issues,
    }),
  );
  return {
    settings,
    entries: inOrder(settings, value, badServers),
    bad: refused
      .filter((one) => !isServer(one))
      .map(({ path, issues }) => ({ path, section: sectionOf(path), key: String(path[1]), issues, server: null })),
  };
}

/** The valid and the bad entries of servers, in the order in which they are written. */
function inOrder(settings: ConfigFile, value: unknown, bad: readonly BadEntry[]): (ServerEntry | BadEntry)[] {
  const badAt = new Map(bad.map((entry) => [pathText(entry.path), entry]));
  const valid = entriesOf(settings);
  return pathsOfServers(value).flatMap((path) => {
    const refused = badAt.get(pathText(path));
    if (refused !== undefined) return refused;
    const next = valid.shift();
    return next === undefined ? [] : { ...next, path, written: valueAt(value, path) };
  });
}

function pathsOfServers(value: unknown): Path[] {
  return ['servers', 'mcpServers'].flatMap((section) => {
    const entries = toObject(value)[section];
    if (Array.isArray(entries)) return entries.map((_, i) => [section, i]);
    return Object.keys(toObject(entries)).map((name) => [section, name]);
  });
}

function validate(value: unknown, document: ConfigDocument): ConfigFile {
  const forbidden = forbiddenKeys(value);
  // A file is read once: compiling the schema would take longer than interpreting it.
  const { data, error } = fileSchema.safeParse(value, { jitless: true });
  const places = new Set(forbidden.map((issue) => pathText(issue.path)));
  const others = error
    ? schemaIssues(fileSchema, error, value, document).filter((issue) => !places.has(pathText(issue.path)))
    : [];
  if (error || forbidden.length > 0) throw new InvalidConfig(document, [...forbidden, ...others]);
  return data;
}

function entriesIn(file: ConfigFile, value: unknown): ServerEntry[] {
  return entriesOf(file).map((entry) => ({ ...entry, written: valueAt(value, entry.path) }));
}

/** The path as the user would type it. */
function displayName(file: string, cwd: string): string {
  const name = relative(cwd, file);
  return name.startsWith('..') || isAbsolute(name) ? file : name;
}

function ignoredText(used: string, others: readonly string[]): string {
  const verb = others.length === 1 ? 'is' : 'are';
  return `${used} is used, and ${others.join(', ')} ${verb} ignored. Choose one with --config.`;
}
