/** A log file with a bound on its size: when it is full, it becomes FILE.1 and a new one begins. */
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';

/** Bytes. With the file before it there are twice as many. */
const MOST = 1024 * 1024;

/** Lines that cannot be written are lost: a full disk must not end a gateway. */
export function openLogFile(file: string, most = MOST): Writable {
  let descriptor = open(file);
  let size = descriptor === null ? 0 : fstatSync(descriptor).size;
  const turn = () => {
    if (descriptor !== null) closeSync(descriptor);
    try {
      renameSync(file, `${file}.1`);
    } catch {
      // Another gateway of this project was faster.
    }
    descriptor = open(file);
    size = 0;
  };
  return new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _encoding, done) {
      try {
        if (size > 0 && size + chunk.length > most) turn();
        if (descriptor !== null) size += writeSync(descriptor, chunk);
      } catch {
        // See above.
      }
      done();
    },
  });
}

function open(file: string): number | null {
  try {
    mkdirSync(dirname(file), { recursive: true });
    return openSync(file, 'a', 0o600);
  } catch {
    return null;
  }
}
