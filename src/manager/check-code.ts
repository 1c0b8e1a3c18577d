/** Finds the tools in the source of a tool file without running it, and what is wrong with them. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';
import type { EnvVars } from '../config/expand.ts';
import { findPython } from '../workers/python-interpreter.ts';
import { runProgram } from '../workers/run-program.ts';
import { toolLanguage } from '../workers/tool-files.ts';
import type { CheckedCode } from './read-typescript.ts';

const CHECK_TIMEOUT = 30_000;

/** The name of the file decides its language. */
export async function checkCode(filename: string, code: string, env: EnvVars): Promise<CheckedCode> {
  if (toolLanguage(filename) === 'typescript') return checkTypeScript(filename, code);
  return withTemporaryFolder(async (folder) => {
    const file = join(folder, 'tool.py');
    await writeFile(file, code, { mode: 0o600 });
    return (await checkPythonFiles([file], env))[0]!;
  });
}

/** One result for each file, in the same order. */
export async function checkPythonFiles(files: readonly string[], env: EnvVars): Promise<CheckedCode[]> {
  if (files.length === 0) return [];
  const { executable } = await findPython(env, null);
  return withTemporaryFolder(async (folder) => {
    const result = join(folder, 'result.json');
    const { code, log, problem } = await runProgram({
      command: executable,
      args: ['-I', '-S', '-B', '-X', 'utf8', ownFile('python/check_tools.py'), result, ...files],
      cwd: folder,
      env: { PATH: env.PATH ?? '' },
      timeout: CHECK_TIMEOUT,
      signal: null,
    });
    if (code === 0) return JSON.parse(await readFile(result, 'utf8')) as CheckedCode[];
    const last = log.trim().split('\n').at(-1);
    const why = problem === 'timeout' ? 'it took too long' : (problem ?? (last || `exit ${code}`));
    throw new GatewayError('internal', `The Python code could not be checked: ${why}. Make it simpler, and try again.`);
  });
}

async function withTemporaryFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-check-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function checkTypeScript(filename: string, code: string): Promise<CheckedCode> {
  // Loaded here, because the parser is large.
  const { readTypeScript } = await import('./read-typescript.ts');
  return readTypeScript(filename, code);
}
