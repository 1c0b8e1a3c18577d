/**
 * The streams of events behind the pages that are open. The first one lets the gateway be looked at, the last one ends
 * that. Events are collected and sent a few times a second, in one text for all streams with the same topics.
 */
import type { ServerResponse } from 'node:http';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { EventMap, EventName } from '../base/events.ts';
import { VERSION } from '../base/version.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { LogRow, ReplicaInfo, SessionCounts, StreamEvents, StreamTopic } from './api-types.ts';
import type { LiveCalls } from './live-calls.ts';
import type { PageSession } from './page-sessions.ts';
import { serverCard, serverStamp } from './server-cards.ts';
import { equippedStamp, sessionCounts } from './session-rows.ts';

export const TOPICS: readonly StreamTopic[] = [
  ...(['ticks', 'calls', 'servers', 'sessions', 'approvals', 'catalog', 'logs', 'toolsets', 'logins'] as const),
];

/**
 * Everything is sent once in a second, and soon after something happened. Each other moment would wake the gateway, and cost
 * another write. Milliseconds.
 */
const SECOND = 1_000;
const SOON = 150;
const KEEPALIVE = 15_000;
const MOST_STREAMS = 24;
const MOST_LINES = 1_000;
const MOST_NEW_LINES = 200;
/** Characters of a line. */
const LONGEST_LINE = 4_000;
/** A page that does not read loses batches, then its stream. Bytes. */
const FULL = 1_024 * 1_024;
const LOST = 8 * FULL;

interface OpenStream {
  readonly response: ServerResponse;
  readonly topics: ReadonlySet<StreamTopic>;
  readonly session: PageSession;
  /** What is sent to it next, in one write. */
  text: string;
}

export interface Streams {
  /** Opens a stream. It ends with its session, with its connection, or with the gateway. */
  open(
    response: ServerResponse,
    headers: readonly string[],
    topics: readonly StreamTopic[],
    session: PageSession,
  ): void;
  /** The last lines, oldest first. */
  readonly lines: readonly LogRow[];
  /** Something else changed that pages show. */
  changed(topic: 'toolsets' | 'logins' | 'servers'): void;
  readonly size: number;
  close(): void;
}

export interface StreamsOptions {
  readonly gateway: Gateway;
  readonly calls: LiveCalls;
  isValid(session: PageSession): Promise<boolean>;
}

