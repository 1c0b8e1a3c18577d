/**
 * Finds the request that a message of the server belongs to. Some messages name it, and some come with its reply. Any
 * other message on a shared channel is delivered only if a single request can be meant. Nothing is guessed.
 */
import type { Sink } from '../protocol/contract.ts';
import { decodeString, findMember, splice } from '../protocol/json.ts';
import { isHeard, isLogLevel, type LogLevel } from '../protocol/levels.ts';
import { type Message, readProgress } from '../protocol/message.ts';
import { SUBSCRIPTION_ID } from '../protocol/meta.ts';
import { ASKING, isAskable } from '../protocol/question.ts';
import { UNLOGGED } from './abandoned.ts';
import type { PendingRequest, PendingRequests } from './pending.ts';

/** The notifications that a server sends for one `subscriptions/listen`. */
const ON_SUBSCRIPTION: ReadonlySet<string> = new Set([
  'notifications/subscriptions/acknowledged',
  'notifications/tasks',
]);

/** Delivers a notification that names its request, or that came with the reply to it (`id`); false for any other. */
export function deliverNotification(requests: PendingRequests, message: Message, id: number | null): boolean {
  if (message.method === 'notifications/progress') return deliverProgress(requests, message);
  if (!ON_SUBSCRIPTION.has(message.method)) return false;
  const pending = requests.get(subscriptionOf(message) ?? id ?? -1);
  if (pending?.request.method !== 'subscriptions/listen') return false;
  pending.request.sink.notify(message.bytes);
  return true;
}

function deliverProgress(requests: PendingRequests, message: Message): boolean {
  const progress = readProgress(message);
  const pending = progress === null ? undefined : requests.get(progress.token);
  if (progress === null || pending === undefined) return false;
  const { token, sink } = pending.request;
  if (token === null) return true;
  pending.extend();
  sink.notify(splice(message.bytes, progress, token));
  return true;
}

function subscriptionOf({ bytes, metaStart, metaEnd }: Message): number | null {
  const id = metaStart < 0 ? null : findMember(bytes, SUBSCRIPTION_ID, metaStart, metaEnd);
  return id === null ? null : Number(bytes.toString('latin1', id.start, id.end));
}

/** Delivers a log message to the request whose reply it came with (`id`), or to the one that it must belong to. */
export function deliverLog(requests: PendingRequests, message: Message, id: number | null): void {
  const level = levelOf(message);
  if (level === null) return;
  const named = id === null ? undefined : requests.get(id);
  // It came with the reply to a request that is over.
  if (id !== null && named === undefined) return;
  const candidates = named === undefined ? requests.all().filter(isLogged) : [named];
  const sink = candidates[0]?.request.sink;
  if (sink === undefined) return;
  // It may concern any of them. If one has another owner, or wants no messages of this level, it is not delivered.
  const isForOwner = ({ request: { sink: other } }: PendingRequest) =>
    other.owner === sink.owner && hears(other, level);
  if (!candidates.every(isForOwner)) return;
  if (named !== undefined || !requests.abandoned.mayConcern(sink.owner, null)) sink.notify(message.bytes);
}

function levelOf({ bytes, paramsStart, paramsEnd }: Message): LogLevel | null {
  const member = paramsStart < 0 ? null : findMember(bytes, 'level', paramsStart, paramsEnd);
  if (member === null || bytes[member.start] !== 0x22) return null;
  const level = decodeString(bytes, member.start, member.end);
  return isLogLevel(level) ? level : null;
}

function isLogged({ request }: PendingRequest): boolean {
  return !UNLOGGED.has(request.method);
}

function hears({ logLevel }: Sink, level: LogLevel): boolean {
  return logLevel !== null && isHeard(level, logLevel);
}

/**
 * The requests that a question may belong to; an empty list if none of their callers has the capability. `id` is the
 * request whose reply the question came with. `task` is the MCP task that it is about: null is returned if no client
 * has asked for the result of that task yet. A null in the list is an abandoned request, which may be meant as well.
 */
export function questionCandidates(
  requests: PendingRequests,
  capability: string,
  id: number | null,
  task: string | null,
): readonly (PendingRequest | null)[] | null {
  const candidates = addressees(requests, id, task);
  if (candidates === null) return null;
  // To the server all callers are one client, so it may ask in a call whose caller cannot be asked.
  if (!candidates.some(({ request }) => request.sink.asks.has(capability))) return [];
  const isShared = id === null && task === null;
  const isUncertain = isShared && requests.abandoned.mayConcern(candidates[0]!.request.sink.owner, ASKING);
  return isUncertain ? [...candidates, null] : candidates;
}

function addressees(requests: PendingRequests, id: number | null, task: string | null): PendingRequest[] | null {
  // A question about a task may come with the reply to any caller, because to the server all callers are one client.
  if (task !== null) {
    const waiting = requests.all().find(({ request }) => request.taskId === task);
    return waiting === undefined ? null : [waiting];
  }
  if (id === null) return requests.all().filter(mayBeAsked);
  const named = requests.get(id);
  return named === undefined ? [] : [named];
}

/** Requests during which the server may ask something, including abandoned ones. */
export function countAsking(requests: PendingRequests): number {
  return requests.all().filter(mayBeAsked).length + requests.abandoned.count(ASKING);
}

/** The pending requests whose callers can be asked. */
export function countAskable(requests: PendingRequests): number {
  return requests.all().filter((pending) => mayBeAsked(pending) && isAskable(pending.request.sink)).length;
}

/** Requests during which the server may ask something, and does not wait for an answer, including abandoned ones. */
export function countAtWork(requests: PendingRequests): number {
  const isAtWork = (pending: PendingRequest) => mayBeAsked(pending) && pending.pauses === 0;
  return requests.all().filter(isAtWork).length + requests.abandoned.count(ASKING);
}

function mayBeAsked({ request }: PendingRequest): boolean {
  return ASKING.has(request.method);
}
