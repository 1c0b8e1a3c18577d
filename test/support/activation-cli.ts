import { type Run, runCli } from './cli.ts';

/** Runs `toolgate` until it exits. */
export function toolgate(cwd: string, ...args: string[]): Promise<Run> {
  return runCli(args, { cwd });
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
