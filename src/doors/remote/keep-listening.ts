/** Keeps a subscription of a client without a session alive: it is opened again when the gateway is back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { idText, isResponse, type Message, parseParams } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/read.ts';
import { arrive, type ExchangeOutcome, LONGEST, SHORTEST } from './exchange.ts';
import { LISTS, listChanged } from './words.ts';

/** In milliseconds. A first subscription that ends sooner is taken as final: there was nothing to listen to. */
const LISTENED = 1_000;

/** Resolves when the client cancels the subscription, or the gateway refuses it. */
export async function keepNews(
  message: Message,
  post: (heard: (bytes: Buffer) => void) => Promise<ExchangeOutcome>,
  signal: AbortSignal,
  write: (message: Buffer) => void,
  failure: (outcome: ExchangeOutcome) => Buffer,
): Promise<void> {
  const id = idText(message);
  const filter = (parseParams(message).notifications ?? {}) as Record<string, unknown>;
  const wanted = LISTS.filter((kind) => filter[`${kind}ListChanged`] === true);
  let isAcknowledged = false;
  let pause = SHORTEST;
  for (let isAgain = false; !signal.aborted; isAgain = true) {
    const began = Date.now();
    let last: Buffer | null = null;
    const hear = (bytes: Buffer) => {
      const told = readMessage(bytes);
      if (isResponse(told)) last = bytes;
      else if (told.method !== 'notifications/subscriptions/acknowledged') write(bytes);
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
    if (isRefused || (last !== null && Date.now() - began < LISTENED && !isAgain)) {
      write(last ?? failure(outcome));
      return;
    }
    pause = Date.now() - began > LONGEST ? SHORTEST : Math.min(pause * 2, LONGEST);
    await sleep(pause, undefined, { signal }).catch(() => {});
  }
}
