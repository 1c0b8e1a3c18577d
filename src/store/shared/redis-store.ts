/**
 * The engine on Redis 7.0 or Valkey. A step of several commands is a Lua script, because a replica may be killed at any
 * time. Streams carry news and messages, because they survive a lost connection and publish/subscribe does not.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { createLedgerSteps } from './ledger-steps.ts';
import { CALLS_SCRIPT, EVENTS_SCRIPT } from './redis-calls.ts';
import {
  type CallBudget,
  DAY_KEPT,
  type LedgerKey,
  MOST_EVENTS,
  MOST_NEWS,
  type SharedStore,
  STANDING,
  STANDING_KEPT,
  type StoredEvent,
  type StoreReader,
  type TakenCall,
  type UsedUp,
} from './shared-store.ts';

/**
 * Milliseconds that messages are kept for a replica that does not read them: it may only have been stopped. Without an end,
 * the inbox of one that is gone would stay for ever.
 */
const INBOX_KEPT = 60_000;

const SCRIPTS = {
  // KEYS map, bus   ARGV key, value or '', news
  tgSet: {
    numberOfKeys: 2,
    lua: `
if ARGV[2]=='' then redis.call('HDEL',KEYS[1],ARGV[1]) else redis.call('HSET',KEYS[1],ARGV[1],ARGV[2]) end
redis.call('XADD',KEYS[2],'MAXLEN','~',${MOST_NEWS},'*','d',ARGV[3])`,
  },
  // KEYS inbox   ARGV message
  tgSend: {
    numberOfKeys: 1,
    lua: `
redis.call('XADD',KEYS[1],'MAXLEN','~',${MOST_NEWS},'*','d',ARGV[1])
redis.call('PEXPIRE',KEYS[1],${INBOX_KEPT})`,
  },
  // KEYS session   ARGV ms, field, value…
  tgSession: {
    numberOfKeys: 1,
    lua: `
if redis.call('EXISTS',KEYS[1])==0 then return 0 end
if #ARGV>1 then redis.call('HSET',KEYS[1],unpack(ARGV,2)) end
if ARGV[1]~='0' then redis.call('PEXPIRE',KEYS[1],ARGV[1]) end
return 1`,
  },
  // KEYS session, stream   ARGV message, mark, value
  tgTell: {
    numberOfKeys: 2,
    lua: `
if redis.call('EXISTS',KEYS[1])==0 then return false end
if ARGV[2]~='' then
  if redis.call('HGET',KEYS[1],ARGV[2])==ARGV[3] then return false end
  redis.call('HSET',KEYS[1],ARGV[2],ARGV[3])
end
redis.call('XADD',KEYS[2],'MAXLEN','~',${MOST_EVENTS},'*','d',ARGV[1])
redis.call('PEXPIRE',KEYS[2],${STANDING_KEPT})
return redis.call('HGET',KEYS[1],'holder')`,
  },
  tgCalls: { numberOfKeys: 0, lua: CALLS_SCRIPT },
  tgEvents: { numberOfKeys: 2, lua: EVENTS_SCRIPT },
  // KEYS call, owned of the dead, owned of the taker   ARGV dead, taker, name in owned
  tgTake: {
    numberOfKeys: 3,
    lua: `
local known=redis.call('HMGET',KEYS[1],'o','e','s','q','r')
redis.call('SREM',KEYS[2],ARGV[3])
if known[1]~=ARGV[1] or known[3]=='done' then return false end
local epoch=tonumber(known[2])+1
redis.call('HSET',KEYS[1],'o',ARGV[2],'e',tostring(epoch),'n','0')
redis.call('SADD',KEYS[3],ARGV[3])
return {tostring(epoch),known[4],known[5] and '1' or ''}`,
  },
  // KEYS sign of life, owned, replicas, inbox, lock   ARGV replica, by itself or ''
  tgRetire: {
    numberOfKeys: 5,
    lua: `
if ARGV[2]=='' and redis.call('EXISTS',KEYS[1])==1 or redis.call('EXISTS',KEYS[2])==1 then
  redis.call('DEL',KEYS[5])
  return 0
end
redis.call('SREM',KEYS[3],ARGV[1])
redis.call('DEL',KEYS[1],KEYS[5])
redis.call('PEXPIRE',KEYS[4],${INBOX_KEPT})
return 1`,
  },
  // The number of keys is its first argument.
  // KEYS budgets   ARGV for each: interval, burst or 'day', limit. All or nothing is taken.
  tgSpend: {
    lua: `
local t=redis.call('TIME') local now=t[1]*1000+t[2]/1000
for i=1,#KEYS do
  local a=ARGV[2*i-1] local b=tonumber(ARGV[2*i])
  local v=tonumber(redis.call('GET',KEYS[i]) or '0')
  if a=='day' then
    if v>=b then return {tostring(i-1),'0'} end
  else
    local wait=v-now-(b-tonumber(a))
    if wait>0.001 then return {tostring(i-1),tostring(wait)} end
  end
end
for i=1,#KEYS do
  local a=ARGV[2*i-1] local b=tonumber(ARGV[2*i])
  if a=='day' then
    if redis.call('INCR',KEYS[i])==1 then redis.call('PEXPIRE',KEYS[i],${DAY_KEPT}) end
  else
    local v=tonumber(redis.call('GET',KEYS[i]) or '0')
    local full=math.max(v,now)+tonumber(a)
    redis.call('SET',KEYS[i],string.format('%.3f',full),'PX',math.max(1,math.ceil(full-now)))
  end
end
return false`,
  },
} as const;

/** The commands that the scripts become. Replies are bytes. */
type Scripts = {
  [Name in keyof typeof SCRIPTS as `${Name}Buffer`]: (...args: (string | number | Buffer)[]) => Promise<unknown>;
};

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
    return {
      epoch: epoch!,
      number: number!,
      bytes: fields[1] ?? Buffer.alloc(0),
      isLast: (fields[3]?.length ?? 0) > 0,
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
      await redis.pipeline().sadd(at('replicas'), replica).set(at('hb', replica), '1', 'PX', ms).exec();
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
      const keys = [callKey(call), at('own', from), at('own', by)];
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
