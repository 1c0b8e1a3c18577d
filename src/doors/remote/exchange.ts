/** One request to a gateway elsewhere, and everything that comes back on it. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, request } from 'undici';
import { messageOf } from '../../base/errors.ts';
import { createSseReader } from '../../protocol/sse.ts';
import { failureReason, isUnreachable } from '../../sources/http-failure.ts';

export interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
  /** The answer begins; `session` is what it names. */
  started?(status: number, session: string | null): void;
}

/** What became of it: it never got there, was answered with a status, or broke off after it had got there. */
export type ExchangeOutcome =
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'answered'; readonly status: number; readonly lastId: string }
  | { readonly kind: 'broken'; readonly reason: string; readonly lastId: string };

/** As much as one message may have; what is longer is the gateway's to cut. */
const MOST_MESSAGE = 256 * 1024 * 1024;

interface Client {
  readonly request: typeof request;
  readonly dispatcher: Agent;
}

/** Loaded when it is wanted: whoever embeds a gateway, or starts one, need not wait for it. */
let loading: Promise<Client> | null = null;

function client(): Promise<Client> {
  loading ??= import('undici').then(({ Agent, request }) => ({
    request,
    // Calls may wait for a person, and streams are silent for long.
    dispatcher: new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } }),
  }));
  return loading;
}

/** Hands over every message as soon as it is whole. Waits for `output` where that is full. Never rejects. */
export async function exchange(
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

/** Between two attempts, in milliseconds: at first, and at most. */
export const SHORTEST = 100;
export const LONGEST = 2_000;

/** Makes the attempt until it arrives, for as long as it is wanted and there is time. A gateway that starts, or ends, is away. */
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
