/**
 * Runs the steps of an installation, in the same sandbox as the workers of the folder. An installer writes to the
 * environment that it builds and to a cache. It sees the user's settings for registries, but neither the data folder, nor
 * the home folder, nor other processes.
 */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import type { EnvironmentRequest } from './environment.ts';
import { isIsolated, sandboxed } from './isolation.ts';
import { type ProgramResult, runProgram } from './run-program.ts';

export interface InstallStep {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The folder that is built. */
  readonly environment: string;
  /** What it reads in addition to the folder of tools. */
  readonly reads: readonly string[];
  /** False for a step that runs installed code: it gets no network, no settings and no cache. */
  readonly installs: boolean;
  readonly timeout: number;
  printed?(text: string): void;
}

/** For temporary files, in the environment while it is built: the /tmp of a sandbox is in memory. */
export const TEMPORARY = '.tmp';
/** The cache of all folders. It is no name for a namespace. */
const CACHE = '_cache';
const CACHES: Readonly<Record<string, string>> = {
  PIP_CACHE_DIR: 'pip',
  UV_CACHE_DIR: 'uv',
  npm_config_cache: 'npm',
};

export async function runInstallStep(request: EnvironmentRequest, step: InstallStep): Promise<ProgramResult> {
  const { folder, dataDir, isolation, packages, signal } = request;
  const { cwd, environment, installs, timeout } = step;
  const printed = (text: string) => step.printed?.(text);
  if (!(await isIsolated(isolation))) {
    const [command = '', ...args] = step.command;
    return runProgram({ command, args, cwd, env: step.env, timeout, signal, printed });
  }
  const temporary = join(environment, TEMPORARY);
  mkdirSync(temporary, { recursive: true });
  // A package that runs code could change what other folders find in a shared cache.
  const cache = packages === 'any' ? join(temporary, 'cache') : join(dataDir, 'venvs', CACHE);
  const env: Record<string, string> = { ...step.env, TMPDIR: temporary, UV_LINK_MODE: step.env.UV_LINK_MODE ?? 'copy' };
  const caches: string[] = [];
  for (const [name, place] of installs ? Object.entries(CACHES) : []) {
    const own = packages === 'any' ? undefined : env[name];
    const path = own !== undefined && isAbsolute(own) ? own : join(cache, place);
    mkdirSync(path, { recursive: true });
    env[name] = path;
    caches.push(path);
  }
  const settings = installs ? settingsIn(env) : [];
  const [command = '', ...args] = sandboxed(step.command, {
    folder: cwd,
    dataDir,
    reads: [...step.reads, folder, ...settings],
    // What builds a package in the folder writes there.
    writes: [environment, ...caches, ...(installs && packages === 'any' ? [folder] : [])],
    network: installs,
  });
  return runProgram({ command, args, cwd, env, timeout, signal, printed });
}

/** Files of the user that say where packages come from and whom to trust, and the files that they name. */
function settingsIn(env: Readonly<Record<string, string>>): string[] {
  const home = env.HOME ?? homedir();
  const config = env.XDG_CONFIG_HOME ?? join(home, '.config');
  const files = [
    ...['pip.conf', 'xdg/pip/pip.conf', 'uv/uv.toml', 'xdg/uv/uv.toml', 'npmrc'].map((name) => join('/etc', name)),
    ...['pip/pip.conf', 'uv/uv.toml'].map((name) => join(config, name)),
    ...['.pip/pip.conf', '.netrc', '.npmrc'].map((name) => join(home, name)),
    join(dirname(dirname(process.execPath)), 'etc/npmrc'),
    ...Object.entries(env).flatMap(([name, value]) => (NAMES_FILES.test(name) ? pathsIn(value) : [])),
  ].filter((path) => kindOf(path) === 'file');
  return [...files, ...files.flatMap(namedIn), ...foldersIn(env)];
}

const NAMES_FILES =
  /^(?:SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|NETRC|(?:PIP|UV|npm_config)_\w+)$/i;
const NAMES_FOLDERS = /^(?:SSL_CERT_DIR|(?:PIP|UV)_FIND_LINKS)$/;
/** The keys of pip.conf and .npmrc with the file of a certificate. */
const CERTIFICATE = /^\s*(?:\S+:)?(?:cert|client[-_]cert|cafile|certfile|keyfile)\s*=\s*["']?([^"'\n]+?)["']?\s*$/gm;
/** Settings are short. */
const LONGEST_SETTINGS = 1 << 20;

function foldersIn(env: Readonly<Record<string, string>>): string[] {
  const named = Object.entries(env).flatMap(([name, value]) => (NAMES_FOLDERS.test(name) ? pathsIn(value) : []));
  return named.filter((path) => path !== '/' && kindOf(path) === 'folder');
}

function namedIn(file: string): string[] {
  if (!/(?:npmrc|pip\.conf)$/.test(file) || statSync(file).size > LONGEST_SETTINGS) return [];
  try {
    const named = [...readFileSync(file, 'utf8').matchAll(CERTIFICATE)].flatMap((match) => pathsIn(match[1]!));
    return named.filter((path) => kindOf(path) === 'file');
  } catch {
    return [];
  }
}

/** The absolute paths in a value, which may be a list of paths and addresses. */
function pathsIn(value: string): string[] {
  return value
    .split(/[\s,]+/)
    .map((part) => part.replace(/^file:\/\//, ''))
    .filter(isAbsolute);
}

function kindOf(path: string): 'file' | 'folder' | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isFile() ? 'file' : found?.isDirectory() ? 'folder' : null;
}
