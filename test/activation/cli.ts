import { fileURLToPath } from 'node:url';
import { childEnv, startChild } from '../support/child.ts';
import { tempFolder } from '../support/temp.ts';

const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

/** Runs `toolgate` until it exits. */
export async function toolgate(cwd: string, ...args: string[]) {
  const child = startChild(process.execPath, [bin, ...args], { cwd, env: childEnv({ HOME: tempFolder() }) });
  child.process.stdin.end();
  const { code } = await child.exited;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

export interface Finding {
  readonly level: 'ok' | 'warning' | 'broken';
  readonly about: string;
  readonly message: string;
}

/** The problems that `toolgate doctor` finds, and its exit code. */
export async function doctor(cwd: string): Promise<{ code: number | null; wrong: Finding[] }> {
  const { code, stdout } = await toolgate(cwd, 'doctor', '--json');
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return { code, wrong: findings.filter(({ level }) => level !== 'ok') };
}
