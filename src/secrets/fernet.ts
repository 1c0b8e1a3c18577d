/** Fernet, as in Python's `cryptography`: AES-128-CBC and HMAC-SHA-256 in one text, with the time of encryption. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const VERSION = 0x80;
/** Lengths in bytes: version and time, nonce, HMAC. */
const HEAD = 9;
const NONCE = 16;
const HMAC = 32;

export interface DecryptedToken {
  readonly message: Buffer;
  readonly nonce: Buffer;
  /** When it was encrypted, in seconds since 1970. */
  readonly seconds: number;
}

/** `key` has 32 bytes: the first half signs, the second encrypts. */
export function encrypt(message: Buffer, key: Buffer, seconds: number, nonce: Buffer = randomBytes(NONCE)): string {
  const head = Buffer.alloc(HEAD);
  head[0] = VERSION;
  head.writeBigUInt64BE(BigInt(seconds), 1);
  const cipher = createCipheriv('aes-128-cbc', key.subarray(16), nonce);
  const body = Buffer.concat([head, nonce, cipher.update(message), cipher.final()]);
  return toText(Buffer.concat([body, hmacOf(body, key)]));
}

/** Null if the token was not made with this key. The HMAC is checked before anything else. */
export function decrypt(token: string, key: Buffer): DecryptedToken | null {
  const bytes = Buffer.from(token, 'base64url');
  // Node ignores characters that are not base64, so a changed token could decode to the same bytes.
  if (bytes.length < HEAD + NONCE + 16 + HMAC || toText(bytes) !== token) return null;
  const body = bytes.subarray(0, -HMAC);
  if (!timingSafeEqual(bytes.subarray(-HMAC), hmacOf(body, key)) || body[0] !== VERSION) return null;
  const nonce = body.subarray(HEAD, HEAD + NONCE);
  const decipher = createDecipheriv('aes-128-cbc', key.subarray(16), nonce);
  const message = Buffer.concat([decipher.update(body.subarray(HEAD + NONCE)), decipher.final()]);
  return { message, nonce, seconds: Number(body.readBigUInt64BE(1)) };
}

function hmacOf(body: Buffer, key: Buffer): Buffer {
  return createHmac('sha256', key.subarray(0, 16)).update(body).digest();
}

/** With padding, which Python requires. */
function toText(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
