/**
 * A file that holds one JSON value and is replaced as a whole. People and other programs may edit it, so a file that
 * cannot be understood is reported and never overwritten.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { GatewayError, messageOf } from './errors.ts';
import { replaceFile } from './files.ts';
import { withLock } from './lock.ts';

export interface JsonFile<Value> {
  readonly path: string;
  /** Null if the file does not exist. Throws if it cannot be read or understood. */
  read(): Promise<Value | null>;
  readSync(): Value | null;
  write(value: Value): Promise<void>;
  /**
   * Reads, changes and writes under a lock, so that processes that change the file at the same time lose nothing.
   * `make` returns null to leave the file as it is. Returns what the file holds afterwards.
   */
  change(make: (value: Value | null) => Value | null): Promise<Value | null>;
}

/**
 * @param what completes the sentence "FILE is not …", as in "a list of agents".
 * @param parse checks the parsed value. It throws an `Error` whose message says what is wrong.
 */
export function jsonFile<Value>(path: string, what: string, parse: (value: unknown) => Value): JsonFile<Value> {
  function fail(why: string): never {
    throw new GatewayError('config_invalid', `${path} is not ${what} (${why}). Correct or remove it.`);
  }

  function understand(text: string): Value {
    try {
      return parse(JSON.parse(text));
    } catch (error) {
      return fail(messageOf(error));
    }
  }

  function missing(error: unknown): null {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? null : fail(messageOf(error));
  }

  async function read(): Promise<Value | null> {
    const text = await readFile(path, 'utf8').catch(missing);
    return text === null ? null : understand(text);
  }

  const write = (value: Value) => replaceFile(path, printJson(value));

  return {
    path,
    read,
    readSync() {
      let text: string | null;
      try {
        text = readFileSync(path, 'utf8');
      } catch (error) {
        return missing(error);
      }
      return understand(text);
    },
    write,
    change: (make) =>
      withLock(path, async () => {
        const value = await read();
        const next = make(value);
        if (next !== null) await write(next);
        return next ?? value;
      }),
  };
}

/** Indented JSON, for people to read. */
export function printJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
