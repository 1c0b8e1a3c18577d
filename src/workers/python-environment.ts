/**
 * The virtual environment of a folder's Python tools, made from its requirements.txt. All folders without one share the
 * same. FastMCP is always in it.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Environment, EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { forgetFailures, madeOnce, removeOlder } from './made-once.ts';
import { FASTMCP, install } from './python-install.ts';
import { findPython, type Interpreter } from './python-interpreter.ts';
import { type Requirements, readRequirements } from './requirements.ts';

/** Changes with how environments are made. */
const FORM = 1;
/** Cannot be the name of a namespace. */
const SHARED = '_base';
const INSTALL_TIMEOUT = 15 * 60_000;
/** A file that is edited while packages are installed: then once more, but not for ever. */
const TRIES = 3;

/** Where packages come from. */
const INDEXES =
  /^(?:PIP_(?:INDEX_URL|EXTRA_INDEX_URL|NO_INDEX|FIND_LINKS|CONSTRAINT)|UV_(?:(?:EXTRA_)?INDEX_URL|(?:DEFAULT_)?INDEX|NO_INDEX|FIND_LINKS|CONSTRAINT))$/;

export interface PythonOptions {
  /** Instead of the process's own. */
  readonly env?: NodeJS.ProcessEnv;
  readonly installTimeout?: number;
}

export async function preparePython(request: EnvironmentRequest, options: PythonOptions = {}): Promise<Environment> {
  const { env = process.env, installTimeout: timeout = INSTALL_TIMEOUT } = options;
  const python = await findPython(env, request.signal);
  for (let left = TRIES; ; left -= 1) {
    const requirements = await readRequirements(request.folder);
    const key = keyOf(requirements, python, env);
    const root = join(request.dataDir, 'venvs', requirements === null ? SHARED : request.namespace);
    const folder = await madeOnce({
      root,
      key,
      signal: request.signal,
      progress: (message) => request.progress(message),
      make: (made) => install({ request, env, timeout, python, requirements, folder: made }),
      isGood: hasPython,
    });
    const isCurrent = keyOf(await readRequirements(request.folder), python, env) === key;
    if (!isCurrent && left > 1) continue;
    await removeOlder(root, key);
    return environmentOf(folder, key, python, env);
  }
}

/** What failed is not tried again for a while; after this it is. */
export async function forgetPythonFailures(dataDir: string, namespace: string): Promise<void> {
  await forgetFailures(join(dataDir, 'venvs', namespace));
  await forgetFailures(join(dataDir, 'venvs', SHARED));
}

function keyOf(requirements: Requirements | null, python: Interpreter, env: NodeJS.ProcessEnv): string {
  const indexes = Object.entries(env).filter(([name]) => INDEXES.test(name));
  const from = {
    form: FORM,
    fastmcp: FASTMCP,
    python: [python.executable, python.version, python.platform],
    files: requirements === null ? [] : [...requirements.files],
    indexes: indexes.sort(([a], [b]) => (a < b ? -1 : 1)),
  };
  return createHash('sha256').update(JSON.stringify(from)).digest('hex').slice(0, 16);
}

/** It is a link, to a Python that may be gone. */
async function hasPython(folder: string): Promise<boolean> {
  return stat(join(folder, 'bin', 'python')).then(
    () => true,
    () => false,
  );
}

function environmentOf(folder: string, key: string, python: Interpreter, env: NodeJS.ProcessEnv): Environment {
  const host = hostFolder();
  const bin = join(folder, 'bin');
  return {
    key,
    // Isolated from variables and the user's own packages; nothing is written beside the tools, where a file that was
    // compiled from an older version could be taken for the present one; text is UTF-8, whatever the machine is set to.
    command: [join(bin, 'python'), '-I', '-B', '-u', '-X', 'utf8', join(host, 'start.py')],
    env: { VIRTUAL_ENV: folder, PATH: [bin, env.PATH].filter(Boolean).join(delimiter) },
    reads: [folder, host, ...python.prefixes],
  };
}

/** Beside dist/ in the package, and beside src/ in the repository. */
function hostFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const host = join(folder, 'python');
    if (existsSync(join(host, 'start.py'))) return host;
    if (dirname(folder) === folder)
      throw new EnvironmentError('The host for Python tools is missing. Install Toolgate again.');
  }
}
