/**
 * Calls of sessions that all replicas serve. Each is in the ledger of the store from its beginning to its end. Those of a
 * replica that was killed are ended, or made again if that is declared safe.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../../base/errors.ts';
import { sha256 } from '../../../base/hash.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { idText, type Message } from '../../../protocol/message.ts';
import { READ_DIRECTORY } from '../../../protocol/meta.ts';
import { readMessage } from '../../../protocol/read.ts';
import { readsEmptyEvents } from '../../../protocol/revisions.ts';
import type { Replica } from '../../../store/shared/replica.ts';
import type { Admission, LedgerKey, NewLedgerCall, TakenCall } from '../../../store/shared/shared-store.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { progressIn, SharedExchange } from './shared-exchange.ts';
import type { SharedSession } from './shared-session.ts';
import { openEvent, readStream, type Wakes } from './shared-stream.ts';
import { StreamableSession } from './streamable-session.ts';

export interface SharedCalls {
  /** How many calls wait for the store before they are begun. */
  readonly admitting: number;
  call(session: SharedSession, message: Message, post: ResponseTo, streams: boolean): Promise<void>;
  /** Ends the calls that are still under way. */
  close(): Promise<void>;
}

export interface ResponseTo {
  readonly response: ServerResponse;
  readonly headers: readonly string[];
}

/** The sessions of the calls. */
export interface CallSessions {
  /** Rejects with `session_unknown` if it is over. */
  load(id: string): Promise<SharedSession>;
  end(session: SharedSession): void;
}

/** The requests that do something. They are in the ledger; others are answered at once and can be sent again. */
const LEDGER: ReadonlySet<string> = new Set([
  'tools/call',
  'resources/read',
  READ_DIRECTORY,
  'prompts/get',
  'completion/complete',
  'tasks/result',
]);
/** Seconds. */
const RETRY_AFTER = 1;
/** How often a request is admitted again because the call that it waited for was taken back, or may be about to end. */
const MOST_TRIES = 3;
/** Milliseconds that the end of a call is kept that nobody waits for. */
const AT_ONCE = 1;
/** Milliseconds in which an answer that its client has is in the store, as a rule. */
const ALMOST_WRITTEN = 15;
const NOTHING = Buffer.alloc(0);

/** Whether a request has to be in the ledger. */
export function isCall({ method }: Message): boolean {
  return LEDGER.has(method);
}

/** The stream of the events of a request, by the text of its id. Most clients count. */
export function streamOf(request: string): string {
  return /^\d{1,15}$/.test(request) ? `n${request}` : `a${sha256(request, 'base64url').slice(0, 21)}`;
}

