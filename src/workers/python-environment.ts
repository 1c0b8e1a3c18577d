/**
 * The virtual environment of a folder's Python tools, built from its requirements.txt. Folders without one share a base
 * with FastMCP. With pip, the others are built on top of it; uv takes packages from its cache, which costs little.
 */
import { stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { ownFile } from '../base/own-files.ts';
import { buildOnce, forgetFailures, removeOlder } from './build-cache.ts';
import type { EnvironmentRequest, WorkerEnvironment } from './environment.ts';
import { baseOf, FASTMCP, type Installation, install } from './python-install.ts';
import { findPython, type Interpreter } from './python-interpreter.ts';
import { readVersions, writeVersions } from './python-versions.ts';
import { type Requirements, readRequirements } from './requirements.ts';

/** Part of the key. Increase it when environments are built differently. */
const FORMAT = 1;
/** Cannot be the name of a namespace. */
const SHARED = '_base';
const INSTALL_TIMEOUT = 15 * 60_000;
/** How often we install if requirements.txt is edited during the installation. */
const TRIES = 3;

/** The variables that say where packages come from. */
const INDEXES =
  /^(?:PIP_(?:INDEX_URL|EXTRA_INDEX_URL|NO_INDEX|FIND_LINKS|CONSTRAINT)|UV_(?:(?:EXTRA_)?INDEX_URL|(?:DEFAULT_)?INDEX|NO_INDEX|FIND_LINKS|CONSTRAINT))$/;

export interface PythonOptions {
  readonly installTimeout?: number;
}

export async function preparePython(
  request: EnvironmentRequest,
  options: PythonOptions = {},
): Promise<WorkerEnvironment> {
  const { env } = request;
  const { installTimeout: timeout = INSTALL_TIMEOUT } = options;
  const python = await findPython(env, request.signal);
  const job = { request, timeout, python };
  for (let left = TRIES; ; left -= 1) {
    const requirements = await readRequirements(request.folder, request.packages);
    const built = await buildEnvironment(job, requirements);
    const isCurrent = keyOf(await readRequirements(request.folder, request.packages), python, env) === built.key;
    if (!isCurrent && left > 1) continue;
    return withVersions(await environmentOf(built, python, env), request);
  }
}

interface BuiltEnvironment {
  readonly folder: string;
  readonly key: string;
}

async function buildEnvironment(
  job: Pick<Installation, 'request' | 'timeout' | 'python'>,
  requirements: Requirements | null,
): Promise<BuiltEnvironment> {
  const { request, python } = job;
  const key = keyOf(requirements, python, request.env);
  const root = join(request.dataDir, 'venvs', requirements === null ? SHARED : request.namespace);
  const base = async () => (await buildEnvironment(job, null)).folder;
  const folder = await buildOnce({
    root,
    key,
    signal: request.signal,
    progress: (message) => request.progress(message),
    build: (folder) => install({ ...job, requirements, folder, base: requirements === null ? null : base }),
    isGood,
  });
  await removeOlder(root, key);
  return { folder, key };
}

/** A failed installation is not tried again for a while. This forgets the failure, so that it is. */
export async function forgetPythonFailures(dataDir: string, namespace: string): Promise<void> {
  await forgetFailures(join(dataDir, 'venvs', namespace));
  await forgetFailures(join(dataDir, 'venvs', SHARED));
}

function keyOf(requirements: Requirements | null, python: Interpreter, env: EnvironmentRequest['env']): string {
  const indexes = Object.entries(env).filter(([name]) => INDEXES.test(name));
  const inputs = {
    form: FORMAT,
    fastmcp: FASTMCP,
    python: [python.executable, python.version, python.platform],
    files: requirements === null ? [] : [...requirements.files],
    indexes: indexes.sort(([a], [b]) => (a < b ? -1 : 1)),
  };
  return sha256(JSON.stringify(inputs)).slice(0, 16);
}

/** Its Python is a link to one that may have been removed. So may the base be that it was built on. */
async function isGood(folder: string): Promise<boolean> {
  const base = await baseOf(folder);
  const found = await Promise.all([folder, base ?? folder].map((path) => exists(join(path, 'bin', 'python'))));
  return found.every(Boolean);
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function withVersions(
  environment: Omit<WorkerEnvironment, 'versions'>,
  { folder, dataDir, namespace, lastGood = new Map() }: EnvironmentRequest,
): Promise<WorkerEnvironment> {
  const current = await readVersions(folder);
  const copies = await writeVersions(join(dataDir, 'workers', namespace, 'last-good'), lastGood, current);
  return {
    ...environment,
    ...(copies !== null && {
      command: [...environment.command, '--last-good', copies],
      reads: [...environment.reads, copies],
    }),
    async versions() {
      // The worker reads the files itself, and they may have changed before it did.
      const now = await readVersions(folder);
      return new Map([...now].filter(([file, { hash }]) => current.get(file)?.hash === hash));
    },
  };
}

async function environmentOf(
  { folder, key }: BuiltEnvironment,
  python: Interpreter,
  env: EnvironmentRequest['env'],
): Promise<Omit<WorkerEnvironment, 'versions'>> {
  const base = await baseOf(folder);
  const host = ownFile('python');
  const bin = join(folder, 'bin');
  return {
    key,
    // -I: ignores Python's variables and the user's own packages. -B: writes no compiled files next to the tools, where
    // a stale one could be used. -X utf8: text is UTF-8 in every locale.
    command: [join(bin, 'python'), '-I', '-B', '-u', '-X', 'utf8', join(host, 'start.py')],
    env: { VIRTUAL_ENV: folder, PATH: [bin, env.PATH].filter(Boolean).join(delimiter) },
    reads: [folder, ...(base === null ? [] : [base]), host, ...python.prefixes],
  };
}
