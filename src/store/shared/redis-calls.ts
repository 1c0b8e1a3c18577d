/**
 * The ledger of calls on Redis. Most of what a gateway asks of a store are the two steps of each call, so they travel
 * together: a command costs far more than what it carries.
 */
import {
  type Admission,
  type LedgerKey,
  LONGEST_CALL,
  MOST_EVENTS,
  type SharedStore,
  type Written,
} from './shared-store.ts';

/**
 * Steps of several calls, one after the other. One that fails does not stop the others.
 *
 * `PREFIX:c:SESSION:STREAM` is a call: o its owner, e its epoch, n its last event of this epoch, s whether it is done,
 * g the digest of the request, q the request, r who reads it elsewhere, b its answer. Events before the answer are in the
 * stream `PREFIX:e:SESSION:STREAM`; most calls have none.
 *
 * ARGV prefix, a line for each step, then the bytes of the steps that have some. The script makes the names of keys, and
 * replies with one line for each step, because every argument and every element of a reply costs.
 */
export const CALLS_SCRIPT = `
local prefix,nextBytes,named=ARGV[1],3,{}
-- A replica may have come back from the dead since its last sign of life: with a call it is one of the replicas again.
local function admit(line,bytes)
  local owner,session,stream,digest=string.match(line,'^a. (%S+) (%S+) (%S+) (%S+)$')
  if redis.call('EXISTS',prefix..'s:'..session)==0 then return 'gone' end
  local call=prefix..'c:'..session..':'..stream
  local known=redis.call('HMGET',call,'g','s')
  if known[1] then
    if known[1]==digest then return 'known' end
    if not known[2] then return 'taken' end
    redis.call('DEL',call,prefix..'e:'..session..':'..stream)
  end
  if not named[owner] then
    redis.call('SADD',prefix..'replicas',owner)
    named[owner]=true
  end
  redis.call('SADD',prefix..'own:'..owner,session..' '..stream)
  redis.call('HSET',call,'o',owner,'e','1','n','0','g',digest,'q',bytes)
  redis.call('PEXPIRE',call,${LONGEST_CALL})
  return 'fresh'
end
-- n is the last event of this epoch: one that comes again is not written again.
local function append(line,bytes)
  local owner,session,stream,epoch,number,keep=string.match(line,'^e. (%S+) (%S+) (%S+) (%d+) (%d+) (%d+)$')
  local call=prefix..'c:'..session..':'..stream
  local known=redis.call('HMGET',call,'o','e','n','s','r')
  if not known[1] then return 'missing' end
  if known[1]~=owner or known[2]~=epoch then return 'lost' end
  local done='done '..(known[5] or '')
  if tonumber(number)<=tonumber(known[3]) then return done end
  if known[4] then return 'lost' end
  local events=prefix..'e:'..session..':'..stream
  if keep=='0' then
    redis.call('XADD',events,'MAXLEN','~',${MOST_EVENTS},epoch..'-'..number,'d',bytes)
    if number=='1' then redis.call('PEXPIRE',events,${LONGEST_CALL}) end
    redis.call('HSET',call,'n',number)
  else
    redis.call('HSET',call,'n',number,'s','done','b',bytes,'q','')
    redis.call('PEXPIRE',call,keep)
    redis.call('SREM',prefix..'own:'..owner,session..' '..stream)
    if epoch~='1' or number~='1' then redis.call('PEXPIRE',events,keep) end
  end
  return done
end
local replies={}
for line in string.gmatch(ARGV[2],'[^\\n]+') do
  local bytes=''
  if string.sub(line,2,2)=='b' then bytes,nextBytes=ARGV[nextBytes],nextBytes+1 end
  local isDone,reply=pcall(string.sub(line,1,1)=='a' and admit or append,line,bytes)
  replies[#replies+1]=isDone and reply or 'failed'
end
return table.concat(replies,'\\n')`;

/** The events of a stream after a position, and the answer of its call. KEYS call, stream   ARGV epoch, number, reader */
export const EVENTS_SCRIPT = `
local known=redis.call('HMGET',KEYS[1],'o','e','n','s','b')
if known[1] then redis.call('HSET',KEYS[1],'r',ARGV[3])
elseif redis.call('EXISTS',KEYS[2])==0 then return false end
local events=redis.call('XRANGE',KEYS[2],'('..ARGV[1]..'-'..ARGV[2],'+','COUNT',${MOST_EVENTS})
local epoch,number=tonumber(known[2] or '0'),tonumber(known[3] or '0')
local isNew=epoch>tonumber(ARGV[1]) or epoch==tonumber(ARGV[1]) and number>tonumber(ARGV[2])
-- After as many as this come others: the answer is not the next.
if known[4] and isNew and #events<${MOST_EVENTS} then
  events[#events+1]={known[2]..'-'..known[3],{'d',known[5],'l','1'}}
end
return events`;

/** How many steps one command carries, and about how many bytes. */
const MOST_STEPS = 64;
const MOST_BYTES = 1_000_000;

/** A step that waits to be sent. */
interface LedgerStep {
  readonly line: string;
  readonly bytes: Buffer;
  resolve(reply: string): void;
  reject(error: Error): void;
}

/** `send` runs the script with these arguments. */
export function createRedisCalls(
  prefix: string,
  send: (...args: (string | Buffer)[]) => Promise<unknown>,
): Pick<SharedStore, 'admit' | 'append'> {
  let waiting: LedgerStep[] = [];
  let waitingBytes = 0;
  /** Commands that have no reply yet. */
  let underWay = 0;

  function step(kind: 'a' | 'e', line: string, bytes: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const isFirst =
        waiting.push({ line: `${kind}${bytes.length > 0 ? 'b' : '-'} ${line}`, bytes, resolve, reject }) === 1;
      waitingBytes += bytes.length;
      // A long command would hold up the others.
      if (waiting.length >= MOST_STEPS || waitingBytes >= MOST_BYTES) sendAll();
      else if (isFirst && underWay === 0) setImmediate(sendNext);
    });
  }

  /** While one command is under way, steps gather for the next: the busier the gateway, the more go together. */
  function sendNext(): void {
    if (underWay === 0) sendAll();
  }

  function sendAll(): void {
    const sent = waiting;
    if (sent.length === 0) return;
    waiting = [];
    waitingBytes = 0;
    underWay++;
    const withBytes = sent.filter(({ bytes }) => bytes.length > 0).map(({ bytes }) => bytes);
    send(`${prefix}:`, sent.map(({ line }) => line).join('\n'), ...withBytes).then(
      (reply) => {
        for (const [i, one] of String(reply).split('\n').entries()) {
          if (one === 'failed') sent[i]!.reject(new Error('the store refused a step of a call'));
          else sent[i]!.resolve(one);
        }
        ended();
      },
      (error: Error) => {
        for (const { reject } of sent) reject(error);
        ended();
      },
    );
  }

  function ended(): void {
    underWay--;
    if (waiting.length > 0) setImmediate(sendNext);
  }

  return {
    async admit({ owner, session, stream, digest, bytes }): Promise<Admission> {
      return (await step('a', `${owner} ${session} ${stream} ${digest}`, bytes)) as Admission;
    },
    async append({ session, stream }: LedgerKey, owner, { epoch, number, bytes, isLast }, keep): Promise<Written> {
      const line = `${owner} ${session} ${stream} ${epoch} ${number} ${isLast ? keep : 0}`;
      const [state, reader = ''] = (await step('e', line, bytes)).split(' ');
      return { state: state as Written['state'], reader: reader === '' || reader === owner ? null : reader };
    },
  };
}