export function createSharedCalls(
  gateway: Gateway,
  replica: Replica,
  wakes: Wakes,
  backpressure: Backpressure,
  sessions: CallSessions,
): SharedCalls {
  const { store } = replica;
  /** The calls that this replica makes or is about to make. An array: `sources/slots.ts` says why. */
  const inHand: CallInHand[] = [];
  /** Those that the store may have admitted, and that were not made, because its reply was lost. */
  const unsure = new Map<string, Message>();
  let admitting = 0;

  replica.takeOver({
    hasInHand: (call) => isInHand(nameOf(call)),
    settled: () => unsure.clear(),
    take(call, from) {
      const name = nameOf(call);
      const one = hold(name);
      const unmade = from === replica.id ? (unsure.get(name) ?? null) : null;
      takeOver(call, one, unmade).catch((error: unknown) => {
        // It is still in our name, so it is found again.
        letGo(one);
        if (unmade !== null) unsure.set(name, unmade);
        replica.doubt();
        if (replica.isUp) gateway.events.emit('failure', { where: 'taking over a call', error });
      });
    },
  });

  function hold(name: string): CallInHand {
    const one: CallInHand = { name, place: inHand.length, message: null, exchange: null };
    inHand.push(one);
    return one;
  }

  function letGo(one: CallInHand): void {
    if (one.place < 0) return;
    const last = inHand.pop()!;
    if (last !== one) {
      inHand[one.place] = last;
      last.place = one.place;
    }
    one.place = -1;
  }

  const isInHand = (name: string, except: CallInHand | null = null) =>
    inHand.some((one) => one !== except && one.name === name);

  function exchangeFor(
    call: LedgerKey,
    epoch: number,
    since: number,
    one: CallInHand,
    session: SharedSession,
    message: Message,
    post: ResponseTo | null,
    streams: boolean,
    progressed: number | null = null,
  ): SharedExchange {
    const exchange = new SharedExchange({
      replica,
      wakes,
      backpressure,
      call,
      epoch,
      since,
      streams,
      progressed,
      response: post?.response ?? null,
      headers: post?.headers ?? [],
      primes: readsEmptyEvents(session.peer.revision!),
      ended: () => letGo(one),
    });
    one.message = message;
    one.exchange = exchange;
    return exchange;
  }

  /**
   * What the store keeps of a request: all of it if another replica may have to make it again, else what the answer needs
   * that its outcome is unknown. Neither of these two members is a secret, and `readKept` checks them.
   */
  function keptOf(call: LedgerKey, session: SharedSession, message: Message): Buffer | string {
    if (mayRepeat(session, message)) return replica.seal(message.bytes, requestAt(call));
    const text = `{"jsonrpc":"2.0","id":${idText(message)},"method":"${message.method}"}`;
    return call.stream.startsWith('n') ? text : Buffer.from(text, 'latin1');
  }

  /** Null if nobody of us has written it. */
  function readKept(call: LedgerKey, kept: Buffer): { readonly message: Message; readonly isWhole: boolean } | null {
    const whole = replica.open(kept, requestAt(call));
    if (whole !== null) return { message: readMessage(whole), isWhole: true };
    const message = readOrNull(kept);
    if (message === null || !isCall(message) || message.idStart < 0 || streamOf(idText(message)) !== call.stream)
      return null;
    return { message, isWhole: false };
  }

  function mayRepeat(session: SharedSession, message: Message): boolean {
    const { store } = gateway.config;
    // No tool is declared safe, so none has to be looked up.
    if (message.method === 'tools/call' && store?.repeat.length === 0 && store.trustHints.length === 0) return false;
    return session.peer.isRepeatable(message);
  }

  /** A replica was killed, and this one has its call now; or it is a call of ours that was not begun, `unmade`. */
  async function takeOver(
    { epoch, bytes, isRead, ...call }: TakenCall,
    one: CallInHand,
    unmade: Message | null,
  ): Promise<void> {
    const { name } = one;
    const kept = unmade === null ? readKept(call, bytes) : { message: unmade, isWhole: true };
    const session = kept === null ? null : await sessions.load(call.session).catch(nullIfUnknown);
    // Nobody can wait for it any more. A call that was not made is forgotten if its client has not sent it again.
    if (kept === null || session === null || (unmade !== null && !isRead)) {
      await store.append(call, replica.id, { epoch, number: 1, bytes: NOTHING, isLast: true }, AT_ONCE);
      letGo(one);
      unsure.delete(name);
      return;
    }
    const { message, isWhole } = kept;
    // Which tools may be called again is known when servers have said what they offer.
    if (isWhole && gateway.opening !== null) await gateway.opening;
    const events = (await store.events(call.session, call.stream, [0, 1], replica.id)) ?? [];
    const progress = events.map((event) => progressIn(openEvent(replica, call, event) ?? NOTHING));
    const most = Math.max(...progress.filter((one) => !Number.isNaN(one)), Number.NEGATIVE_INFINITY);
    const exchange = exchangeFor(call, epoch, performance.now(), one, session, message, null, true, most);
    unsure.delete(name);
    if (unmade !== null || (isWhole && mayRepeat(session, message))) session.peer.request(message, exchange);
    else await exchange.giveUp(message, outcomeUnknown('the replica that made it was killed'));
  }

  function admissionOf(call: LedgerKey, session: SharedSession, message: Message): NewLedgerCall {
    const digest = sha256(`${session.salt}${message.bytes.toString('latin1')}`, 'base64url');
    return { ...call, owner: replica.id, digest, bytes: keptOf(call, session, message) };
  }

  async function admit(asked: NewLedgerCall, one: CallInHand, message: Message): Promise<Admission> {
    admitting++;
    try {
      const admission = await store.admit(asked);
      if (admission !== 'fresh') letGo(one);
      return admission;
    } catch {
      // The store may have it, and nobody would make it. Who sends it again would wait for ever.
      if (!isInHand(one.name, one)) {
        unsure.set(one.name, message);
        replica.doubt();
      }
      letGo(one);
      throw unavailable();
    } finally {
      admitting--;
    }
  }

  return {
    get admitting() {
      return admitting;
    },
    async call(session, message, post, streams) {
      const call = { session: session.id, stream: streamOf(idText(message)) };
      const name = nameOf(call);
      for (let tries = 1; ; tries++) {
        const since = performance.now();
        const asked = admissionOf(call, session, message);
        const one = hold(name);
        const admission = await admit(asked, one, message);
        switch (admission) {
          case 'gone':
            sessions.end(session);
            throw sessionUnknown();
          case 'taken':
            // A client that uses ids again may have an answer that another replica has not yet written.
            if (tries < MOST_TRIES) {
              await sleep(ALMOST_WRITTEN);
              break;
            }
            throw new GatewayError(
              'request_invalid',
              'Another request of this session has the same id and is still running.',
            );
          case 'fresh':
            if (unsure.size > 0) unsure.delete(name);
            session.peer.request(message, exchangeFor(call, 1, since, one, session, message, post, streams));
            return;
          case 'known': {
            // A balancer or the client has sent it again. It is not made twice: both get the same answer.
            const { response, headers } = post;
            if (await readStream({ replica, wakes, backpressure, call }, response, headers, [0, 1], streams)) return;
            if (tries === MOST_TRIES) throw unavailable();
            break;
          }
          default:
            admission satisfies never;
        }
      }
    },
    async close() {
      replica.takeOver({ take() {}, hasInHand: () => true, settled() {} });
      const unknown = outcomeUnknown('the gateway was stopped');
      const given = inHand.map(({ exchange, message }) => exchange?.giveUp(message!, unknown));
      await Promise.race([Promise.all(given), new Promise((resolve) => setTimeout(resolve, 2_000).unref())]);
    },
  };
}

