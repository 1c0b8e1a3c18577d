/** The packages that a namespace asks for: requirements.txt for Python, package.json for TypeScript. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFileDurably } from '../base/files.ts';
import { isObject } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import type { Language } from '../workers/tool-files.ts';
import { type PreparedFolder, prepareNamespace } from '../workers/toolchains.ts';
import {
  findManaged,
  findOwn,
  type ManagedNamespace,
  readFileIn,
  requirePlainFile,
  whileLocked,
} from './managed-namespace.ts';

/** Where the packages of each language are written. */
const FILES: Readonly<Record<Language, string>> = { python: 'requirements.txt', typescript: 'package.json' };

export interface ListedPackages {
  readonly python: readonly string[];
  readonly typescript: readonly string[];
}

export type InstallOutcome =
  | { readonly installed: true; readonly packages: readonly string[] }
  | { readonly installed: false; readonly error: string; readonly details: string };

export interface PackageOptions {
  readonly env: EnvVars;
  readonly signal: AbortSignal | null;
  progress(message: string): void;
}

export async function listPackages(config: Config, namespace: string): Promise<ListedPackages> {
  const { found } = await findManaged(config, namespace);
  return packagesIn(found.folder);
}

async function packagesIn(folder: string): Promise<ListedPackages> {
  const [requirements, manifest] = [await readFileIn(folder, FILES.python), await readFileIn(folder, FILES.typescript)];
  return {
    python: linesOf(requirements ?? '').flatMap(({ text }) => text ?? []),
    typescript: Object.entries(dependenciesOf(manifest)).map(([name, range]) => `${name}@${range}`),
  };
}

/** Adds a package, or replaces the version of one that is there. Without an installation that works, nothing changes. */
export async function addPackage(
  config: Config,
  namespace: string,
  wanted: string,
  language: Language | null,
  options: PackageOptions,
): Promise<InstallOutcome> {
  const managed = await findOwn(config, namespace);
  const { folder } = managed.found;
  const target = language ?? languageOf(managed);
  // Checked before anything else: the text becomes a line that an installer reads.
  const change = target === 'python' ? withRequirement : withDependency;
  change(null, wanted);
  const file = FILES[target];
  await requirePlainFile(folder, file);
  const before = await whileLocked(config, namespace, async () => {
    const text = await readFileIn(folder, file);
    await replaceFileDurably(join(folder, file), change(text, wanted));
    return text;
  });
  const outcome = await install(config, managed, [target], options);
  if (!outcome.installed)
    await whileLocked(config, namespace, async () => {
      // Somebody may have edited it meanwhile.
      if ((await readFileIn(folder, file)) !== change(before, wanted)) return;
      if (before === null) await rm(join(folder, file), { force: true });
      else await replaceFileDurably(join(folder, file), before);
    });
  return outcome;
}

/** Installs what the namespace asks for, in the environments that its workers use. */
export async function installPackages(
  config: Config,
  namespace: string,
  options: PackageOptions,
): Promise<InstallOutcome> {
  const managed = await findManaged(config, namespace);
  const { python, typescript } = await packagesIn(managed.found.folder);
  const languages = new Set(managed.found.parts.map(({ language }) => language));
  // Packages may be listed before the first tool is written.
  if (python.length > 0) languages.add('python');
  if (typescript.length > 0) languages.add('typescript');
  return install(config, managed, [...languages], options);
}

async function install(
  config: Config,
  { found }: ManagedNamespace,
  languages: readonly Language[],
  { env, signal, progress }: PackageOptions,
): Promise<InstallOutcome> {
  const parts = languages.map((language) => ({ language }));
  const note = (language: Language, message: string) => progress(`${language}: ${message}`);
  const results = await prepareNamespace({ ...found, parts }, config.dataDir, note, env, signal);
  const failed = results.filter(({ error }) => error !== null);
  if (failed.length > 0) {
    const [first] = failed;
    return {
      installed: false,
      error: `${first!.language === 'python' ? 'pip' : 'npm'} install failed`,
      details: failed.map(({ error }) => `${error!.message}\n${error!.log}`.trim()).join('\n'),
    };
  }
  const { python, typescript } = await packagesIn(found.folder);
  return { installed: true, packages: [...python, ...typescript] };
}

