/** Lines of a stream, however it comes in pieces. One that is too long is let go by, and told of by its beginning. */
import type { Socket } from 'node:net';

const HEAD = 512;

export function readLines(
  socket: Socket,
  most: number,
  read: (line: string) => void,
  tooLong: (head: string, size: number) => void,
): void {
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size <= most) parts.push(part);
    else if (parts.length !== 1 || parts[0]!.length > HEAD)
      parts = [Buffer.from(Buffer.concat([...parts, part]).subarray(0, HEAD))];
  };
  socket.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      keep(chunk.subarray(from, at));
      from = at + 1;
      const line = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
      const length = size;
      parts = [];
      size = 0;
      if (length > most) tooLong(line.toString(), length);
      else if (length > 0) read(line.toString());
    }
    if (from < chunk.length) keep(chunk.subarray(from));
  });
}
