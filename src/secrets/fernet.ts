/** Fernet, as Python's `cryptography` has it: AES-128-CBC under an HMAC of SHA-256, in one text with the time of its making. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const VERSION = 0x80;
/** Of the version and the time, of the nonce, of the seal. */
const HEAD = 9;
const NONCE = 16;
const SEAL = 32;

export interface DecryptedToken {
  readonly message: Buffer;
  readonly nonce: Buffer;
  /** When it was made, in seconds since 1970. */
  readonly seconds: number;
}

/** `key` has 32 bytes: the first half seals, the second encrypts. */
export function encrypt(message: Buffer, key: Buffer, seconds: number, nonce: Buffer = randomBytes(NONCE)): string {
  const head = Buffer.alloc(HEAD);
  head[0] = VERSION;
  head.writeBigUInt64BE(BigInt(seconds), 1);
  const cipher = createCipheriv('aes-128-cbc', key.subarray(16), nonce);
  const body = Buffer.concat([head, nonce, cipher.update(message), cipher.final()]);
  return toText(Buffer.concat([body, sealOf(body, key)]));
}

/** Null where the text is not what was made with this key. The seal is looked at before anything else. */
export function decrypt(token: string, key: Buffer): DecryptedToken | null {
  const bytes = Buffer.from(token, 'base64url');
  // Node reads past what is no base64; that would leave room for changes that nobody sees.
  if (bytes.length < HEAD + NONCE + 16 + SEAL || toText(bytes) !== token) return null;
  const body = bytes.subarray(0, -SEAL);
  if (!timingSafeEqual(bytes.subarray(-SEAL), sealOf(body, key)) || body[0] !== VERSION) return null;
  const nonce = body.subarray(HEAD, HEAD + NONCE);
  const decipher = createDecipheriv('aes-128-cbc', key.subarray(16), nonce);
  const message = Buffer.concat([decipher.update(body.subarray(HEAD + NONCE)), decipher.final()]);
  return { message, nonce, seconds: Number(body.readBigUInt64BE(1)) };
}

function sealOf(body: Buffer, key: Buffer): Buffer {
  return createHmac('sha256', key.subarray(0, 16)).update(body).digest();
}

/** With padding, which Python insists on. */
function toText(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
