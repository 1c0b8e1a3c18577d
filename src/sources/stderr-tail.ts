/** The end of a stream of text, for people to look at when something went wrong. */

const KEPT = 64 * 1024;

export interface StderrTail {
  push(chunk: Buffer): void;
  text(): string;
  /** The last line with something on it, whole. */
  lastLine(): string;
}

export function createStderrTail(): StderrTail {
  let chunks: Buffer[] = [];
  let size = 0;
  const text = () => {
    const all = Buffer.concat(chunks);
    // Not from the middle of a line: half of a secret would not be known for one.
    return all.length <= KEPT ? all.toString() : all.subarray(all.indexOf(10, all.length - KEPT) + 1).toString();
  };
  return {
    push(chunk) {
      chunks.push(chunk);
      size += chunk.length;
      // Kept loosely, because joining at every chunk would make a flood of small ones costly.
      if (size > 2 * KEPT || chunks.length > 1024) {
        chunks = [Buffer.from(Buffer.concat(chunks).subarray(-KEPT))];
        size = chunks[0]!.length;
      }
    },
    text,
    lastLine() {
      const lines = text()
        .split('\n')
        .filter((line) => line.trim() !== '');
      return (lines.at(-1) ?? '').trim();
    },
  };
}