/** The only language that the namespace has files of; Python if there are none or both, as its tools say. */
function languageOf({ found: { parts } }: ManagedNamespace): Language {
  return parts.length === 1 ? parts[0]!.language : 'python';
}

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?/;
const EXTRAS = /\[[A-Za-z0-9._, -]*\]/;
const VERSION = /(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+/;
const COMPARED = /[a-z_]+\s*(?:===|==|~=|!=|<=|>=|<|>|not in|in)\s*(?:"[^"'`$;]*"|'[^"'`$;]*')/;
const MARKER = new RegExp(`;\\s*${COMPARED.source}(?:\\s+(?:and|or)\\s+${COMPARED.source})*`);
/** A name with extras, versions and a marker, as a registry knows it. No option, path, URL or file. */
const REQUIREMENT = new RegExp(
  `${NAME.source}\\s*(?:${EXTRAS.source})?\\s*(?:${VERSION.source}(?:\\s*,\\s*${VERSION.source})*)?\\s*(?:${MARKER.source})?$`,
);
const ARCHIVE = /\.(?:whl|zip|tgz|tar|gz|tbz|txz)$/i;

/** Throws if it is not a version of a package in a registry. */
function withRequirement(text: string | null, given: string): string {
  const wanted = given.trim();
  if (wanted.length > 300 || !REQUIREMENT.test(wanted) || ARCHIVE.test(NAME.exec(wanted)?.[0] ?? ''))
    throw new GatewayError(
      'usage',
      `${JSON.stringify(given.slice(0, 80))} is not a package. Write its name and version, such as "httpx", "httpx>=0.28.0" or "beautifulsoup4==4.12.0"; options, paths and addresses are not accepted.`,
    );
  const name = normalized(wanted);
  const kept = linesOf(text ?? '').filter((line) => line.text === null || normalized(line.text) !== name);
  return `${[...kept.map(({ raw }) => raw), wanted].join('\n').replace(/^\n+/, '')}\n`;
}

interface RequirementLine {
  readonly raw: string;
  /** Null for a comment or an empty line. */
  readonly text: string | null;
}

function linesOf(requirements: string): RequirementLine[] {
  const lines = requirements.replace(/\r?\n$/, '').split(/\r?\n/);
  return (requirements === '' ? [] : lines).map((raw) => {
    const text = raw.replace(/(^|\s)#.*$/, '').trim();
    return { raw, text: text === '' ? null : text };
  });
}

/** Packages have the same name in any case, and with any of `-`, `_` and `.`. */
function normalized(requirement: string): string {
  return (NAME.exec(requirement)?.[0] ?? requirement).toLowerCase().replace(/[-_.]+/g, '-');
}

const DEPENDENCY = /^((?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([A-Za-z0-9.*^~<>=| +-]{1,100}))?$/;

/** The same for npm. */
function withDependency(text: string | null, given: string): string {
  const [, name, range = '*'] = DEPENDENCY.exec(given.trim()) ?? [];
  if (name === undefined || name.length > 214 || name.startsWith('-'))
    throw new GatewayError(
      'usage',
      `${JSON.stringify(given.slice(0, 80))} is not a package. Write its name and version, such as "zod", "zod@^4" or "@scope/name@1.2.3"; options, paths and addresses are not accepted.`,
    );
  const manifest = manifestOf(text) ?? { private: true, type: 'module' };
  const dependencies = { ...dependenciesOf(text), [name]: range.trim() };
  return `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`;
}

function dependenciesOf(text: string | null): Record<string, string> {
  const { dependencies } = manifestOf(text) ?? {};
  if (!isObject(dependencies)) return {};
  return Object.fromEntries(Object.entries(dependencies).map(([name, range]) => [name, String(range)]));
}

function manifestOf(text: string | null): Record<string, unknown> | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (error) {
    throw new GatewayError('usage', `package.json is not valid JSON: ${messageOf(error)}. Correct it first.`);
  }
  throw new GatewayError('usage', 'package.json is not a map. Correct it first.');
}

/** Cannot be the name of a namespace. */
const MANAGER = '_manager';

/** Installs Python packages for the manager itself, in an environment of its own. Those from before stay. */
export async function installOwnPackages(
  config: Config,
  packages: readonly string[],
  { env, signal, progress }: PackageOptions,
): Promise<InstallOutcome> {
  const folder = join(config.dataDir, 'manager');
  const file = join(folder, FILES.python);
  const before = await readFileIn(folder, FILES.python);
  const text = packages.reduce<string>(withRequirement, before ?? '');
  await replaceFileDurably(file, text);
  const { isolation, packages: allowed } = config.folders;
  const own: PreparedFolder = { name: MANAGER, folder, parts: [{ language: 'python' }], isolation, packages: allowed };
  const [result] = await prepareNamespace(own, config.dataDir, (_, message) => progress(message), env, signal);
  if (result!.error === null) return { installed: true, packages };
  if (before === null) await rm(file, { force: true });
  else await replaceFileDurably(file, before);
  return {
    installed: false,
    error: 'pip install failed',
    details: `${result!.error.message}\n${result!.error.log}`.trim(),
  };
}
