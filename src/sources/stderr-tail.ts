/** The end of what a server wrote to its standard error, for people to read when something went wrong. */
import { StringDecoder } from 'node:string_decoder';

const KEPT = 64 * 1024;
const NEWLINE = 10;

export class StderrTail {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Whether the last line is not complete yet. */
  isInLine = false;

  push(chunk: Buffer): void {
    if (chunk.length > 0) this.isInLine = chunk[chunk.length - 1] !== NEWLINE;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Shortened only now and then. Joining at every chunk would make many small chunks expensive.
    if (this.#size <= 2 * KEPT && this.#chunks.length <= 1024) return;
    const end = Buffer.from(Buffer.concat(this.#chunks).subarray(-KEPT));
    this.#chunks = [end];
    this.#size = end.length;
  }

  text(): string {
    const all = Buffer.concat(this.#chunks);
    // Starts at a whole line, because half a secret would not be recognised.
    return all.length <= KEPT ? all.toString() : all.subarray(all.indexOf(10, all.length - KEPT) + 1).toString();
  }

  /** The last line that is not blank. */
  lastLine(): string {
    const lines = this.text()
      .split('\n')
      .filter((line) => line.trim() !== '');
    return (lines.at(-1) ?? '').trim();
  }
}

/** The most characters of a line. The rest of it becomes a line of its own. */
const LONGEST_LINE = 16 * 1024;

/** What a server prints, line by line. */
export class PrintedLines {
  readonly #line: (line: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  /** Whether the end of a line is skipped: half a secret in it would not be recognised. */
  #isSkipping: boolean;

  constructor(line: (line: string) => void, startsInLine = false) {
    this.#line = line;
    this.#isSkipping = startsInLine;
  }

  push(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n');
    this.#rest = lines.pop()!;
    if (this.#isSkipping && lines.shift() !== undefined) this.#isSkipping = false;
    if (this.#isSkipping) this.#rest = '';
    if (this.#rest.length > LONGEST_LINE) {
      lines.push(this.#rest);
      this.#rest = '';
    }
    for (const line of lines) this.#line(line);
  }
}
