/** Opens what a gateway shares with its other replicas. Loaded only if the configuration has a store. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { findKey, readKeyFile } from '../store/secret-key.ts';
import { openReplica, type Replica, type ReplicaEvents } from '../store/shared/replica.ts';
import { createSealing } from '../store/shared/sealing.ts';

/** Rejects if there is no key, or if the store cannot be reached. */
export async function openReplicaOf(config: Config, events: ReplicaEvents): Promise<Replica> {
  const { store: given, vault } = config;
  if (given === null) throw new Error('there is no store');
  const key = await findKey(vault);
  if (key === null)
    throw new GatewayError(
      'config_invalid',
      'A store needs the key of the secrets, because what is kept there is encrypted with it. Make one with toolgate secrets keygen, and give the same to every replica: in SECRETS_KEY, or in the file that SECRETS_KEY_FILE names.',
    );
  const former = await Promise.all(given.formerKeys.map(readKeyFile));
  const { openRedisStore } = await import('../store/shared/redis-store.ts');
  const url = given.url();
  const store = await openRedisStore(url, given.prefix, events.note).catch((error: unknown) => {
    const { host } = new URL(url);
    throw new GatewayError(
      'store_unavailable',
      `The store at ${host} cannot be used: ${messageOf(error)}. Start it, or correct "store" in the configuration.`,
    );
  });
  return openReplica(store, createSealing([key.passphrase, ...former]), events);
}
