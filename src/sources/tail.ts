/** The end of a stream of text, for people to look at when something went wrong. */

const KEPT = 64 * 1024;

export interface Tail {
  push(chunk: Buffer): void;
  text(): string;
  /** The last line with something on it, cut to a readable length. */
  lastLine(): string;
}

export function createTail(): Tail {
  let chunks: Buffer[] = [];
  let size = 0;
  const text = () => Buffer.concat(chunks).subarray(-KEPT).toString();
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
      return (lines.at(-1) ?? '').trim().slice(0, 300);
    },
  };
}
