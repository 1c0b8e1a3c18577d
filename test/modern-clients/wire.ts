/**
 * One hand-written keep-alive connection. No client library sends a header twice, in odd spelling, or with odd bytes.
 */
import { connect, type Socket } from 'node:net';
import type { Line } from '../support/modern-draft.ts';

export interface WireReply {
  readonly status: number;
  readonly type: string | null;
  readonly body: string;
}

export interface Wire {
  /** Posts `body` to /mcp. Names and values of headers are written one byte per character. */
  post(lines: readonly Line[], body: string): Promise<WireReply>;
  close(): void;
}

export function openWire(origin: string): Wire {
  const { hostname, port, host } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const read = createReplyReader(socket);
  return {
    post(lines, body) {
      const head = [
        'POST /mcp HTTP/1.1',
        `Host: ${host}`,
        'Content-Type: application/json',
        'Accept: application/json, text/event-stream',
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...lines.map(({ name, value }) => `${name}: ${value}`),
      ].join('\r\n');
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), Buffer.from(body)]));
      return read();
    },
    close: () => socket.destroy(),
  };
}

/** Returns the next reply. It must have a Content-Length: refusals and immediate answers are plain. */
function createReplyReader(socket: Socket): () => Promise<WireReply> {
  let unread = Buffer.alloc(0);
  let resolve: (reply: WireReply) => void = () => {};
  let reject: (error: Error) => void = () => {};
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    const end = unread.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = unread.toString('latin1', 0, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) reject(new Error(`a reply without a length:\n${head}`));
    if (unread.length < end + 4 + length) return;
    const body = unread.toString('utf8', end + 4, end + 4 + length);
    unread = unread.subarray(end + 4 + length);
    resolve({ status: Number(head.slice(9, 12)), type: /\r\ncontent-type: ([^\r]*)/i.exec(head)?.[1] ?? null, body });
  });
  socket.on('error', (error) => reject(error));
  socket.on('close', () => reject(new Error('the gateway closed the connection')));
  return () =>
    new Promise((take, refuse) => {
      resolve = take;
      reject = refuse;
    });
}
