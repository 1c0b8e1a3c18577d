/** Reading the body of a POST, up to the limit, and the message in it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Message } from '../../../protocol/message.ts';
import { readMessage } from '../../../protocol/read.ts';
import { withHeaderTrace } from '../../../protocol/trace.ts';

/** One POST under way. */
export class Post {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly identity: Identity;
  readonly scope: Scope;
  /** Headers that the reply has to carry. */
  readonly headers: readonly string[];
  /** Whether its address is one of mcpo's. */
  readonly isShort: boolean;
  first: Buffer | null = null;
  rest: Buffer[] | null = null;
  size = 0;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    identity: Identity,
    scope: Scope,
    headers: readonly string[],
    isShort = false,
  ) {
    this.request = request;
    this.response = response;
    this.identity = identity;
    this.scope = scope;
    this.headers = headers;
    this.isShort = isShort;
  }
}

// The state hangs on the request and the listeners are made once: closures for every request, which live as long as node
// keeps the request, would be most of what the garbage collector has to do here.
const POST = Symbol('post');
type Carrier = IncomingMessage & { [POST]?: Post | null; readonly body?: unknown };

/** Returns what starts the reading. `done` is called once for each POST, with its body or with what is wrong with it. */
export function createBodyReader(
  limit: () => number,
  done: (post: Post, body: Buffer | GatewayError) => void,
): (post: Post) => void {
  function onData(this: Carrier, chunk: Buffer): void {
    const post = this[POST];
    if (post == null) return;
    post.size += chunk.length;
    if (post.size > limit()) {
      this[POST] = null;
      done(post, tooLarge(limit()));
    } else if (post.first === null) {
      post.first = chunk;
    } else {
      post.rest ??= [];
      post.rest.push(chunk);
    }
  }

  function onEnd(this: Carrier): void {
    const post = this[POST];
    if (post == null) return;
    this[POST] = null;
    const first = post.first ?? EMPTY;
    done(post, post.rest === null ? first : Buffer.concat([first, ...post.rest], post.size));
  }

  return (post) => {
    const request: Carrier = post.request;
    if (Number(request.headers['content-length'] ?? 0) > limit()) {
      done(post, tooLarge(limit()));
      return;
    }
    // In somebody else's server it may have been read before it came here.
    if (request.readableEnded) {
      done(post, alreadyRead(request, limit()));
      return;
    }
    request[POST] = post;
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('error', ignore);
  };
}

/** What the one who read it has made of it: text, bytes, or values that are printed again. */
function alreadyRead({ body, headers }: Carrier, limit: number): Buffer | GatewayError {
  // Frameworks that found nothing to read leave nothing, or an empty object.
  if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0)) return EMPTY;
  if (body === undefined)
    return new GatewayError(
      'usage',
      'The body was read before it came to the gateway, and is not in request.body. Mount the gateway before whatever reads it.',
    );
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return bytes.length > limit ? tooLarge(limit) : bytes;
}

/** Reads a message that came over HTTP. The trace of its headers counts unless the message names one itself. */
export function readOverHttp(bytes: Buffer, maxDepth: number, headers: IncomingMessage['headers']): Message {
  const message = readMessage(bytes, maxDepth);
  return headers.traceparent === undefined ? message : withHeaderTrace(message, headers);
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError('too_large', `The message has more than ${limit} bytes; limits.body allows no more.`);
}

const EMPTY = Buffer.alloc(0);
const ignore = () => {};
