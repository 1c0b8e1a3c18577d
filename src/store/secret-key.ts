/** The passphrase that secrets are encrypted with: given, or read from a file that nobody else can read. */
import { readFile, stat } from 'node:fs/promises';
import { GatewayError } from '../base/errors.ts';
import type { VaultConfig } from '../config/secrets-key.ts';

/** Fewer characters can be tried out. */
export const SHORTEST_KEY = 16;
const MOST_BYTES = 64 * 1024;

/** Known to everybody: what is encrypted with it is only kept from being read by accident. */
const INSECURE = 'toolgate: insecure secrets, for development only';

export interface SecretKey {
  readonly passphrase: string;
  /** In words, for messages. */
  readonly from: string;
  readonly isInsecure: boolean;
}

/** Null where there is none. Throws where there is one that cannot be used. */
export async function findKey({ key, keyFile, allowInsecure }: VaultConfig): Promise<SecretKey | null> {
  const given = key();
  if (given !== null) return { passphrase: checked(given, 'SECRETS_KEY'), from: 'SECRETS_KEY', isInsecure: false };
  if (keyFile !== null) return { passphrase: await readKeyFile(keyFile), from: keyFile, isInsecure: false };
  return allowInsecure ? { passphrase: INSECURE, from: 'ALLOW_INSECURE_SECRETS', isInsecure: true } : null;
}

export const INSECURE_TEXT =
  'ALLOW_INSECURE_SECRETS is set and there is no key: whoever can read secrets.enc can read all secrets. For development only; make a key with toolgate secrets keygen.';

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
        `The key file ${file} ${error.code === 'ENOENT' ? 'is not there' : `cannot be read (${error.code})`}. Make one with toolgate secrets keygen --out FILE, or name another.`,
      ),
    );
  const found = await stat(file).catch(unreadable);
  if (!found.isFile() || found.size > MOST_BYTES)
    throw new GatewayError('config_invalid', `${file} is no file with a key. Name the one that has it.`);
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0)
    throw new GatewayError(
      'config_invalid',
      `The key file ${file} can be read by others (mode ${(found.mode & 0o777).toString(8).padStart(4, '0')}). Run: chmod 600 ${file}`,
    );
  const text = await readFile(file, 'utf8').catch(unreadable);
  return checked(text.trim(), file);
}

/** Throws where it is none. */
export function checked(passphrase: string, from: string): string {
  if ([...passphrase].length < SHORTEST_KEY)
    throw new GatewayError(
      'config_invalid',
      `The key (${from}) has fewer than ${SHORTEST_KEY} characters, and could be guessed. Make one with toolgate secrets keygen.`,
    );
  return passphrase;
}
