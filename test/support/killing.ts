/** Processes that set secrets and are killed at random moments. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { VaultConfig } from '../../src/config/secrets-key.ts';
import { openSecretStore, type SecretStore } from '../../src/store/secrets.ts';
import { type Child, childEnv, startChild } from './child.ts';
import { waitFor } from './processes.ts';
import { tempFolder } from './temp.ts';

export const KEY = 'a key that is only for tests';
const writer = fileURLToPath(new URL('writer.mjs', import.meta.url));

export function vaultWith(key: string | null, more: Partial<VaultConfig> = {}): VaultConfig {
  return { key: () => key, keyFile: null, allowInsecure: false, redactResults: true, ...more };
}

/** Uses few key derivation rounds, because these tests are not about deriving the key. */
export function openStore(folder: string, key: string | null = KEY): SecretStore {
  return openSecretStore(folder, vaultWith(key), 1_000);
}

export function startWriter(folder: string, ...args: (string | number)[]): Child {
  const env = childEnv({ SECRETS_KEY: KEY });
  return startChild(process.execPath, [writer, folder, ...args.map(String)], { cwd: folder, env });
}

/** After every kill the store contains the last acknowledged value, or the one that was just being written. */
export async function killAtRandom(times: number): Promise<void> {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.set('OTHER', 'ns', 'stays');
  let next = 1;
  for (let i = 0; i < times; i++) {
    const child = startWriter(folder, 'COUNT', next, 1_000_000);
    await waitFor(() => child.stdout() !== '', 10_000);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
    child.process.kill('SIGKILL');
    await child.exited;
    const done = Number(child.stdout().trim().split('\n').at(-1));
    const secrets = await store.read();
    const found = Number(secrets.global.get('COUNT')?.replace('number ', ''));
    expect([done, done + 1], `kill ${i}`).toContain(found);
    expect(secrets.namespaces.get('ns')?.get('OTHER')).toBe('stays');
    expect((await store.list()).map(({ name, status }) => [name, status])).toEqual([
      ['COUNT', 'set'],
      ['OTHER', 'set'],
    ]);
    expect(readFileSync(store.file, 'utf8')).not.toContain('number');
    next = found + 1;
  }
}
