/** The section `secrets`: where their key is, and whether they are removed from results. Values are kept elsewhere. */
import { resolve } from 'node:path';
import type { ResolveContext } from './context.ts';
import { flag, type Section, section, text } from './fields.ts';

/** Where the key of the secrets is. */
export interface VaultConfig {
  /**
   * The passphrase itself; null if it is in a file, or there is none. A function, so that printing a configuration does
   * not print it.
   */
  readonly key: () => string | null;
  readonly keyFile: string | null;
  /** Whether there may be secrets without a key. */
  readonly allowInsecure: boolean;
  /** Whether secrets are removed from the answers of servers. */
  readonly redactResults: boolean;
}

const secretsShape = {
  key_file: text()
    .optional()
    .describe(
      'File with the key that encrypts the secrets, relative to the folder of this file; no other user may be able to read it. ' +
        'The environment variables SECRETS_KEY and SECRETS_KEY_FILE override this.',
    ),
  redact_results: flag()
    .prefault(true)
    .describe('Removes the secrets that a server was given from its answers. `false`: only from errors and logs.'),
};

export const secretsSchema = section(secretsShape);

export function resolveVault(
  { keyFile, redactResults }: Section<typeof secretsShape>,
  { env, cwd, path, add }: ResolveContext,
): VaultConfig {
  const { SECRETS_KEY: key, SECRETS_KEY_FILE: file, ALLOW_INSECURE_SECRETS: insecure = '' } = env;
  if (key && file) add([], 'the environment variables SECRETS_KEY and SECRETS_KEY_FILE are both set. Keep one');
  if (!['', '0', '1', 'false', 'true'].includes(insecure))
    add([], 'the environment variable ALLOW_INSECURE_SECRETS is not 0 or 1. Correct it');
  const writtenFile = keyFile === null ? null : path(['secrets', 'key_file'], keyFile);
  return {
    key: () => key || null,
    keyFile: file ? resolve(cwd, file) : key ? null : writtenFile,
    allowInsecure: insecure === '1' || insecure === 'true',
    redactResults,
  };
}
