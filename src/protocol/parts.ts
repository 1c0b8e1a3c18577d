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

export function partsOnOneLine(bytes: Parts): Parts {
  return Buffer.isBuffer(bytes) ? oneLine(bytes) : bytes.map(oneLine);
}
