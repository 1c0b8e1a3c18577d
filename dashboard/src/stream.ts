/**
 * One stream of events for the whole page. Views say which topics they want; the stream is opened for exactly those, so
 * that the gateway does no work for what nobody looks at.
 */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { StreamEvents, StreamTopic } from '../../src/dashboard/api-types.ts';
import { get, isOver, replica } from './api.ts';

type Handler = (data: never) => void;
const handlers = new Map<StreamTopic, Set<Handler>>();
let source: EventSource | null = null;
let opened = '';
let planned: ReturnType<typeof setTimeout> | undefined;

export const isLive = signal(false);

/** While the page is hidden for long, the stream rests. */
const REST_AFTER = 5 * 60_000;
const WAIT = 2_000;

export function listen<T extends StreamTopic>(topic: T, handler: (data: StreamEvents[T]) => void): () => void {
  const set = handlers.get(topic) ?? new Set();
  handlers.set(topic, set);
  set.add(handler as Handler);
  plan(0);
  return () => {
    set.delete(handler as Handler);
    // Not at once: the next view may want the same.
    plan(300);
  };
}

export function useStream<T extends StreamTopic>(topic: T, handler: (data: StreamEvents[T]) => void): void {
  useEffect(() => listen(topic, handler), [topic]);
}

function plan(ms: number): void {
  clearTimeout(planned);
  planned = setTimeout(connect, ms);
}

function connect(): void {
  const topics = [...handlers].filter(([, set]) => set.size > 0).map(([topic]) => topic);
  const wanted = topics.sort().join(',');
  if (wanted === opened && source !== null && source.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = null;
  opened = wanted;
  if (wanted === '' || isOver.value) return;
  const made = new EventSource(`admin/events?topics=${wanted}`);
  source = made;
  made.addEventListener('hello', (event) => {
    const hello = JSON.parse((event as MessageEvent<string>).data) as StreamEvents['hello'];
    replica.value = hello.replica;
    isLive.value = true;
  });
  made.addEventListener('bye', () => lost(made));
  made.addEventListener('error', () => lost(made));
  for (const topic of topics)
    made.addEventListener(topic, (event) => {
      const data = JSON.parse((event as MessageEvent<string>).data) as never;
      for (const handler of handlers.get(topic) ?? []) handler(data);
    });
}

/** The browser would try again by itself, but never learns why it was refused. So we ask first. */
function lost(from: EventSource): void {
  if (source !== from) return;
  from.close();
  source = null;
  isLive.value = false;
  setTimeout(async () => {
    // A refusal sets `isOver`, and a gateway that is away is asked again.
    await get('session').then(
      () => connect(),
      () => !isOver.value && plan(WAIT),
    );
  }, 500);
}

let resting: ReturnType<typeof setTimeout> | undefined;
document.addEventListener('visibilitychange', () => {
  clearTimeout(resting);
  if (document.visibilityState === 'visible') plan(0);
  else
    resting = setTimeout(() => {
      source?.close();
      source = null;
      isLive.value = false;
    }, REST_AFTER);
});
