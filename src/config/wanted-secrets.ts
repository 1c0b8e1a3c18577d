/** Which secrets servers and folders of tools need, and which of those are set. */
import type { SecretStatus } from '../secrets/payload.ts';
import { secretsIn } from './launch-secrets.ts';
import type { ServerConfig } from './servers.ts';

/** Names of secrets, by what is known of them. */
export interface SecretNames {
  readonly satisfied: readonly string[];
  readonly missing: readonly string[];
  /** Those that exist but have no value yet. */
  readonly placeholders: readonly string[];
}

export interface WantedSecrets extends SecretNames {
  readonly server: string;
  readonly namespace: string;
}

/** Which of the secrets with these names a namespace would get. */
export function sortSecrets(
  names: readonly string[],
  namespace: string,
  statuses: readonly SecretStatus[],
): SecretNames {
  const stateOf = (name: string) => {
    const found = statuses.filter((one) => one.name === name && (one.scope === null || one.scope === namespace));
    if (found.some(({ status }) => status === 'set')) return 'set';
    return found.length > 0 ? 'placeholder' : 'missing';
  };
  return {
    satisfied: names.filter((name) => stateOf(name) === 'set'),
    missing: names.filter((name) => stateOf(name) === 'missing'),
    placeholders: names.filter((name) => stateOf(name) === 'placeholder'),
  };
}

/** One result for each server that needs secrets. */
export function wantedSecrets(
  servers: readonly ServerConfig[],
  statuses: readonly SecretStatus[],
): readonly WantedSecrets[] {
  const folders = new Set<string>();
  // A folder in two languages has two workers with the same needs.
  const isNew = ({ launch }: ServerConfig) =>
    launch.kind !== 'folder' || (!folders.has(launch.folder) && folders.add(launch.folder) !== undefined);
  return servers
    .filter((server) => server.enabled && secretsIn(server.launch).length > 0 && isNew(server))
    .map(({ key, namespace, launch }) => ({
      server: key,
      namespace,
      ...sortSecrets(secretsIn(launch), namespace, statuses),
    }));
}
