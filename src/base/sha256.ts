import { type BinaryToTextEncoding, createHash } from 'node:crypto';

export function sha256(data: string | Uint8Array, encoding: BinaryToTextEncoding = 'hex'): string {
  return createHash('sha256').update(data).digest(encoding);
}
