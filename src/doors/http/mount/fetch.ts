/**
 * The HTTP door as a function from a Request to a Response. The door works on Node's request and response, so this file
 * emulates the parts of them that it uses, over web streams.
 */
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';
import type { ReadableStream as NodeStream } from 'node:stream/web';
import type { HttpDoor } from '../door.ts';

/** A handler for servers that serve by `fetch`. */
export type FetchHandler = (request: Request) => Promise<Response>;

/**
 * Serves a door on any server that uses `fetch` handlers. The client's address is unknown there, so without a
 * credential or `identify` no client is admitted.
 *
 * @example
 * const door = await createHttpDoor(gateway, { token, allowedHosts: ['tools.example.com'] });
 * Bun.serve({ fetch: fetchHandler(door) });
 */
export function fetchHandler({ handle }: HttpDoor): FetchHandler {
  return (request) =>
    new Promise((resolve) => {
      const connection = new FetchSocket();
      const incoming = incomingOf(request, connection);
      const outgoing = new FetchResponse(incoming, connection, resolve);
      if (request.signal.aborted) outgoing.destroy();
      else request.signal.addEventListener('abort', () => outgoing.destroy(), { once: true });
      handle(incoming, outgoing as unknown as ServerResponse);
    });
}

/** Replaces the socket. With `fetch` there is none, and no client address. */
class FetchSocket extends EventEmitter {
  readonly localAddress = 'unknown';
  destroyed = false;
  readonly writableLength = 0;
  /** Bytes that the client has read. */
  bytesWritten = 0;
  outgoing: FetchResponse | null = null;

  destroy(): void {
    this.destroyed = true;
    this.outgoing?.destroy();
  }
}

function incomingOf(request: Request, socket: FetchSocket): IncomingMessage {
  const { pathname, search } = new URL(request.url);
  const headers: IncomingHttpHeaders = {};
  const rawHeaders: string[] = [];
  for (const [name, value] of request.headers) {
    headers[name] = value;
    rawHeaders.push(name, value);
  }
  // A Request carries the host only in its URL.
  headers.host ??= new URL(request.url).host;
  const body =
    request.body === null || request.bodyUsed ? Readable.from([]) : Readable.fromWeb(request.body as NodeStream);
  const known = { method: request.method, url: pathname + search, headers, rawHeaders, socket, complete: false };
  body.on('end', () => Object.assign(body, { complete: true }));
  return Object.assign(body, known) as unknown as IncomingMessage;
}

/** Replaces Node's response. */
class FetchResponse extends Writable {
  readonly req: IncomingMessage;
  readonly socket = null;
  readonly connection: FetchSocket;
  readonly answer: (response: Response) => void;
  shouldKeepAlive = true;
  headersSent = false;
  /** Null before the reply has started and after it has ended. */
  body: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** Resumes writing once the client has read. */
  proceed: (() => void) | null = null;

  constructor(req: IncomingMessage, connection: FetchSocket, answer: (response: Response) => void) {
    super();
    this.req = req;
    this.connection = connection;
    this.answer = answer;
    connection.outgoing = this;
    this.on('error', () => {});
  }

  writeHead(status: number, given: readonly string[]): this {
    this.headersSent = true;
    const headers = new Headers();
    // These two headers concern the connection, which the server manages.
    for (let i = 0; i < given.length; i += 2)
      if (given[i] !== 'connection' && given[i] !== 'content-length') headers.append(given[i]!, given[i + 1]!);
    const isEmpty = status === 204 || status === 304 || this.req.method === 'HEAD';
    this.answer(new Response(isEmpty ? null : this.stream(), { status, headers }));
    return this;
  }

  flushHeaders(): void {}

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      start: (controller) => {
        this.body = controller;
      },
      pull: () => this.resume(),
      cancel: () => void this.destroy(),
    });
  }

  resume(): void {
    const { proceed } = this;
    this.proceed = null;
    proceed?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.connection.bytesWritten += chunk.length;
    if (this.body === null) {
      done();
      return;
    }
    this.body.enqueue(chunk);
    if ((this.body.desiredSize ?? 0) > 0) done();
    else this.proceed = done;
  }

  override _final(done: () => void): void {
    this.body?.close();
    this.body = null;
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // The reply is incomplete, and the reader must notice that.
    try {
      this.body?.error(error ?? new Error('the connection was closed'));
    } catch {
      // The reader is gone.
    }
    this.body = null;
    this.connection.destroyed = true;
    if (!this.headersSent) this.answer(new Response(null, { status: 499 }));
    this.headersSent = true;
    done(null);
  }
}
