/**
 * Seals what leaves for the store: AES-256-GCM with the key's id in front, bound to the place where it is kept. Nothing
 * that comes back is believed before it has been opened. Former keys still open what they sealed.
 */
import { createCipheriv, createDecipheriv, createHash, createSecretKey, hkdfSync, randomFillSync } from 'node:crypto';

export interface Sealing {
  seal(plain: Buffer | string, place: string): Buffer;
  /** Null if it was not sealed with one of our keys, for this place. */
  open(sealed: Buffer, place: string): Buffer | null;
  /** The keys for another purpose, equal on all replicas. The first is the current one. */
  keysFor(purpose: string): readonly Buffer[];
}

const VERSION = 1;
const ID = 4;
const IV = 12;
const TAG = 16;
const HEAD = 1 + ID + IV + TAG;

/** The first passphrase seals. */
export function createSealing(passphrases: readonly string[]): Sealing {
  const keys = passphrases.map((passphrase) => {
    const derived = (purpose: string) => Buffer.from(hkdfSync('sha256', passphrase, 'toolgate store', purpose, 32));
    const key = derived('seal');
    const id = createHash('sha256').update(key).digest().subarray(0, ID);
    return { key: createSecretKey(key), derived, id, head: Buffer.from([VERSION, ...id]) };
  });
  const [own] = keys as [(typeof keys)[number]];
  // Random bytes are made for many at once: asking for twelve costs almost as much as sealing a message.
  const random = Buffer.alloc(IV * 256);
  let used = random.length;
  const nextIv = () => {
    if (used === random.length) {
      randomFillSync(random);
      used = 0;
    }
    used += IV;
    return random.subarray(used - IV, used);
  };
  return {
    seal(plain, place) {
      const iv = nextIv();
      const cipher = createCipheriv('aes-256-gcm', own.key, iv).setAAD(Buffer.from(place));
      const sealed = cipher.update(plain as Buffer);
      // It holds nothing back.
      cipher.final();
      return Buffer.concat([own.head, iv, cipher.getAuthTag(), sealed]);
    },
    open(sealed, place) {
      if (sealed.length < HEAD || sealed[0] !== VERSION) return null;
      const id = sealed.subarray(1, 1 + ID);
      const found = keys.find((one) => one.id.equals(id));
      if (found === undefined) return null;
      const iv = sealed.subarray(1 + ID, 1 + ID + IV);
      const cipher = createDecipheriv('aes-256-gcm', found.key, iv).setAAD(Buffer.from(place));
      cipher.setAuthTag(sealed.subarray(HEAD - TAG, HEAD));
      try {
        return Buffer.concat([cipher.update(sealed.subarray(HEAD)), cipher.final()]);
      } catch {
        return null;
      }
    },
    keysFor: (purpose) => keys.map(({ derived }) => derived(`for ${purpose}`)),
  };
}

const UNSEALED = Buffer.from([0]);

/** For a store in the memory of our own processes: nobody else can read it or write it, so bytes are only marked. */
export function createUnsealed(passphrase: string): Sealing {
  return {
    seal: (plain) => Buffer.concat([UNSEALED, typeof plain === 'string' ? Buffer.from(plain) : plain]),
    open: (bytes) => (bytes[0] === UNSEALED[0] ? bytes.subarray(1) : null),
    keysFor: createSealing([passphrase]).keysFor,
  };
}