export function createStreams({ gateway, calls, isValid }: StreamsOptions): Streams {
  const open = new Set<OpenStream>();
  const lines: LogRow[] = [];
  let newLines: LogRow[] = [];
  let skippedLines = 0;
  let lastLine = 0;
  const dirty = new Set<StreamTopic>();
  /** What was last sent of each server. */
  let servers = new Map<string, string>();
  let soon: NodeJS.Timeout | null = null;
  let seconds = 0;
  let counts = '';
  let equipped = '';
  let stop: (() => void) | null = null;

  function mark(...topics: readonly StreamTopic[]): void {
    for (const topic of topics) dirty.add(topic);
    flushSoon();
  }

  function flushSoon(): void {
    if (soon === null && stop !== null) soon = setTimeout(flush, SOON).unref();
  }

  function addLine(source: string, kind: LogRow['kind'], text: string): void {
    const shown = text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}…` : text;
    const line = { id: ++lastLine, at: Date.now(), source, kind, text: shown };
    lines.push(line);
    if (lines.length >= 2 * MOST_LINES) lines.splice(0, lines.length - MOST_LINES);
    if (newLines.length < MOST_NEW_LINES) newLines.push(line);
    else skippedLines++;
    flushSoon();
  }

  /** An observer: it notes what happened, and nothing else happens because of it. */
  function hear<K extends EventName>(name: K, event: EventMap[K]): void {
    switch (name) {
      case 'source': {
        const { source, state, detail } = event as EventMap['source'];
        mark('servers', 'logins');
        addLine(source, 'state', detail === '' ? state : `${state}: ${detail}`);
        break;
      }
      case 'note': {
        const { source, message } = event as EventMap['note'];
        addLine(source, 'note', message);
        break;
      }
      case 'definition': {
        const { source, kind, name: item, fields } = event as EventMap['definition'];
        addLine(
          source,
          'change',
          `changed ${item === '' ? 'its instructions' : `the ${kind} "${item}"`}: ${fields.join(', ')}`,
        );
        break;
      }
      case 'catalog':
        mark('catalog', 'servers', 'toolsets');
        break;
      case 'config': {
        const { ok, message } = event as EventMap['config'];
        mark('catalog', 'servers', 'toolsets', 'logins');
        addLine('toolgate', ok ? 'change' : 'failure', `configuration: ${message}`);
        break;
      }
      case 'admin': {
        const { act, detail, agent } = event as EventMap['admin'];
        mark('toolsets');
        addLine('toolgate', 'change', [act, detail, agent].filter((one) => one !== '').join(' '));
        break;
      }
      case 'approval': {
        const { id, state, agent, tool, by, reason } = event as EventMap['approval'];
        mark('approvals');
        const why = reason === '' ? '' : ` (${reason})`;
        addLine('toolgate', 'change', `approval ${id} of "${tool}" for ${agent}: ${state} by ${by}${why}`);
        break;
      }
      case 'denied': {
        const { agent, method, name: item, code, detail } = event as EventMap['denied'];
        addLine('toolgate', 'refused', `${agent} ${method} ${item ?? detail}: ${code}`);
        break;
      }
      case 'unauthorized':
        addLine(
          'toolgate',
          'refused',
          `a credential was wrong or missing: ${(event as EventMap['unauthorized']).reason}`,
        );
        break;
      case 'forbidden':
        addLine('toolgate', 'refused', `a request was refused: ${(event as EventMap['forbidden']).rule}`);
        break;
      case 'failure': {
        const { where, error } = event as EventMap['failure'];
        addLine('toolgate', 'failure', `${where}: ${messageOf(error)}`);
        break;
      }
      case 'audit':
        addLine('toolgate', 'failure', (event as EventMap['audit']).message);
        break;
      default:
    }
  }

  function begin(): void {
    const stopLooking = gateway.lookOn({ calls, printed: (key, line) => addLine(key, 'output', line) });
    const stopHearing = gateway.events.listen(hear);
    calls.renew();
    const counting = setInterval(second, SECOND).unref();
    const beating = setInterval(() => void beat(), KEEPALIVE).unref();
    servers = new Map(gateway.statuses().map((status) => [status.key, serverStamp(gateway, status)]));
    counts = JSON.stringify(sessionCounts(gateway));
    equipped = equippedStamp(gateway);
    stop = () => {
      stopLooking();
      stopHearing();
      clearInterval(counting);
      if (soon !== null) clearTimeout(soon);
      soon = null;
      clearInterval(beating);
      calls.rest();
      dirty.clear();
      newLines = [];
      stop = null;
    };
  }

  function leave(stream: OpenStream): void {
    if (!open.delete(stream)) return;
    if (open.size === 0) stop?.();
    else showCalls();
  }

  function showCalls(): void {
    calls.showNews(isWanted('calls') ? flushSoon : null);
  }

  function send<Topic extends StreamTopic>(topic: Topic, data: StreamEvents[Topic]): void {
    let text: string | null = null;
    for (const stream of open) {
      if (!stream.topics.has(topic)) continue;
      if (topic === 'calls' && stream.response.writableLength > FULL) continue;
      text ??= eventText(topic, data);
      stream.text += text;
    }
  }

  function write(): void {
    for (const stream of open) {
      const { response, text } = stream;
      if (text === '') continue;
      stream.text = '';
      if (response.writableLength > LOST) response.destroy();
      else response.write(text);
    }
  }

  /** What a topic is about, as it is now; null if it only tells of changes that pages ask about when they show them. */
  function stateOf(topic: StreamTopic): StreamEvents[StreamTopic] | null {
    switch (topic) {
      case 'approvals':
        return { approvals: gateway.approvals.list() };
      case 'servers':
        return { changed: gateway.statuses().map((status) => serverCard(gateway, status)), gone: [] };
      case 'sessions':
        return sessionCounts(gateway);
      case 'catalog':
        return { version: gateway.catalog.version };
      default:
        return null;
    }
  }

  const isWanted = (topic: StreamTopic) => [...open].some(({ topics }) => topics.has(topic));

  function flush(): void {
    if (soon !== null) clearTimeout(soon);
    soon = null;
    if (calls.isShown && calls.hasRoom) {
      const news = calls.news();
      if (news.calls.length > 0 || news.skipped > 0) send('calls', news);
    }
    sendNews();
    write();
    if (calls.isAwaited) flushSoon();
  }

  function sendNews(): void {
    if (newLines.length > 0) {
      const batch = { lines: newLines, skipped: skippedLines };
      newLines = [];
      skippedLines = 0;
      send('logs', batch);
    }
    if (dirty.size === 0) return;
    if (dirty.has('servers') && isWanted('servers')) sendServers();
    if (dirty.has('catalog')) send('catalog', { version: gateway.catalog.version });
    if (dirty.has('approvals')) send('approvals', { approvals: gateway.approvals.list() });
    if (dirty.has('toolsets')) send('toolsets', {});
    if (dirty.has('logins')) send('logins', {});
    dirty.clear();
  }

  function sendServers(): void {
    const now = gateway.statuses();
    const stamps = new Map(now.map((status) => [status.key, serverStamp(gateway, status)]));
    const changed = now.filter(({ key }) => servers.get(key) !== stamps.get(key));
    const gone = [...servers.keys()].filter((key) => !stamps.has(key));
    servers = stamps;
    if (changed.length > 0 || gone.length > 0)
      send('servers', { changed: changed.map((status) => serverCard(gateway, status)), gone });
  }

  function second(): void {
    send('ticks', calls.tick(Date.now()));
    // What changes without an event is compared, each half of it every other second.
    if (++seconds % 2 === 0) {
      if (isWanted('servers')) sendServers();
    } else compareSessions();
    flush();
  }

  function compareSessions(): void {
    if (isWanted('sessions')) {
      const value: SessionCounts = sessionCounts(gateway);
      const text = JSON.stringify(value);
      if (text !== counts) send('sessions', value);
      counts = text;
    }
    if (!isWanted('toolsets')) return;
    const stamp = equippedStamp(gateway);
    if (stamp !== equipped) dirty.add('toolsets');
    equipped = stamp;
  }

  /** Keeps proxies from closing the streams, and ends those whose sessions are over. */
  async function beat(): Promise<void> {
    for (const stream of open) {
      if (await isValid(stream.session)) stream.response.write(': \n\n');
      else {
        stream.response.end(eventText('bye', { reason: 'The session is over.' }));
        leave(stream);
      }
    }
  }

  return {
    lines,
    open(response, headers, topics, session) {
      if (open.size >= MOST_STREAMS)
        throw new GatewayError('sessions_full', `There are ${MOST_STREAMS} pages open already. Close one.`);
      response.writeHead(200, [
        ...headers,
        ...['content-type', 'text/event-stream', 'cache-control', 'no-store', 'x-accel-buffering', 'no'],
        ...['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'],
      ]);
      const stream: OpenStream = { response, topics: new Set(topics), session, text: '' };
      if (open.size === 0) begin();
      open.add(stream);
      showCalls();
      response.once('close', () => leave(stream));
      response.write(
        `retry: 2000\n\n${eventText('hello', { version: VERSION, time: Date.now(), replica: replicaOf(gateway) })}`,
      );
      // What changed before a page opened its stream, or between two of them, is not sent again.
      for (const topic of topics) {
        const data = stateOf(topic);
        if (data !== null) response.write(eventText(topic, data));
      }
    },
    changed(topic) {
      if (open.size > 0) mark(topic);
    },
    get size() {
      return open.size;
    },
    close() {
      for (const stream of open) {
        stream.response.end(eventText('bye', { reason: 'The gateway is being stopped.' }));
        leave(stream);
      }
    },
  };
}

/** Which of several replicas this is. */
export function replicaOf({ replica }: Gateway): ReplicaInfo | null {
  return replica === null ? null : { id: replica.id, count: replica.count };
}

/** One event. JSON has no line breaks, so one line of data is enough. */
export function eventText(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
