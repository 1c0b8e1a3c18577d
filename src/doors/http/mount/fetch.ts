/**
 * The HTTP door as a function from a Request to a Response, for servers that know nothing else. The door speaks to what Node
 * has for both; here are the parts of that which it uses, over the streams of the web.
 */
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';
import type { ReadableStream as NodeStream } from 'node:stream/web';
import type { HttpDoor } from '../door.ts';

/** As `fetch` is served. */
export type FetchHandler = (request: Request) => Promise<Response>;

/**
 * A door for everything that serves by `fetch`. Where a request comes from is not known here: without a credential, or
 * `identify`, nobody is let in.
 *
 * @example
 * const door = await createHttpDoor(gateway, { token, allowedHosts: ['tools.example.com'] });
 * Bun.serve({ fetch: fetchHandler(door) });
 */
export function fetchHandler({ handle }: HttpDoor): FetchHandler {
  return (request) =>
    new Promise((resolve) => {
      const connection = new Connection();
      const incoming = incomingOf(request, connection);
      const outgoing = new Outgoing(incoming, connection, resolve);
      if (request.signal.aborted) outgoing.destroy();
      else request.signal.addEventListener('abort', () => outgoing.destroy(), { once: true });
      handle(incoming, outgoing as unknown as ServerResponse);
    });
}

/** In place of the socket: there is none, and so no address either. */
class Connection extends EventEmitter {
  readonly localAddress = 'unknown';
  destroyed = false;
  readonly writableLength = 0;
  /** What the other side has taken. */
  bytesWritten = 0;
  outgoing: Outgoing | null = null;

  destroy(): void {
    this.destroyed = true;
    this.outgoing?.destroy();
  }
}

function incomingOf(request: Request, socket: Connection): IncomingMessage {
  const { pathname, search } = new URL(request.url);
  const headers: IncomingHttpHeaders = {};
  const rawHeaders: string[] = [];
  for (const [name, value] of request.headers) {
    headers[name] = value;
    rawHeaders.push(name, value);
  }
  // Whoever makes a Request leaves it out: the address says it.
  headers.host ??= new URL(request.url).host;
  const body =
    request.body === null || request.bodyUsed ? Readable.from([]) : Readable.fromWeb(request.body as NodeStream);
  const known = { method: request.method, url: pathname + search, headers, rawHeaders, socket, complete: false };
  body.on('end', () => Object.assign(body, { complete: true }));
  return Object.assign(body, known) as unknown as IncomingMessage;
}

class Outgoing extends Writable {
  readonly req: IncomingMessage;
  readonly socket = null;
  readonly connection: Connection;
  readonly answer: (response: Response) => void;
  shouldKeepAlive = true;
  headersSent = false;
  /** Null before the reply has begun, and where nobody reads it. */
  body: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** Goes on when the other side has read. */
  goOn: (() => void) | null = null;

  constructor(req: IncomingMessage, connection: Connection, answer: (response: Response) => void) {
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
    // These two are about the connection, which is not ours.
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
    const { goOn } = this;
    this.goOn = null;
    goOn?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.connection.bytesWritten += chunk.length;
    if (this.body === null) {
      done();
      return;
    }
    this.body.enqueue(chunk);
    if ((this.body.desiredSize ?? 0) > 0) done();
    else this.goOn = done;
  }

  override _final(done: () => void): void {
    this.body?.close();
    this.body = null;
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Cut off before its end: whoever reads it must not take it for whole.
    try {
      this.body?.error(error ?? new Error('the connection was closed'));
    } catch {
      // Nobody reads it any more.
    }
    this.body = null;
    this.connection.destroyed = true;
    if (!this.headersSent) this.answer(new Response(null, { status: 499 }));
    this.headersSent = true;
    done(null);
  }
}
