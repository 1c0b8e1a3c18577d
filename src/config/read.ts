/** The text of a configuration file, or an error that says what stands in its place. */

import { readFile, stat } from 'node:fs/promises';
import { type ErrorCode, GatewayError } from '../base/errors.ts';

/** More than any configuration needs: a larger file is some other file. */
export const MAX_FILE_BYTES = 1024 * 1024;

/** Reads `file`, which errors call `name`. */
export async function readConfigText(file: string, name: string): Promise<string> {
  const fail = (problem: string, code: ErrorCode = 'config_invalid', cause?: unknown) =>
    new GatewayError(code, `${name}: ${problem}.`, { cause });
  const readable = (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      return fail('there is no such file. Create it, or name another', 'config_missing', error);
    if (error.code === 'EACCES') return fail('may not be read. Give this user permission to', undefined, error);
    return fail(`cannot be read (${error.code ?? error.message})`, undefined, error);
  };
  const found = await stat(file).catch((error) => Promise.reject(readable(error)));
  if (found.isDirectory()) throw fail('is a folder. Name the file in it');
  if (!found.isFile()) throw fail('is not a regular file. Name one');
  if (found.size > MAX_FILE_BYTES) throw fail('is larger than 1 MiB. Make sure that it is the right file');
  const bytes = await readFile(file).catch((error) => Promise.reject(readable(error)));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw fail('is not UTF-8 text. Save it in that encoding');
  }
}
