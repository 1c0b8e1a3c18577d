/** What was measured, one file per client: the table in docs/clients.md is made from them, and later runs are held against them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Measurement } from './measure.ts';
import type { Transport } from './place.ts';
import { type Published, versionOf } from './published.ts';

export interface Result extends Partial<Record<Transport, Measurement>> {
  readonly version: string;
}

export const isUpdate = process.env.UPDATE_DOCS === '1';

function fileOf({ title }: Published): string {
  const name = title.toLowerCase().replaceAll(' ', '-');
  return join(fileURLToPath(new URL('results', import.meta.url)), `${name}.json`);
}

export function readResult(client: Published): Result | undefined {
  const file = fileOf(client);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Result) : undefined;
}

export function writeResult(client: Published, transport: Transport, measured: Measurement): void {
  const { http, stdio }: Partial<Result> = { ...readResult(client), [transport]: measured };
  const file = fileOf(client);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ version: versionOf(client), http, stdio }, null, 2)}\n`);
}
