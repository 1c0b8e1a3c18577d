/** Which secrets servers and folders of tools want, and which of those there are. */

import { secretsIn } from '../config/launch-secrets.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { SecretStatus } from './secrets-meta.ts';

export interface WantedSecrets {
  readonly server: string;
  readonly namespace: string;
  readonly satisfied: readonly string[];
  readonly missing: readonly string[];
  /** Somebody has noted that they are needed, and nobody has set them. */
  readonly placeholders: readonly string[];
}

/** Of all that want any. */
export function wantedSecrets(
  servers: readonly ServerConfig[],
  statuses: readonly SecretStatus[],
): readonly WantedSecrets[] {
  const folders = new Set<string>();
  // A folder in two languages has two workers, which want the same.
  const isNew = ({ launch }: ServerConfig) =>
    launch.kind !== 'folder' || (!folders.has(launch.folder) && folders.add(launch.folder) !== undefined);
  return servers
    .filter((server) => server.enabled && secretsIn(server.launch).length > 0 && isNew(server))
    .map(({ key, namespace, launch }) => {
      const stateOf = (name: string) => {
        const found = statuses.filter((one) => one.name === name && (one.scope === null || one.scope === namespace));
        if (found.some(({ status }) => status === 'set')) return 'set';
        return found.length > 0 ? 'placeholder' : 'missing';
      };
      const names = secretsIn(launch);
      return {
        server: key,
        namespace,
        satisfied: names.filter((name) => stateOf(name) === 'set'),
        missing: names.filter((name) => stateOf(name) === 'missing'),
        placeholders: names.filter((name) => stateOf(name) === 'placeholder'),
      };
    });
}
