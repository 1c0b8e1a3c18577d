/**
 * The encrypted file of secrets: one JSON object with a Fernet token, and how its key is derived from a passphrase. All
 * other members are bound to the token, so a change of any byte is noticed.
 */
import { pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { BoundedMap } from '../base/bounded-map.ts';
import { getOrMake } from '../base/memo.ts';
import { isObject, toObject } from '../base/objects.ts';
import { decrypt, encrypt } from './fernet.ts';

/** Rounds of PBKDF2 for a new file. A file with fewer is encrypted again at its next change. */
export const ROUNDS = 600_000;
const FEWEST = 1_000;
/** A file with more could keep the gateway busy. */
const MOST = 10_000_000;
const SALT = 16;

const KDF = 'pbkdf2-hmac-sha256';
const CIPHER = 'fernet';
const KEYS = 'cipher,ciphertext,created_at,kdf,nonce,salt,version';

/** How a key is derived from a passphrase. */
export interface Recipe {
  /** Base64. */
  readonly salt: string;
  readonly rounds: number;
}

export interface EncryptedSecrets extends Recipe {
  readonly nonce: string;
  readonly ciphertext: string;
  readonly created: string;
}

/** The keys of one passphrase. Deriving one takes half a second, so the last few are remembered. */
export interface Keyring {
  keyFor(recipe: Recipe): Promise<Buffer>;
}

const REMEMBERED = 3;
const derive = promisify(pbkdf2);

export function createKeyring(passphrase: string): Keyring {
  const keys = new BoundedMap<string, Promise<Buffer>>(REMEMBERED);
  return {
    keyFor: ({ salt, rounds }) =>
      getOrMake(keys, `${salt} ${rounds}`, () => derive(passphrase, Buffer.from(salt, 'base64'), rounds, 32, 'sha256')),
  };
}

export function newRecipe(rounds: number = ROUNDS): Recipe {
  return { salt: randomBytes(SALT).toString('base64'), rounds };
}

/** Throws an error whose message completes the sentence "the file cannot be opened: …". */
export function readEncrypted(text: string): EncryptedSecrets {
  const value = parse(text);
  const { version, kdf, cipher, salt, nonce, ciphertext, created_at: created } = value;
  if (version !== 1)
    throw new Error(`its version is ${JSON.stringify(version)}, but this Toolgate reads only version 1`);
  const { name, iterations: rounds, ...rest } = toObject(kdf);
  if (name !== KDF)
    throw new Error(`its key is derived with ${JSON.stringify(name)}, but this Toolgate knows only ${KDF}`);
  if (cipher !== CIPHER)
    throw new Error(`it is encrypted with ${JSON.stringify(cipher)}, but this Toolgate knows only ${CIPHER}`);
  if (Object.keys(rest).length > 0 || Object.keys(value).sort().join() !== KEYS)
    throw new Error('it has unexpected or missing keys');
  if (typeof rounds !== 'number' || !Number.isInteger(rounds) || rounds < FEWEST || rounds > MOST)
    throw new Error(`its number of iterations is not from ${FEWEST} to ${MOST}`);
  if (!isBase64(salt, 8) || !isBase64(nonce, 16)) throw new Error('its salt or nonce is damaged');
  if (typeof ciphertext !== 'string' || typeof created !== 'string' || !TIME.test(created))
    throw new Error('its ciphertext or time is damaged');
  return { salt, rounds, nonce, ciphertext, created };
}

/** The decrypted text. Throws if it was encrypted with another key, or changed since. */
export function decryptSecrets({ nonce, ciphertext, created }: EncryptedSecrets, key: Buffer): string {
  const opened = decrypt(ciphertext, key);
  if (opened === null) throw new Error('it was written with another key, or changed since');
  if (opened.nonce.toString('base64') !== nonce || !isTimeOf(created, opened.seconds))
    throw new Error('it was changed since it was written');
  return opened.message.toString();
}

export function encryptSecrets(message: string, { salt, rounds }: Recipe, key: Buffer): string {
  const seconds = Math.floor(Date.now() / 1000);
  const nonce = randomBytes(16);
  // Without spaces and line breaks, so that no byte can change unnoticed.
  return JSON.stringify({
    version: 1,
    kdf: { name: KDF, iterations: rounds },
    cipher: CIPHER,
    salt,
    nonce: nonce.toString('base64'),
    ciphertext: encrypt(Buffer.from(message), key, seconds, nonce),
    created_at: toTime(seconds),
  });
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // The parser's message would show parts of the text.
  }
  throw new Error('it is not a complete JSON object');
}

function isBase64(text: unknown, least: number): text is string {
  if (typeof text !== 'string') return false;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length >= least && bytes.length <= 64 && bytes.toString('base64') === text;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
const OWN_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

function toTime(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** Exact to the second if we wrote it. Other programs read the clock twice, so theirs may differ a little. */
function isTimeOf(created: string, seconds: number): boolean {
  if (OWN_TIME.test(created)) return created === toTime(seconds);
  return Math.abs(Date.parse(created) / 1000 - seconds) < 60;
}
