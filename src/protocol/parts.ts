/** Bytes in one piece or in several. Long results pass through in the parts they came in: joining would copy them. */
import { oneLine } from './json.ts';

export type Parts = Buffer | readonly Buffer[];

export function join(bytes: Parts): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return bytes.length === 1 ? bytes[0]! : Buffer.concat(bytes);
}

export function sizeOf(bytes: Parts): number {
  return Buffer.isBuffer(bytes) ? bytes.length : bytes.reduce((sum, part) => sum + part.length, 0);
}

/** At least so many bytes of the beginning, in one piece, if there are so many. A single part can be shorter. */
export function beginningOf(parts: readonly Buffer[], bytes: number): Buffer {
  let beginning = parts[0]!;
  for (let i = 1; i < parts.length && beginning.length < bytes; i++)
    beginning = Buffer.concat([beginning, parts[i]!.subarray(0, bytes)]);
  return beginning;
}

/** The same of the end. */
export function endOf(parts: readonly Buffer[], bytes: number): Buffer {
  let end = parts.at(-1)!;
  for (let i = parts.length - 2; i >= 0 && end.length < bytes; i--)
    end = Buffer.concat([parts[i]!.subarray(-bytes), end]);
  return end;
}

export function partsOnOneLine(bytes: Parts): Parts {
  return Buffer.isBuffer(bytes) ? oneLine(bytes) : bytes.map(oneLine);
}
