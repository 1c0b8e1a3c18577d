/** Where the key of the secrets is: the environment goes first. */
import { resolve } from 'node:path';
import type * as z from 'zod';
import type { VaultConfig } from './config.ts';
import type { Environment } from './expand.ts';
import type { Issue, Path } from './issues.ts';
import type { vaultSchema } from './secrets-key-schema.ts';

export interface VaultSource {
  readonly env: Environment;
  readonly cwd: string;
  /** The one of the configuration file. */
  readonly folder: string;
  text(path: Path, written: string): string;
}

export function resolveVault(
  { key_file: written, redact_results: redactResults }: z.output<typeof vaultSchema>,
  { env, cwd, folder, text: expand }: VaultSource,
  issues: Issue[],
): VaultConfig {
  const { SECRETS_KEY: key, SECRETS_KEY_FILE: file, ALLOW_INSECURE_SECRETS: insecure = '' } = env;
  const add = (message: string) => issues.push({ path: [], message });
  if (key && file) add('the environment variables SECRETS_KEY and SECRETS_KEY_FILE are both set. Keep one');
  if (!['', '0', '1', 'false', 'true'].includes(insecure))
    add('the environment variable ALLOW_INSECURE_SECRETS is not 0 or 1. Correct it');
  const inFile = written === undefined ? null : resolve(folder, expand(['secrets', 'key_file'], written));
  return {
    key: () => key || null,
    keyFile: file ? resolve(cwd, file) : key ? null : inFile,
    allowInsecure: insecure === '1' || insecure === 'true',
    redactResults,
  };
}
