/** Finds the Python for environments: `TOOLGATE_PYTHON`, else python3, else the newest installed one. */
import { readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter } from 'node:path';
import { EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { runProgram } from './run-program.ts';

export interface Interpreter {
  /** The path of the interpreter itself, not of a link or a shim. */
  readonly executable: string;
  readonly version: string;
  /** What compiled packages depend on. */
  readonly platform: string;
  /** The folders of the interpreter and its library. */
  readonly prefixes: readonly string[];
}

interface ProbedInterpreter extends Interpreter {
  readonly minor: readonly [number, number];
}

const OLDEST = 10;
const PROBE = `
import json, os, sys, sysconfig
executable = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
    "executable": executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "minor": sys.version_info[:2],
    "platform": " ".join([sys.implementation.cache_tag or sys.implementation.name, sysconfig.get_platform()]),
    "prefixes": sorted({sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.path.realpath(executable))}),
}))`;

/** Found interpreters by TOOLGATE_PYTHON and PATH. A probe takes 50 ms, or four times as long through a shim. */
const known = new Map<string, Interpreter>();

export async function findPython(env: EnvironmentRequest['env'], signal: AbortSignal | null): Promise<Interpreter> {
  const configured = env.TOOLGATE_PYTHON || null;
  const key = JSON.stringify([configured, env.PATH]);
  const before = known.get(key);
  if (before !== undefined && (await exists(before.executable))) return before;
  const tooOld: string[] = [];
  for (const candidate of configured === null ? await candidates(env.PATH) : [configured]) {
    const found = await probe(candidate, env, signal);
    if (found === null) continue;
    if (found.minor[0] === 3 && found.minor[1] >= OLDEST) {
      const { minor: _, ...interpreter } = found;
      known.set(key, interpreter);
      return interpreter;
    }
    tooOld.push(`${candidate} is ${found.version}`);
  }
  const old = tooOld.length > 0 ? ` (${tooOld.join(', ')})` : '';
  if (signal?.aborted) throw new EnvironmentError('Looking for Python was stopped.');
  if (configured !== null)
    throw new EnvironmentError(
      `TOOLGATE_PYTHON is not a Python 3.${OLDEST} or newer${old || `: "${configured}" does not run`}.`,
    );
  throw new EnvironmentError(
    `Python 3.${OLDEST} or newer was not found${old}. Install it, or set TOOLGATE_PYTHON to its path.`,
  );
}

async function candidates(path = ''): Promise<string[]> {
  const minors = new Set<number>();
  for (const folder of new Set(path.split(delimiter))) {
    for (const name of await readdir(folder || '.').catch(() => [])) {
      const minor = /^python3\.(\d+)$/.exec(name)?.[1];
      if (minor !== undefined && Number(minor) >= OLDEST) minors.add(Number(minor));
    }
  }
  const newest = [...minors].sort((a, b) => b - a).map((minor) => `python3.${minor}`);
  return ['python3', ...newest, 'python'];
}

async function probe(
  command: string,
  env: EnvironmentRequest['env'],
  signal: AbortSignal | null,
): Promise<ProbedInterpreter | null> {
  const { PATH = '', HOME = '' } = env;
  // Not in the folder of tools, because a shim may choose a version by the files there.
  const program = { command, args: ['-I', '-c', PROBE], cwd: tmpdir(), env: { PATH, HOME }, timeout: 20_000, signal };
  const { code, stdout } = await runProgram(program);
  if (code !== 0) return null;
  try {
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as ProbedInterpreter;
  } catch {
    return null;
  }
}

function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
