/** Newline-delimited framing: bytes in, whole lines out. A line over the limit is dropped whole and reported once. */

export interface LineSink {
  /** A line, in the parts it came in. */
  line(parts: readonly Buffer[]): void;
  /** `head` is the beginning of the line, as much of it as came at once. */
  tooLong(limit: number, head: Buffer): void;
}

export interface LineReader {
  push(chunk: Buffer): void;
}

export function createLineReader(limit: number, sink: LineSink): LineReader {
  let parts: Buffer[] = [];
  let size = 0;
  let dropping = false;

  const tooLong = (last: Buffer) => {
    const head = parts[0] ?? last;
    parts = [];
    size = 0;
    sink.tooLong(limit, head);
  };

  const finish = (tail: Buffer) => {
    if (dropping) {
      dropping = false;
      return;
    }
    if (size + tail.length > limit) {
      tooLong(tail);
      return;
    }
    const line = size > 0 ? [...parts, tail] : [tail];
    parts = [];
    size = 0;
    trimEnd(line);
    if (line.length > 0) sink.line(line);
  };

  return {
    push(chunk) {
      let start = 0;
      for (;;) {
        const newline = chunk.indexOf(0x0a, start);
        if (newline < 0) break;
        finish(chunk.subarray(start, newline));
        start = newline + 1;
      }
      if (start === chunk.length || dropping) return;
      const rest = start === 0 ? chunk : chunk.subarray(start);
      if (size + rest.length > limit) {
        dropping = true;
        tooLong(rest);
        return;
      }
      parts.push(rest);
      size += rest.length;
    },
  };
}

/** Takes away a carriage return before the line feed, and parts with nothing in them at the end. */
function trimEnd(line: Buffer[]): void {
  let last = line.at(-1);
  if (last?.length === 0) {
    line.pop();
    last = line.at(-1);
  }
  if (last?.[last.length - 1] !== 0x0d) return;
  line.pop();
  if (last.length > 1) line.push(last.subarray(0, last.length - 1));
}
