/** One HTTP request to a remote gateway, and every message that comes back on it. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, request } from 'undici';
import { messageOf } from '../../base/errors.ts';
import type { ClientTls } from '../../config/launch.ts';
import { createSseReader } from '../../protocol/sse.ts';
import { failureReason, isUnreachable } from '../../sources/http-failure.ts';
import { ownServerOptions, poolOptions } from '../../sources/pool-options.ts';

export interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
  /** The response has started; `session` is the session id in its headers. */
  started?(status: number, session: string | null): void;
}

/** The outcome: the request never arrived, was answered with a status, or broke off after it had arrived. */
export type ExchangeOutcome =
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'answered'; readonly status: number; readonly lastId: string }
  | { readonly kind: 'broken'; readonly reason: string; readonly lastId: string };

/** The maximum size of one message. It is generous: truncating long results is up to the gateway. */
const MOST_MESSAGE = 256 * 1024 * 1024;

export interface RemoteClient {
  readonly request: typeof request;
  readonly dispatcher: Agent;
}

/** Loaded on first use, so that embedding or starting a gateway does not pay for it. */
export async function openClient(tls: ClientTls | undefined): Promise<RemoteClient> {
  const { Agent, request } = await import('undici');
  // No timeouts: calls may wait for a person's approval, and streams may be silent for long.
  return { request, dispatcher: new Agent(await poolOptions({ ...(tls !== undefined && { tls }) })) };
}

/** For the gateway of this machine whose certificate is in this file. */
export async function openOwnClient(cert: string, pair: ClientTls['pair']): Promise<RemoteClient> {
  const { Agent, request } = await import('undici');
  return { request, dispatcher: new Agent(await ownServerOptions(cert, pair)) };
}

/** Passes on each message as soon as it is complete. Pauses while `output` is full. Never rejects. */
export async function exchange(
  client: () => Promise<RemoteClient>,
  url: string,
  { method, headers, body, signal, started }: Sent,
  output: Writable,
  heard: (message: Buffer) => void,
): Promise<ExchangeOutcome> {
  let lastId = '';
  let hasArrived = false;
  try {
    const { request, dispatcher } = await client();
    const response = await request(url, { method, headers, body: body ?? null, signal, dispatcher });
    hasArrived = true;
    const session = response.headers['mcp-session-id'];
    started?.(response.statusCode, typeof session === 'string' ? session : null);
    const type = String(response.headers['content-type'] ?? '');
    const isStream = type.startsWith('text/event-stream');
    const parts: Buffer[] = [];
    const reader = createSseReader(
      MOST_MESSAGE,
      (data) => data.length > 0 && heard(data),
      () => {
        throw new Error('a message is too long');
      },
    );
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (isStream) reader.push(chunk);
      else parts.push(chunk);
      lastId = reader.lastId;
      if (output.writableNeedDrain) await once(output, 'drain', { signal });
    }
    if (!isStream && type.startsWith('application/json') && parts.length > 0) heard(Buffer.concat(parts));
    return { kind: 'answered', status: response.statusCode, lastId };
  } catch (error) {
    const known = error as Error;
    if (!hasArrived && isUnreachable(known)) return { kind: 'unreachable', reason: failureReason(known) };
    return { kind: 'broken', reason: messageOf(error), lastId };
  }
}

/** The pause between two attempts, in milliseconds: the first, and the longest. */
export const SHORTEST = 100;
export const LONGEST = 2_000;

/**
 * Repeats the attempt until it arrives, the signal aborts or the time is up. A gateway that is starting or stopping
 * answers 503, which counts as unreachable.
 */
export async function arrive(
  attempt: () => Promise<ExchangeOutcome>,
  signal: AbortSignal,
  until: number,
): Promise<ExchangeOutcome> {
  for (let pause = SHORTEST; ; pause = Math.min(pause * 2, LONGEST)) {
    const outcome = await attempt();
    const isAway = outcome.kind === 'unreachable' || (outcome.kind === 'answered' && outcome.status === 503);
    if (!isAway || signal.aborted || Date.now() + pause > until) return outcome;
    await sleep(pause, undefined, { signal }).catch(() => {});
  }
}
