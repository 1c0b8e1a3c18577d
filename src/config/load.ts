/** From a folder or a path to the configuration: finds the file, reads it, checks it and resolves it. */

import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, relative, resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import type { Config } from './config.ts';
import type { Environment } from './expand.ts';
import { isMap } from './fields.ts';
import { isForeign, isPolicyFile, readForeign } from './foreign.ts';
import { type ConfigDocument, forbiddenKeys, InvalidConfig, pathText, schemaIssues, valueAt } from './issues.ts';
import { type ParsedText, parseConfig, readConfigText, withLines } from './parse.ts';
import { isPersona, readPersona } from './persona.ts';
import { resolveConfig } from './resolve.ts';
import { type ConfigFile, type Entry, entriesOf, fileSchema, type Settings } from './schema.ts';
import { isPlain, loadTaskRules, type TasksConfig, taskRulesOf } from './task-rules.ts';

const FILE_NAMES = [
  'tools.toml',
  'toolgate.toml',
  'toolgate.yaml',
  'toolgate.yml',
  'toolgate.json',
  '.mcp.json',
] as const;

const EXAMPLE = `[[servers]]
namespace = "files"
command = "npx -y @modelcontextprotocol/server-filesystem ."`;

/** Where a configuration is looked for, and which variables it may use. */
export interface LoadOptions {
  readonly cwd: string;
  readonly env: Environment;
  /** The file that the user named; else `TOOLGATE_CONFIG`, else the first of the usual names in `cwd`. */
  readonly path?: string | undefined;
}

export interface Found {
  /** The absolute path of the file to use. */
  readonly file: string;
  /** Names of the files beside it that would be used if it were not there. */
  readonly others: readonly string[];
}

export function findConfig({ cwd, env, path }: LoadOptions): Found {
  const named = path ?? (env.TOOLGATE_CONFIG || undefined);
  if (named !== undefined) {
    const file = resolve(cwd, named);
    if (existsSync(file)) return { file, others: [] };
    const by = path === undefined ? 'TOOLGATE_CONFIG' : '--config';
    throw new GatewayError(
      'config_missing',
      `There is no file ${file}, which ${by} names. Create it, or name another.`,
    );
  }
  const [first, ...others] = FILE_NAMES.filter((name) => existsSync(resolve(cwd, name)));
  if (first === undefined) {
    const message = `There is no configuration in ${cwd}. Create tools.toml there, or name a file with --config. An example:\n\n${EXAMPLE}\n`;
    throw new GatewayError('config_missing', message);
  }
  return { file: resolve(cwd, first), others };
}

/** What holds for files of other programs. */
const FOREIGN = { lenient: true, defaultControls: ['equip'], defaultNames: 'flat' } as const;

/** What holds for policies of other programs: their agents do not choose. */
const POLICY = { lenient: true, defaultControls: [], defaultNames: 'join' } as const;

/**
 * The configuration of a file. Every problem found in it is in the one error that is thrown, without what is secret.
 *
 * @example
 * const config = await loadConfig({ cwd: process.cwd(), env: process.env });
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  try {
    return await readConfig(options);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { redact } = createRedactor(environmentSecrets(options.env));
    throw new GatewayError(error.code, redact(error.message), { cause: error.cause, details: error.details });
  }
}

async function readConfig(options: LoadOptions): Promise<Config> {
  const { file, others } = findConfig(options);
  const name = displayName(file, options.cwd);
  const document = await parseConfig(await readConfigText(file, name), name);
  const notices = others.length > 0 ? [passedOver(name, others)] : [];
  if (isPersona(file)) return loadPersona(file, name, document.value, options);
  return withLines(document, () => readDocument(document, file, notices, options));
}

async function readDocument(
  document: ParsedText,
  file: string,
  notices: readonly string[],
  { cwd, env }: LoadOptions,
): Promise<Config> {
  const { name, value } = document;
  const isPolicy = isPolicyFile(file, value);
  if (isPolicy || isForeign(file)) {
    if (!isMap(value)) throw new InvalidConfig(document, [{ path: [], message: 'expected a map with "mcpServers"' }]);
    const foreign = readForeign(value, name);
    if (foreign.issues.length > 0) throw new InvalidConfig(document, foreign.issues);
    const found = isPolicy ? POLICY : FOREIGN;
    const tasks = await tasksOf(foreign.settings, document, file);
    const source = {
      document,
      ...found,
      file,
      cwd,
      env,
      tasks,
      written: foreign.written,
      notices: [...notices, ...foreign.notices],
    };
    return resolveConfig(foreign.settings, foreign.entries, source);
  }
  const defaultControls = basename(file) === 'tools.toml' ? (['activate'] as const) : [];
  const written = validate(value, document);
  const tasks = await tasksOf(written, document, file);
  const own = { lenient: false, defaultControls, defaultNames: 'join' } as const;
  return resolveConfig(written, writtenEntries(written, value), {
    document,
    ...own,
    file,
    cwd,
    env,
    tasks,
    written: value as Record<string, unknown>,
    notices,
  });
}

function writtenEntries(file: ConfigFile, value: unknown): Entry[] {
  return entriesOf(file).map((entry) => ({ ...entry, written: valueAt(value, entry.path) }));
}

/** Most configurations have no rules of their own: then none are read before they are wanted. */
async function tasksOf(settings: Settings, origin: ConfigDocument, file: string): Promise<TasksConfig> {
  return isPlain(settings) ? taskRulesOf(settings, origin) : loadTaskRules(settings, origin, file);
}

