/** The passphrase that encrypts the secrets: given directly, or read from a file that only its owner can read. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { createFile } from '../base/files.ts';
import { userFolder } from '../base/user-folder.ts';
import type { VaultConfig } from '../config/secrets-key.ts';

/** A shorter key could be guessed. */
export const SHORTEST_KEY = 16;
const MOST_BYTES = 64 * 1024;

/** Everyone can read this passphrase here. It only prevents that secrets are read by accident. */
const INSECURE = 'toolgate: insecure secrets, for development only';

export interface SecretKey {
  readonly passphrase: string;
  /** Where it came from, for messages. */
  readonly from: string;
  readonly isInsecure: boolean;
}

/** The configured key; null if there is none. Throws if the key cannot be used. */
export async function findKey({ key, keyFile, allowInsecure }: VaultConfig): Promise<SecretKey | null> {
  const given = key();
  if (given !== null) return { passphrase: checked(given, 'SECRETS_KEY'), from: 'SECRETS_KEY', isInsecure: false };
  if (keyFile !== null) return { passphrase: await readKeyFile(keyFile), from: keyFile, isInsecure: false };
  return allowInsecure ? { passphrase: INSECURE, from: 'ALLOW_INSECURE_SECRETS', isInsecure: true } : null;
}

/** 32 random bytes. */
export function newKey(): string {
  return randomBytes(32).toString('base64url');
}

/** The key of this user, for configurations that name none. */
export function userKeyFile(env: Readonly<Record<string, string | undefined>>): string {
  return join(userFolder(env), 'secrets.key');
}

/** Makes a key file, unless there is one that can be used. Resolves to whether it is new. */
export async function makeKeyFile(file: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const isNew = await createFile(file, `${newKey()}\n`);
  await readKeyFile(file);
  return isNew;
}

export const INSECURE_TEXT =
  'ALLOW_INSECURE_SECRETS is set and there is no key: anyone who can read secrets.enc can read all secrets. Use this for development only; make a key with toolgate secrets keygen.';

export function keyMissing(): GatewayError {
  return new GatewayError(
    'config_invalid',
    'There is no key for the secrets. Make one with toolgate secrets keygen --out FILE, and name the file in SECRETS_KEY_FILE or secrets.key_file, or give the key in SECRETS_KEY.',
  );
}

export async function readKeyFile(file: string): Promise<string> {
  const unreadable = (error: NodeJS.ErrnoException) =>
    Promise.reject(
      new GatewayError(
        'config_invalid',
        `The key file ${file} ${error.code === 'ENOENT' ? 'does not exist' : `cannot be read (${error.code})`}. Make one with toolgate secrets keygen --out FILE, or name another.`,
      ),
    );
  const found = await stat(file).catch(unreadable);
  if (!found.isFile() || found.size > MOST_BYTES)
    throw new GatewayError('config_invalid', `${file} is not a key file. Name the file that holds the key.`);
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0)
    throw new GatewayError(
      'config_invalid',
      `The key file ${file} can be read by others (mode ${(found.mode & 0o777).toString(8).padStart(4, '0')}). Run: chmod 600 ${file}`,
    );
  const text = await readFile(file, 'utf8').catch(unreadable);
  return checked(text.trim(), file);
}

/** Throws if it is too short. */
export function checked(passphrase: string, from: string): string {
  if ([...passphrase].length < SHORTEST_KEY)
    throw new GatewayError(
      'config_invalid',
      `The key (${from}) has fewer than ${SHORTEST_KEY} characters, and could be guessed. Make one with toolgate secrets keygen.`,
    );
  return passphrase;
}
