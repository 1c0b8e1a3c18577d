/**
 * The engine on Redis 7.0 or Valkey. A step of several commands is a Lua script, because a replica may be killed at any
 * time. Streams carry news and messages, because they survive a lost connection and publish/subscribe does not.
 */
import { Redis, type RedisOptions } from 'ioredis';
import {
  type Admission,
  type CallBudget,
  DAY_KEPT,
  type LedgerKey,
  LONGEST_CALL,
  MOST_EVENTS,
  MOST_NEWS,
  type NewLedgerCall,
  type SharedStore,
  STANDING,
  STANDING_KEPT,
  type StoredEvent,
  type StoreReader,
  type TakenCall,
  type UsedUp,
  type Written,
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
  // Steps of several calls, one after the other. One that fails does not stop the others. The number of keys is its first
  // argument. What each step takes of KEYS and ARGV is at its function.
  tgCalls: {
    lua: `
-- A replica may have come back from the dead since its last sign of life: with a call it is one of the replicas again.
-- KEYS session, call, owned, stream, replicas   ARGV owner, digest, bytes, name in owned
local function admit(k,a)
  local call,stream=KEYS[k+2],KEYS[k+4]
  if redis.call('EXISTS',KEYS[k+1])==0 then return {'gone'} end
  local known=redis.call('HMGET',call,'g','s')
  if known[1] then
    if known[1]==ARGV[a+2] then return {'known'} end
    if known[2]~='done' then return {'taken'} end
    redis.call('DEL',call,stream)
  end
  redis.call('HSET',call,'o',ARGV[a+1],'e','1','n','0','s','open','g',ARGV[a+2],'q',ARGV[a+3])
  redis.call('PEXPIRE',call,${LONGEST_CALL})
  redis.call('SADD',KEYS[k+5],ARGV[a+1])
  redis.call('SADD',KEYS[k+3],ARGV[a+4])
  redis.call('XADD',stream,'0-1','d','')
  redis.call('PEXPIRE',stream,${LONGEST_CALL})
  return {'fresh'}
end
-- n is the last event of this epoch: one that comes again is not written again.
-- KEYS call, stream, owned   ARGV owner, epoch, number, bytes, last or '', name in owned, ms kept
local function append(k,a)
  local call,stream=KEYS[k+1],KEYS[k+2]
  local known=redis.call('HMGET',call,'o','e','s','r','n')
  if not known[1] then return {'missing'} end
  if known[1]~=ARGV[a+1] or known[2]~=ARGV[a+2] then return {'lost'} end
  if tonumber(ARGV[a+3])<=tonumber(known[5] or '0') then return {'done',known[4] or ''} end
  if known[3]=='done' then return {'lost'} end
  redis.call('XADD',stream,'MAXLEN','~',${MOST_EVENTS},ARGV[a+2]..'-'..ARGV[a+3],'d',ARGV[a+4],'l',ARGV[a+5])
  if ARGV[a+5]~='' then
    redis.call('HSET',call,'n',ARGV[a+3],'s','done') redis.call('HDEL',call,'q')
    redis.call('SREM',KEYS[k+3],ARGV[a+6])
    redis.call('PEXPIRE',call,ARGV[a+7]) redis.call('PEXPIRE',stream,ARGV[a+7])
  else redis.call('HSET',call,'n',ARGV[a+3]) end
  return {'done',known[4] or ''}
end
local replies,k,a={},0,0
while a<#ARGV do
  local isAdmit=ARGV[a+1]=='admit'
  local isDone,reply=pcall(isAdmit and admit or append,k,a+1)
  replies[#replies+1]=isDone and reply or {'failed'}
  if isAdmit then k,a=k+5,a+5 else k,a=k+3,a+8 end
end
return replies`,
  },
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
  // KEYS call, stream   ARGV position, reader
  tgEvents: {
    numberOfKeys: 2,
    lua: `
if redis.call('EXISTS',KEYS[1])==1 then redis.call('HSET',KEYS[1],'r',ARGV[2]) end
if redis.call('EXISTS',KEYS[2])==0 then return false end
return redis.call('XRANGE',KEYS[2],ARGV[1],'+','COUNT',${MOST_EVENTS})`,
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

/** How many steps of calls one command carries, and about how many bytes. */
const MOST_STEPS = 64;
const MOST_BYTES = 1_000_000;

/** A step of a call that waits to be sent. */
interface LedgerStep {
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
  resolve(reply: Buffer[]): void;
  reject(error: Error): void;
}

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

  let steps: LedgerStep[] = [];
  let stepBytes = 0;

  /** What calls ask for in one turn is sent at its end, as one command: a command costs more than what it carries. */
  function step(keys: readonly string[], args: readonly (string | number | Buffer)[], size: number): Promise<Buffer[]> {
    return new Promise((resolve, reject) => {
      if (steps.push({ keys, args, resolve, reject }) === 1) setImmediate(sendSteps);
      stepBytes += size;
      // A long command would hold up the others.
      if (steps.length >= MOST_STEPS || stepBytes >= MOST_BYTES) sendSteps();
    });
  }

  function sendSteps(): void {
    const sent = steps;
    if (sent.length === 0) return;
    steps = [];
    stepBytes = 0;
    const keys = sent.flatMap((one) => one.keys);
    const args = sent.flatMap((one) => one.args);
    redis.tgCallsBuffer(keys.length, ...keys, ...args).then(
      (replies) => {
        for (const [i, reply] of (replies as Buffer[][]).entries()) {
          if (String(reply[0]) === 'failed') sent[i]!.reject(new Error('the store refused a step of a call'));
          else sent[i]!.resolve(reply);
        }
      },
      (error: Error) => {
        for (const { reject } of sent) reject(error);
      },
    );
  }

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
      return names.map((name) => ({ session: name.split(' ')[0] ?? '', stream: name.split(' ')[1] ?? '' }));
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

    async admit(call: NewLedgerCall): Promise<Admission> {
      const { session, owner, stream, digest, bytes } = call;
      const keys = [at('s', session), callKey(call), at('own', owner), streamKey(session, stream), at('replicas')];
      const [state] = await step(keys, ['admit', owner, digest, bytes, ownedName(call)], bytes.length);
      return String(state) as Admission;
    },
    async append(call, owner, { epoch, number, bytes, isLast }, keep): Promise<Written> {
      const keys = [callKey(call), streamKey(call.session, call.stream), at('own', owner)];
      const args = ['append', owner, epoch, number, bytes, isLast ? '1' : '', ownedName(call), keep];
      const [state, other] = await step(keys, args, bytes.length);
      const name = String(other ?? '');
      return { state: String(state) as Written['state'], reader: name === '' || name === owner ? null : name };
    },
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
      return state === 'open' ? (owner ?? null) : null;
    },
    async events(session, stream, [epoch, number], to) {
      const found = (await redis.tgEventsBuffer(
        callKey({ session, stream }),
        streamKey(session, stream),
        `(${epoch}-${number}`,
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