/** The servers of a persona package, and its toolsets. */
async function loadPersona(file: string, name: string, value: unknown, { cwd, env }: LoadOptions): Promise<Config> {
  const document: ConfigDocument = { name };
  if (!isMap(value)) throw new InvalidConfig(document, [{ path: [], message: 'expected a map with "toolsets"' }]);
  const { toolsets, equipped, problems } = readPersona(value);
  const beside = resolve(dirname(file), 'mcp.json');
  const servers = displayName(beside, cwd);
  const { value: root } = await parseConfig(await readConfigText(beside, servers), servers);
  const foreign = readForeign(isMap(root) ? root : {}, servers);
  if (foreign.issues.length > 0) throw new InvalidConfig({ name: servers }, foreign.issues);
  const notices = [...problems.map((problem) => `${name}: ${problem}`), ...foreign.notices];
  const settings = { ...foreign.settings, toolsets: { ...foreign.settings.toolsets, ...toolsets } };
  const tasks = taskRulesOf(settings, document);
  const source = { document, ...FOREIGN, file, cwd, env, tasks, written: foreign.written, notices };
  return { ...resolveConfig(settings, foreign.entries, source), equipped };
}

/**
 * The configuration in a value of the program's own, in the words of a file; paths are relative to `cwd`. Every mistake is in the one error that is thrown.
 *
 * @example
 * const config = configFromValue(
 *   { servers: { docs: { url: 'https://example.com/mcp' } } },
 *   { cwd: process.cwd(), env: process.env },
 * );
 */
export function configFromValue(value: unknown, { cwd, env }: Pick<LoadOptions, 'cwd' | 'env'>): Config {
  const document: ConfigDocument = { name: 'configuration' };
  const written = validate(value, document);
  const source = {
    document,
    file: null,
    cwd,
    env,
    lenient: false,
    defaultControls: [],
    defaultNames: 'join',
    tasks: taskRulesOf(written, document),
    written: value as Record<string, unknown>,
    notices: [],
  } as const;
  return resolveConfig(written, writtenEntries(written, value), source);
}

function validate(value: unknown, document: ConfigDocument): ConfigFile {
  const forbidden = forbiddenKeys(value);
  // It is read once: making code for that takes longer than doing without.
  const { data, error } = fileSchema.safeParse(value, { jitless: true });
  const places = new Set(forbidden.map((issue) => pathText(issue.path)));
  const others = error
    ? schemaIssues(fileSchema, error, value).filter((issue) => !places.has(pathText(issue.path)))
    : [];
  if (error || forbidden.length > 0) throw new InvalidConfig(document, [...forbidden, ...others]);
  return data;
}

/** The path as the user would type it. */
function displayName(file: string, cwd: string): string {
  const name = relative(cwd, file);
  return name.startsWith('..') || isAbsolute(name) ? file : name;
}

function passedOver(used: string, others: readonly string[]): string {
  const verb = others.length === 1 ? 'is' : 'are';
  return `${used} is used; ${others.join(', ')} ${verb} here too and passed over. Choose one with --config.`;
}
