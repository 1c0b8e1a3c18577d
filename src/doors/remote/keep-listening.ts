/** Keeps the subscription of a client without a session alive: reopens it when the gateway is back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { idText, isResponse, type Message, parseParams } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/read.ts';
import { arrive, type ExchangeOutcome, LONGEST, SHORTEST } from './exchange.ts';
import { LISTS, listChanged } from './words.ts';

/**
 * In milliseconds. A first subscription that ends sooner is not reopened: the gateway has nothing to send for it.
 */
const LEAST_LISTENED = 1_000;

/** Resolves when the client cancels the subscription, or the gateway refuses it. */
export async function keepListening(
  request: Message,
  post: (heard: (bytes: Buffer) => void) => Promise<ExchangeOutcome>,
  signal: AbortSignal,
  write: (message: Buffer) => void,
  failure: (outcome: ExchangeOutcome) => Buffer,
): Promise<void> {
  const id = idText(request);
  const filter = (parseParams(request).notifications ?? {}) as Record<string, unknown>;
  const wanted = LISTS.filter((kind) => filter[`${kind}ListChanged`] === true);
  let isAcknowledged = false;
  let pause = SHORTEST;
  for (let isAgain = false; !signal.aborted; isAgain = true) {
    const began = Date.now();
    let last: Buffer | null = null;
    const hear = (bytes: Buffer) => {
      const message = readMessage(bytes);
      if (isResponse(message)) last = bytes;
      else if (message.method !== 'notifications/subscriptions/acknowledged') write(bytes);
      // Changes during the interruption were missed, so every list is reported as changed.
      else if (isAcknowledged) for (const line of listChanged(wanted, id)) write(line);
      else {
        isAcknowledged = true;
        write(bytes);
      }
    };
    const outcome = await arrive(() => post(hear), signal, Number.POSITIVE_INFINITY);
    if (signal.aborted) return;
    const isRefused = outcome.kind === 'answered' && (outcome.status !== 200 || !isAcknowledged);
    if (isRefused || (last !== null && Date.now() - began < LEAST_LISTENED && !isAgain)) {
      write(last ?? failure(outcome));
      return;
    }
    pause = Date.now() - began > LONGEST ? SHORTEST : Math.min(pause * 2, LONGEST);
    await sleep(pause, undefined, { signal }).catch(() => {});
  }
}
