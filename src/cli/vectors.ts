/** `toolgate vectors`: makes a file with vectors of words for the search from a model or a table. */
import { createReadStream, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import type { VectorLimits } from '../catalog/search/vectors/make-vectors.ts';
import type { PieceVectors } from '../catalog/search/vectors/word-vectors.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { note, printResult } from './terminal.ts';

/** Later pieces are rare. */
const USUAL_WORDS = 60_000;
const MOST_DIMENSIONS = 4_096;

export async function vectors(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [from, to] = args;
  if (from === undefined || to === undefined)
    throw new GatewayError('usage', 'From what to which file? toolgate vectors MODEL FILE');
  const limits: VectorLimits = {
    most: readCount('--limit', options.limit, 1_000_000) ?? USUAL_WORDS,
    dimensions: readCount('--dimensions', options.dimensions, MOST_DIMENSIONS),
  };
  const [model, file] = [resolve(io.cwd(), from), resolve(io.cwd(), to)];
  const made = await make(model, options.tokenizer, limits, io);
  const { printVectors } = await import('../catalog/search/vectors/word-vectors.ts');
  const bytes = printVectors(made);
  await replaceFile(file, bytes);
  const report = { file, pieces: made.pieces.length, dimensions: made.dimensions, bytes: bytes.length };
  const size = `${(bytes.length / 2 ** 20).toFixed(1)} MiB`;
  printResult(
    options,
    report,
    `Wrote ${made.pieces.length} vectors of ${made.dimensions} numbers to ${to} (${size}).`,
    io,
  );
  if (options.json !== true) note(`Use them with search.vectors = "${to}" in the configuration.`, io);
  return 0;
}

async function make(
  path: string,
  tokenizer: string | undefined,
  limits: VectorLimits,
  io: CommandIo,
): Promise<PieceVectors> {
  const { vectorsFromModel, vectorsFromTable } = await import('../catalog/search/vectors/make-vectors.ts');
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isFolder && !path.endsWith('.safetensors'))
    return vectorsFromTable(await readLines(path, limits.most), path, limits);
  const model = isFolder ? join(path, 'model.safetensors') : path;
  const words =
    tokenizer === undefined ? join(isFolder ? path : join(path, '..'), 'tokenizer.json') : resolve(io.cwd(), tokenizer);
  return vectorsFromModel(await read(model), (await read(words)).toString(), model, limits);
}

/** A table may have millions of lines: those that are not kept are not read. */
async function readLines(file: string, most: number): Promise<string[]> {
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
      lines.push(line);
      // Some lines have no word of letters.
      if (lines.length > most * 2) break;
    }
  } catch (error) {
    throw unreadable(file, error);
  }
  return lines;
}

function read(file: string): Promise<Buffer> {
  return readFile(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
}

function unreadable(file: string, error: unknown): GatewayError {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return new GatewayError(
    'usage',
    `${file} cannot be read: ${isMissing ? 'there is no such file' : messageOf(error)}.`,
  );
}

function readCount(option: string, text: string | undefined, most: number): number | null {
  if (text === undefined) return null;
  const count = Number(text);
  if (Number.isInteger(count) && count >= 2 && count <= most) return count;
  throw new GatewayError('usage', `${option} is a number from 2 to ${most}, not "${text}".`);
}
