/** Reads event streams one event at a time, for a client that can disconnect after any of them. */
import { request } from 'node:http';
import { atEnd } from './cleanup.ts';
import type { HttpGateway } from './gateway.ts';
import type { RawSession } from './raw-http.ts';

export interface SseEvent {
  readonly id: string;
  readonly name: string;
  readonly data: string;
  /** The message of the event; null for an event that only carries an id. */
  readonly message: Record<string, unknown> | null;
}

export interface Events {
  readonly status: number;
  /** The next event; null at the end of the stream. */
  next(): Promise<SseEvent | null>;
  /** Events that have arrived and were not read yet. */
  readonly waiting: number;
  /** Stops reading until it is resumed. */
  pause(): void;
  resume(): void;
  drop(): void;
}

/** A streamed reply: to a POST if there is a body, else to a GET. */
export function openEvents(
  { origin }: Pick<HttpGateway, 'origin'>,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Events> {
  const sent = request(origin + path, {
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    headers: {
      accept: body === undefined ? 'text/event-stream' : 'application/json, text/event-stream',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  sent.on('error', () => {});
  atEnd(() => sent.destroy());
  sent.end(body);
  return new Promise((resolve) => {
    sent.on('response', (response) => {
      let text = '';
      let ended = false;
      const asking: ((event: SseEvent | null) => void)[] = [];
      const events: SseEvent[] = [];
      const hand = () => {
        while (asking.length > 0 && (events.length > 0 || ended)) asking.shift()!(events.shift() ?? null);
      };
      const end = () => {
        ended = true;
        hand();
      };
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        const parts = (text + chunk).split('\n\n');
        text = parts.pop()!;
        for (const part of parts.filter((one) => !one.startsWith(':'))) events.push(readEvent(part));
        hand();
      });
      response.on('end', end);
      response.on('error', end);
      response.on('close', end);
      resolve({
        status: response.statusCode!,
        next: () =>
          new Promise((got) => {
            asking.push(got);
            hand();
          }),
        get waiting() {
          return events.length;
        },
        pause: () => response.pause(),
        resume: () => response.resume(),
        drop: () => sent.destroy(),
      });
    });
  });
}

function readEvent(text: string): SseEvent {
  const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(text)?.[1] ?? '';
  const data = field('data');
  const name = field('event') || 'message';
  return { id: field('id'), name, data, message: name === 'message' && data !== '' ? JSON.parse(data) : null };
}

/** Every event until the stream ends. */
export async function readAll(events: Events): Promise<SseEvent[]> {
  const all: SseEvent[] = [];
  for (let event = await events.next(); event !== null; event = await events.next()) all.push(event);
  return all;
}

/** Reconnects to get what followed an event. */
export function comeBack(gateway: HttpGateway, session: RawSession, lastId: string): Promise<Events> {
  return openEvents(gateway, '/mcp', { ...session.headers, 'last-event-id': lastId });
}
