/** What the bundler says when a file cannot be built, as file, line and a message of one line. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import type { BuildFailure } from '../tools/build-manifest.ts';
import { shown } from './build-plugin.ts';

interface BundlerError {
  readonly message: string;
  readonly code?: string;
  readonly id?: string;
  readonly loc?: { readonly file?: string; readonly line: number; readonly column: number };
  readonly pos?: number;
}

export function buildFailures(error: unknown, files: readonly string[], folder: string): BuildFailure[] {
  const all = (error as { errors?: readonly BundlerError[] }).errors ?? [{ message: messageOf(error) }];
  return all.map((one) => {
    const path = one.loc?.file ?? one.id;
    const file = path === undefined ? (files[0] ?? '') : shown(path, folder);
    return { file, ...positionOf(one, path), message: plain(one.message) };
  });
}

function positionOf(
  { loc, pos, message }: BundlerError,
  path: string | undefined,
): { line: number | null; column?: number } {
  if (loc !== undefined) return { line: loc.line, column: loc.column + 1 };
  if (pos !== undefined && path !== undefined) return positionAt(pos, path);
  // As it stands in the drawing around the message: `╭─[ a.ts:3:7 ]`.
  const drawn = /\[\s*[^\]\n]*?:(\d+):(\d+)\s*\]/.exec(message);
  return drawn === null ? { line: null } : { line: Number(drawn[1]), column: Number(drawn[2]) };
}

function positionAt(pos: number, path: string): { line: number | null; column?: number } {
  try {
    const before = readFileSync(path, 'utf8').slice(0, pos).split('\n');
    return { line: before.length, column: before.at(-1)!.length + 1 };
  } catch {
    return { line: null };
  }
}

/** The first line, without the colours and the drawing that follow. */
function plain(message: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters.
  const text = message.replaceAll(/\u001b\[[0-9;]*m/g, '');
  const [first = ''] = text.split('\n').filter((line) => line.trim() !== '');
  return first.replace(/^(?:Error: )?\[[A-Z_]+\]\s*(?:Error: )?/, '').trim();
}
