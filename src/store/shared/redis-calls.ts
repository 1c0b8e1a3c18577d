/** The ledger of calls on Redis: the scripts for what `ledger-steps.ts` sends, and for reading events. */
import { LONGEST_CALL, MOST_EVENTS } from './shared-store.ts';

/**
 * Steps of several calls, one after the other. One that fails does not stop the others.
 *
 * `PREFIX:c:SESSION:STREAM` is a call: o its owner, e its epoch, n its last event of this epoch, s whether it is done,
 * g the digest of the request, q the request, r who reads it elsewhere, b its answer, or a where that is among others, in
 * `PREFIX:a:BATCH`. Events before the answer are in the stream `PREFIX:e:SESSION:STREAM`; most calls have none.
 *
 * ARGV prefix, a line for each step, then the bytes of the steps that have some. The script makes the names of keys, and
 * replies with one line for each step, because every argument and every element of a reply costs.
 */
export const CALLS_SCRIPT = `
local prefix,nextBytes,named,kept=ARGV[1],3,{},{}
-- A replica may have come back from the dead since its last sign of life: with a call it is one of the replicas again.
local function admit(line,bytes)
  local owner,session,stream,digest,request=string.match(line,'^a. (%S+) (%S+) (%S+) (%S+) ?(%S*)$')
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
  redis.call('HSET',call,'o',owner,'e','1','n','0','g',digest,'q',bytes..request)
  redis.call('PEXPIRE',call,${LONGEST_CALL})
  return 'fresh'
end
-- n is the last event of this epoch: one that comes again is not written again.
local function append(line,bytes)
  local owner,session,stream,epoch,number,keep,batch=string.match(line,'^e. (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) ?(%S*)$')
  local call=prefix..'c:'..session..':'..stream
  local known=redis.call('HMGET',call,'o','e','n','s','r')
  if not known[1] then return 'missing' end
  if known[1]~=owner or known[2]~=epoch then return 'lost' end
  local done='done '..(known[5] or '')
  if tonumber(number)<=tonumber(known[3]) then return done end
  if known[4] then return 'lost' end
  if batch~='' and not kept[batch] then return 'failed' end
  local events=prefix..'e:'..session..':'..stream
  if keep=='0' then
    redis.call('XADD',events,'MAXLEN','~',${MOST_EVENTS},epoch..'-'..number,'d',bytes)
    if number=='1' then redis.call('PEXPIRE',events,${LONGEST_CALL}) end
    redis.call('HSET',call,'n',number)
  else
    if batch=='' then redis.call('HSET',call,'n',number,'s','done','b',bytes,'q','')
    else redis.call('HSET',call,'n',number,'s','done','a',batch,'q','') end
    redis.call('PEXPIRE',call,keep)
    redis.call('SREM',prefix..'own:'..owner,session..' '..stream)
    if epoch~='1' or number~='1' then redis.call('PEXPIRE',events,keep) end
  end
  return done
end
local function put(line,bytes)
  local batch,keep=string.match(line,'^p. (%S+) (%d+)$')
  redis.call('SET',prefix..'a:'..batch,bytes,'PX',keep)
  kept[batch]=true
  return 'done'
end
local kinds={a=admit,e=append,p=put}
local replies={}
for line in string.gmatch(ARGV[2],'[^\\n]+') do
  local bytes=''
  if string.sub(line,2,2)=='b' then bytes,nextBytes=ARGV[nextBytes],nextBytes+1 end
  local isDone,reply=pcall(kinds[string.sub(line,1,1)],line,bytes)
  replies[#replies+1]=isDone and reply or 'failed'
end
return table.concat(replies,'\\n')`;

/**
 * The events of a stream after a position, and the answer of its call. KEYS call, stream
 * ARGV epoch, number, reader, what keys of answers that were sealed together begin with
 */
export const EVENTS_SCRIPT = `
local known=redis.call('HMGET',KEYS[1],'o','e','n','s','b','a')
if known[1] then redis.call('HSET',KEYS[1],'r',ARGV[3])
elseif redis.call('EXISTS',KEYS[2])==0 then return false end
local events=redis.call('XRANGE',KEYS[2],'('..ARGV[1]..'-'..ARGV[2],'+','COUNT',${MOST_EVENTS})
local epoch,number=tonumber(known[2] or '0'),tonumber(known[3] or '0')
local isNew=epoch>tonumber(ARGV[1]) or epoch==tonumber(ARGV[1]) and number>tonumber(ARGV[2])
-- After as many as this come others: the answer is not the next.
if known[4] and isNew and #events<${MOST_EVENTS} then
  local answer,batch=known[5] or '',known[6] or ''
  if batch~='' then
    answer=redis.call('GET',ARGV[4]..batch)
    if not answer then return false end
  end
  events[#events+1]={known[2]..'-'..known[3],{'d',answer,'l','1','a',batch}}
end
return events`;
