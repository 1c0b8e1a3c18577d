/** Two replicas in the process of the test, on each of the engines that replicas can share. */
import { configFromValue } from '../../src/config/load.ts';
import { type Gateway, openHttpDoor } from '../../src/index.ts';
import { createStoreHost, openIpcStore } from '../../src/store/shared/ipc-store.ts';
import { openReplica, type Replica } from '../../src/store/shared/replica.ts';
import { createUnsealed } from '../../src/store/shared/sealing.ts';
import { openChannel } from './channel.ts';
import { childEnv } from './child.ts';
import { atEnd } from './cleanup.ts';
import { FLEET_ENV } from './fleet.ts';
import { openGateway } from './in-process-gateway.ts';
import { isMissing } from './needs.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { tempFolder } from './temp.ts';

export const ENGINES = [...(isMissing('redis') ? [] : (['redis'] as const)), 'processes'] as const;
export type Engine = (typeof ENGINES)[number];

const TOKEN = 'the token of the agent default';
/** The headers of a client that is the agent `default`. */
export const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

export interface OneOfTwo {
  readonly gateway: Gateway;
  readonly url: string;
  readonly origin: string;
  readonly dataDir: string;
  post(body: string, headers?: Record<string, string>): Promise<Response>;
}

export interface Pair {
  readonly a: OneOfTwo;
  readonly b: OneOfTwo;
  /** Null for the engine of one machine. */
  readonly redis: RedisServer | null;
}

/** Both have the same configuration, and data folders of their own. */
export async function openPair(engine: Engine, value: object): Promise<Pair> {
  const redis = engine === 'redis' ? await startRedis() : null;
  const host = redis === null ? createStoreHost() : null;
  const one = async (): Promise<OneOfTwo> => {
    const home = tempFolder();
    const env = childEnv({ HOME: home, ...FLEET_ENV });
    const store = redis === null ? {} : { store: { ...(value as { store?: object }).store, url: redis.url } };
    const config = configFromValue({ controls: [], ...value, ...store }, { cwd: home, env });
    const replica = host === null ? undefined : await processReplica(host);
    const gateway = await openGateway(config, { env, ...(replica !== undefined && { replica }) });
    atEnd(() => gateway.close());
    await gateway.tried();
    const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: TOKEN });
    atEnd(() => http.close());
    const { url } = http;
    return {
      gateway,
      url,
      origin: new URL(url).origin,
      dataDir: config.dataDir,
      post: (body, headers = {}) =>
        fetch(url, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        }),
    };
  };
  const a = await one();
  const b = await one();
  return { a, b, redis };
}

/** What each process of `--processes` does, on a channel in this process. */
async function processReplica(host: ReturnType<typeof createStoreHost>): Promise<Replica> {
  const [parent, child] = openChannel();
  host.serve(parent);
  const store = openIpcStore(child);
  return openReplica(store, createUnsealed(await store.key()), { note() {}, failure() {} });
}
