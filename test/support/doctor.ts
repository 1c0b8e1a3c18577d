/** `toolgate doctor --json`, as a value. */
import { runCli } from './cli.ts';
import { tempFolder } from './temp.ts';

export interface Finding {
  readonly level: 'ok' | 'warning' | 'broken';
  readonly about: string;
  readonly message: string;
  readonly stderr?: string;
}

export interface Examination {
  readonly code: number | null;
  readonly findings: Finding[];
  /** Those that are not fine. */
  readonly wrong: Finding[];
}

/** Examines a configuration, in a folder of its own. */
export function runDoctor(config: string): Promise<Examination> {
  return runDoctorIn(tempFolder({ 'tools.toml': config }));
}

/** Examines the configuration in a folder. */
export async function runDoctorIn(cwd: string): Promise<Examination> {
  const { code, stdout } = await runCli(['doctor', '--json'], { cwd });
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return { code, findings, wrong: findings.filter(({ level }) => level !== 'ok') };
}