interface CallInHand {
  readonly name: string;
  /** Where it is among the others; -1 if it is over. */
  place: number;
  /** Null until it is made. */
  message: Message | null;
  exchange: SharedExchange | null;
}

function nameOf({ session, stream }: LedgerKey): string {
  return `${session} ${stream}`;
}

/** The place of a request that is kept whole. */
function requestAt({ session, stream }: LedgerKey): string {
  return `call:${session}:${stream}`;
}

function readOrNull(bytes: Buffer): Message | null {
  try {
    return readMessage(bytes);
  } catch {
    return null;
  }
}

function nullIfUnknown(error: unknown): null {
  if (error instanceof GatewayError && error.code === 'session_unknown') return null;
  throw error;
}

/** Waits for the store. An error of it says that sessions cannot be served. */
export async function ask<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof GatewayError ? error : unavailable();
  }
}

export function unavailable(): GatewayError {
  return new GatewayError(
    'store_unavailable',
    `The store of the gateway cannot be reached, so sessions cannot be served now. Try again in ${RETRY_AFTER} s.`,
    { details: { retryAfter: RETRY_AFTER } },
  );
}

export function sessionUnknown(): GatewayError {
  return new GatewayError(
    'session_unknown',
    `The session is unknown or over. Start a new one with ${StreamableSession.beginning}.`,
  );
}

function outcomeUnknown(why: string): GatewayError {
  return new GatewayError(
    'outcome_unknown',
    `The outcome of this call is unknown: ${why} before it was answered. It may have had its effect, and was not made again. Find out before you call again.`,
  );
}
