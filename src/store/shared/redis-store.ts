/**
 * The engine on Redis 7.0 or Valkey. A step of several commands is a Lua script, because a replica may be killed at any
 * time. Streams carry news and messages, because they survive a lost connection and publish/subscribe does not.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { createLedgerSteps } from './ledger-steps.ts';
import { SCRIPTS, type Scripts } from './redis-scripts.ts';
import {
  type CallBudget,
  type LedgerKey,
  MOST_NEWS,
  type SharedStore,
  STANDING,
  type StoredEvent,
  type StoreReader,
  type TakenCall,
  type UsedUp,
} from './shared-store.ts';

/** Milliseconds that one read waits for news. */
const BLOCK = 2_000;
/**
 * Milliseconds that a command may take: an engine that is stopped must not hold calls up for longer. A connection on which
 * nothing comes back for that long is opened again, because its other end may be gone without a word.
 */
const COMMAND = 3_000;
const CONNECT = 10_000;

/** Rejects if the engine cannot be reached. `report` gets what goes wrong with the connection, without secrets. */
export async function openRedisStore(
  url: string,
  prefix: string,
  report: (message: string) => void,
): Promise<SharedStore> {
  const options: RedisOptions = {
    lazyConnect: true,
    // What cannot be sent now fails now. Who asked decides whether to try again.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT,
    commandTimeout: COMMAND,
    socketTimeout: COMMAND,
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1_000),
    scripts: SCRIPTS,
  };
  const redis = new Redis(url, options) as Redis & Scripts;
  const reading = new Redis(url, {
    ...options,
    commandTimeout: BLOCK + COMMAND,
    socketTimeout: BLOCK + COMMAND,
  });
  let isUp = false;
  let wasLost = false;
  let isClosed = false;
  let reader: StoreReader | null = null;
  const lost = (error: { message: string }) => {
    if (isUp) report(`the store cannot be reached: ${error.message}`);
    if (isUp) wasLost = true;
    isUp = false;
  };
  redis.on('ready', () => {
    isUp = true;
    if (!wasLost) return;
    wasLost = false;
    report('the store is reached again');
    reader?.returned();
  });
  redis.on('error', lost);
  redis.on('close', () => lost({ message: 'the connection is closed' }));
  // Its errors are the same.
  reading.on('error', () => {});
  try {
    await Promise.all([redis.connect(), reading.connect()]);
  } catch (error) {
    redis.disconnect();
    reading.disconnect();
    throw error;
  }
  isUp = true;

  const at = (...parts: readonly string[]) => [prefix, ...parts].join(':');
  const busKey = at('bus');
  const callKey = ({ session, stream }: LedgerKey) => at('c', session, stream);
  const ownedName = ({ session, stream }: LedgerKey) => `${session} ${stream}`;
  const streamKey = (session: string, stream: string) => at('e', session, stream);

  /** Reads news and messages until it is closed. */
  async function read(replica: string, start: string): Promise<void> {
    const inbox = at('in', replica);
    let lastNews = start;
    let lastReceived = '0-0';
    while (!isClosed) {
      try {
        const found = await reading.xreadBuffer(
          'COUNT',
          500,
          'BLOCK',
          BLOCK,
          'STREAMS',
          busKey,
          inbox,
          lastNews,
          lastReceived,
        );
        for (const [key, entries] of found ?? []) {
          const isNews = key.toString() === busKey;
          for (const [id, fields] of entries) {
            if (isNews) lastNews = id.toString();
            else lastReceived = id.toString();
            if (isNews) reader?.news(fields[1]!);
            else reader?.received(fields[1]!);
          }
          // What was read is not needed again.
          if (!isNews) void redis.xtrim(inbox, 'MINID', lastReceived).catch(() => {});
        }
      } catch {
        if (!isClosed) await new Promise((resolve) => setTimeout(resolve, 100).unref());
      }
    }
  }

  function toEvent(id: Buffer, fields: readonly Buffer[]): StoredEvent {
    const [epoch, number] = id.toString().split('-').map(Number);
    const batch = fields[5]?.toString() ?? '';
    return {
      epoch: epoch!,
      number: number!,
      bytes: fields[1] ?? Buffer.alloc(0),
      isLast: (fields[3]?.length ?? 0) > 0,
      ...(batch !== '' && { batch }),
    };
  }

  return {
    get isUp() {
      return isUp;
    },
    async follow(replica, given) {
      reader = given;
      const [newest] = await redis.xrevrange(busKey, '+', '-', 'COUNT', 1);
      void read(replica, newest?.[0] ?? '0-0');
    },

    async beat(replica, ms) {
      const replies = await redis.pipeline().sadd(at('replicas'), replica).set(at('hb', replica), '1', 'PX', ms).exec();
      // It does not reject by itself, and a replica that believes in a sign of life that nobody saw is wrong about its calls.
      for (const [error] of replies ?? []) if (error !== null) throw error;
    },
    async replicas() {
      const ids = await redis.smembers(at('replicas'));
      const alive = ids.length === 0 ? [] : await redis.mget(ids.map((id) => at('hb', id)));
      return ids.map((id, i) => ({ id, isAlive: alive[i] !== null }));
    },
    async retire(replica, by) {
      const keys = [at('hb', replica), at('own', replica), at('replicas'), at('in', replica), at('lock', replica)];
      return (await redis.tgRetireBuffer(...keys, replica, replica === by ? '1' : '')) === 1;
    },
    claim: async (dead, by, ms) => (await redis.set(at('lock', dead), by, 'PX', ms, 'NX')) !== null,
    async owned(replica) {
      const names = await redis.smembers(at('own', replica));
      const calls = names.map((name) => /^([\w-]+) ([\w-]+)$/.exec(name));
      // Somebody else has written them. They would be there for ever.
      const foreign = names.filter((_, i) => calls[i] === null);
      if (foreign.length > 0) await redis.srem(at('own', replica), ...foreign);
      return calls.flatMap((call) => (call === null ? [] : [{ session: call[1]!, stream: call[2]! }]));
    },
    async publish(entry) {
      await redis.xadd(busKey, 'MAXLEN', '~', MOST_NEWS, '*', 'd', entry);
    },
    async send(replica, entry) {
      await redis.tgSendBuffer(at('in', replica), entry);
    },

    async setEntry(map, key, value, news) {
      await redis.tgSetBuffer(at('m', map), busKey, key, value ?? '', news);
    },
    async entries(map) {
      const found = await redis.hgetallBuffer(at('m', map));
      return new Map(Object.entries(found));
    },

    async openSession(id, fields, ms) {
      await redis
        .multi()
        .hset(at('s', id), { ...fields })
        .pexpire(at('s', id), ms)
        .exec();
    },
    async session(id, ms) {
      const found = await redis.hgetallBuffer(at('s', id));
      if (Object.keys(found).length === 0) return null;
      void redis.pexpire(at('s', id), ms).catch(() => {});
      return found;
    },
    setSession: async (id, fields, ms) =>
      (await redis.tgSessionBuffer(at('s', id), ms, ...Object.entries(fields).flat())) === 1,
    endSession: async (id) => (await redis.del(at('s', id), streamKey(id, STANDING))) > 0,
    async hold(session, replica) {
      await redis.tgSessionBuffer(at('s', session), 0, 'holder', replica);
    },
    async tell(session, message, mark) {
      const [name, value] = mark ?? ['', ''];
      const holder = await redis.tgTellBuffer(at('s', session), streamKey(session, STANDING), message, name, value);
      return holder === null ? null : String(holder);
    },

    ...createLedgerSteps(async (lines, bytes) => String(await redis.tgCallsBuffer(at(''), lines, ...bytes))),
    async take(call, from, by): Promise<TakenCall | null> {
      const keys = [callKey(call), at('own', from), at('own', by), at('hb', from)];
      const found = (await redis.tgTakeBuffer(...keys, from, by, ownedName(call))) as Buffer[] | null;
      if (found === null) return null;
      const [epoch, bytes, read] = found;
      const isRead = (read?.length ?? 0) > 0;
      return { ...call, epoch: Number(String(epoch)), bytes: bytes ?? Buffer.alloc(0), isRead };
    },
    async ownerOf(call) {
      const [owner, state] = await redis.hmget(callKey(call), 'o', 's');
      return state === null ? (owner ?? null) : null;
    },
    async events(session, stream, [epoch, number], to) {
      const found = (await redis.tgEventsBuffer(
        callKey({ session, stream }),
        streamKey(session, stream),
        epoch,
        number,
        to,
        at('a', ''),
      )) as [Buffer, Buffer[]][] | null;
      if (found === null) return stream === STANDING ? [] : null;
      return found.map(([id, fields]) => toEvent(id, fields));
    },

    async spend(budgets: readonly CallBudget[]): Promise<UsedUp | null> {
      const keys = budgets.map(({ key }) => at('l', key));
      const values = budgets.flatMap((one) => ('limit' in one ? ['day', one.limit] : [one.interval, one.burst]));
      const refused = (await redis.tgSpendBuffer(keys.length, ...keys, ...values)) as Buffer[] | null;
      if (refused === null) return null;
      return { index: Number(String(refused[0])), pause: Number(String(refused[1])) };
    },
    async keepResult(key, value, ms) {
      await redis.set(at('k', key), value, 'PX', ms);
    },
    findResult: (key) => redis.getBuffer(at('k', key)),

    async close() {
      isClosed = true;
      isUp = false;
      redis.disconnect();
      reading.disconnect();
    },
  };
}
