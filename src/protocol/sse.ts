/** Reads and writes server-sent events as bytes. */
import { CollectedParts } from '../base/collected-parts.ts';
import { oneLine } from './json.ts';

/** What goes before and after the data of an event. */
export const SSE_DATA = 'event: message\ndata: ';
export const SSE_END = '\n\n';
const DATA = Buffer.from(SSE_DATA);
const END = Buffer.from(SSE_END);

/** One message as an event. */
export function sseEvent(message: Buffer): Buffer {
  return Buffer.concat([DATA, oneLine(message), END]);
}

/** A comment, to keep an idle connection open. */
export const SSE_KEEPALIVE = Buffer.from(': keepalive\n\n');

export interface SseReader {
  push(chunk: Buffer): void;
  /** The id of the last event, for resuming; empty if there was none. */
  readonly lastId: string;
  /** Milliseconds to wait before resuming, if the other side gave them. */
  readonly retry: number | null;
}

/** Calls `event` with the data and the name of every event. Lines end in LF, CR or CRLF; other fields are ignored. */
export function createSseReader(
  limit: number,
  event: (data: Buffer, name: string) => void,
  tooLong: () => void,
): SseReader {
  const pending = new CollectedParts();
  const data = new CollectedParts();
  let hasData = false;
  let size = 0;
  let afterCarriage = false;
  let first = true;
  let name = MESSAGE;
  let lastId = '';
  let retry: number | null = null;

  const line = (tail: Buffer) => {
    let bytes = tail;
    if (pending.size > 0) {
      pending.push(tail);
      bytes = pending.takeJoined();
    }
    if (first) {
      first = false;
      if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) bytes = bytes.subarray(3);
    }
    if (bytes.length === 0) {
      const named = name;
      size = 0;
      name = MESSAGE;
      if (!hasData) return;
      hasData = false;
      event(data.takeJoined(), named);
      return;
    }
    if (bytes[0] === 0x65) readName(bytes);
    else if (bytes[0] === 0x69 || bytes[0] === 0x72) readResumption(bytes);
    if (bytes.length < 5 || bytes.toString('latin1', 0, 5) !== 'data:') return;
    if (hasData) data.push(NEWLINE);
    hasData = true;
    data.push(bytes.subarray(bytes[5] === 0x20 ? 6 : 5));
  };

  const readName = (bytes: Buffer) => {
    // Nearly all events are named "message"; these need no new string.
    if (bytes.length === NAMED_MESSAGE.length && bytes.equals(NAMED_MESSAGE)) return;
    const [, given] = /^event: ?(.*)$/.exec(bytes.toString()) ?? [];
    if (given !== undefined) name = given;
  };

  const readResumption = (bytes: Buffer) => {
    const [, field, value] = /^(id|retry): ?(.*)$/.exec(bytes.toString()) ?? [];
    if (field === 'id') lastId = value!;
    else if (field === 'retry' && /^\d{1,9}$/.test(value!)) retry = Number(value);
  };

  return {
    get lastId() {
      return lastId;
    },
    get retry() {
      return retry;
    },
    push(chunk) {
      size += chunk.length;
      let start = 0;
      if (afterCarriage && chunk[0] === 0x0a) start = 1;
      afterCarriage = false;
      // Two native searches. Servers end lines in one way, so one of the two finds nothing and runs once per chunk.
      let newline = chunk.indexOf(0x0a, start);
      let carriage = chunk.indexOf(0x0d, start);
      while (newline >= 0 || carriage >= 0) {
        const at = newline < 0 ? carriage : carriage < 0 ? newline : Math.min(newline, carriage);
        line(chunk.subarray(start, at));
        start = at + 1;
        if (at === carriage) {
          if (start === chunk.length) afterCarriage = true;
          else if (chunk[start] === 0x0a) start++;
          carriage = chunk.indexOf(0x0d, start);
        }
        if (newline >= 0 && newline < start) newline = chunk.indexOf(0x0a, start);
      }
      if (start < chunk.length) pending.push(start === 0 ? chunk : chunk.subarray(start));
      if (size > limit && (pending.size > 0 || hasData)) tooLong();
    },
  };
}

const NEWLINE = Buffer.from('\n');
const MESSAGE = 'message';
const NAMED_MESSAGE = Buffer.from(`event: ${MESSAGE}`);
