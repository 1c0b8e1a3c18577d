/** The end of what a server wrote to its standard error, for people to read when something went wrong. */
import { StringDecoder } from 'node:string_decoder';

const KEPT = 64 * 1024;

export class StderrTail {
  #chunks: Buffer[] = [];
  #size = 0;

  push(chunk: Buffer): void {
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

  constructor(line: (line: string) => void) {
    this.#line = line;
  }

  push(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n');
    this.#rest = lines.pop()!;
    if (this.#rest.length > LONGEST_LINE) {
      lines.push(this.#rest);
      this.#rest = '';
    }
    for (const line of lines) this.#line(line);
  }
}
