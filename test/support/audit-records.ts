/** Reads the lines of an audit. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from './processes.ts';

export type Line = Record<string, unknown>;

/** Every line of every file, in order. Each must be complete. */
export function readLines(folder: string): Line[] {
  if (!existsSync(folder)) return [];
  const texts = readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  return texts
    .join('')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

/** The audit of a gateway that runs in `cwd`. */
export function auditOf(cwd: string): string {
  return join(cwd, '.toolgate', 'logs');
}

/** Waits for `count` matching lines and returns them. */
export async function waitForLines(cwd: string, count: number, fits: (line: Line) => boolean): Promise<Line[]> {
  return waitFor(() => {
    const found = readLines(auditOf(cwd)).filter(fits);
    return found.length >= count && found;
  });
}

export const isCall = ({ kind }: Line) => kind === 'call';
export const isDenial = ({ kind }: Line) => kind === 'denial';
export const isAdmin = ({ kind }: Line) => kind === 'admin';

/** Without the values that differ in each run. */
export function pure({ time, id, ms, chain, batch, prev, seal, ...rest }: Line): Line {
  return rest;
}
