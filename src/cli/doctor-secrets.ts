/** What `toolgate doctor` says about secrets. */
import { stat } from 'node:fs/promises';
import {
  findKey,
  type Gateway,
  GatewayError,
  INSECURE_TEXT,
  keyMissing,
  openSecretStore,
  secretsInArguments,
} from '../internal.ts';
import type { Finding } from './finding.ts';

export async function secretFindings({ config }: Gateway): Promise<Finding[]> {
  const { vault, dataDir, servers } = config;
  const store = openSecretStore(dataDir, vault);
  const findings: Finding[] = [];
  const add = (level: Finding['level'], message: string) => findings.push({ level, about: 'secrets', message });
  const isThere = await stat(store.file).then(
    () => true,
    () => false,
  );
  try {
    const key = await findKey(vault);
    if (key?.isInsecure === true) add('warning', INSECURE_TEXT);
    if (key === null && isThere) add('broken', keyMissing().message);
    const all = key === null && isThere ? [] : await store.list();
    const set = all.filter(({ status }) => status === 'set').length;
    if (set > 0) add('ok', `${set} set, with the key of ${key?.from ?? 'nobody'}`);
    for (const { name, scope, status } of all) {
      if (status !== 'placeholder') continue;
      const where = scope === null ? '' : ` --namespace ${scope}`;
      add('warning', `${name} waits for a value: toolgate secrets set ${name}${where}`);
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    add('broken', error.message);
  }
  const mode = await stat(store.file).then(
    (found) => found.mode & 0o777,
    () => 0,
  );
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    add(
      'warning',
      `${store.file} can be read by others (mode ${mode.toString(8).padStart(4, '0')}). Run: chmod 600 ${store.file}`,
    );
  for (const { key, launch } of servers) {
    const names = secretsInArguments(launch);
    if (names.length > 0)
      findings.push({
        level: 'warning',
        about: key,
        message: `${names.join(', ')} stands in its arguments, which everybody on this machine can read in the list of processes. Give it in env.`,
      });
  }
  return findings;
}
