/** The steps of several commands, as scripts. */
import { CALLS_SCRIPT, EVENTS_SCRIPT } from './redis-calls.ts';
import { DAY_KEPT, MOST_EVENTS, MOST_NEWS, STANDING_KEPT } from './shared-store.ts';

/**
 * Milliseconds that messages are kept for a replica that does not read them: it may only have been stopped. Without an end,
 * the inbox of one that is gone would stay for ever.
 */
const INBOX_KEPT = 60_000;

export const SCRIPTS = {
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
  // KEYS call, owned of the dead, owned of the taker, sign of life of the dead   ARGV dead, taker, name in owned
  tgTake: {
    numberOfKeys: 4,
    lua: `
if ARGV[1]~=ARGV[2] and redis.call('EXISTS',KEYS[4])==1 then return false end
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
export type Scripts = {
  [Name in keyof typeof SCRIPTS as `${Name}Buffer`]: (...args: (string | number | Buffer)[]) => Promise<unknown>;
};
