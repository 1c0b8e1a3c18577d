/** Reads the body of a request, up to a limit: as a message for calls, as JSON for other routes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CollectedParts } from '../../../base/collected-parts.ts';
import { GatewayError } from '../../../base/errors.ts';
import { isObject } from '../../../base/objects.ts';
import type { Scope } from '../../../calls/caller.ts';
import { type Identity, requireNotRevoked } from '../../../calls/identity.ts';
import { DepthError, skipSpace, skipValue } from '../../../protocol/json.ts';
import type { Message } from '../../../protocol/message.ts';
import { readMessage, requireUniqueKeys } from '../../../protocol/read.ts';
import { withHeaderTrace } from '../../../protocol/trace.ts';
import { encodingProblem } from './content-types.ts';
import { type BodyListener, LightRequest } from './light-messages.ts';
import type { Fail } from './reply.ts';

/** One POST in progress. */
export class Post {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Headers that the reply must carry. */
  readonly headers: readonly string[];
  readonly identity: Identity;
  readonly scope: Scope;
  /** Whether its path is one of mcpo's. */
  readonly isMcpo: boolean;
  /** What has come of its body, if it comes in several parts. */
  first: Buffer | null = null;
  rest: CollectedParts | null = null;
  size = 0;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
    identity: Identity,
    scope: Scope,
    isMcpo = false,
  ) {
    this.request = request;
    this.response = response;
    this.headers = headers;
    this.identity = identity;
    this.scope = scope;
    this.isMcpo = isMcpo;
  }
}

// The state is stored on the request, and the listeners are created once. Closures for every request would live as long
// as Node keeps the request, and would cause most of the garbage collection here.
const POST = Symbol('post');
type PostRequest = IncomingMessage & { [POST]?: Post | null };

/** Returns the function that starts reading. Each POST ends in one call of `receive`, or of `fail` if it is refused. */
export function createBodyReader(
  limit: () => number,
  receive: (post: Post, body: Buffer) => void,
  fail: Fail,
): (post: Post) => void {
  function done(post: Post, body: Buffer | GatewayError): void {
    try {
      if (body instanceof GatewayError) throw body;
      // A body may arrive slowly, and the credential may have been revoked meanwhile.
      requireNotRevoked(post.identity.credential);
      receive(post, body);
    } catch (error) {
      fail(post.response, error, post.headers);
    }
  }

  function onData(this: PostRequest, chunk: Buffer): void {
    const post = this[POST];
    if (post == null) return;
    post.size += chunk.length;
    if (post.size > limit()) {
      this[POST] = null;
      done(post, messageTooLarge(limit()));
    } else if (post.first === null) {
      post.first = chunk;
    } else {
      post.rest ??= new CollectedParts();
      post.rest.push(chunk);
    }
  }

  function onEnd(this: PostRequest): void {
    const post = this[POST];
    if (post == null) return;
    this[POST] = null;
    const first = post.first ?? EMPTY;
    done(post, post.rest === null ? first : Buffer.concat([first, ...post.rest.parts], post.size));
  }

  const listener: BodyListener = { part: onData, end: onEnd };

  return (post) => {
    const request: PostRequest = post.request;
    if (Number(request.headers['content-length'] ?? 0) > limit()) {
      done(post, messageTooLarge(limit()));
      return;
    }
    // On a program's own server, the body may have been read before the request reached the gateway.
    if (request.readableEnded) {
      const body = bodyBefore(request);
      done(post, body instanceof GatewayError || body.length <= limit() ? body : messageTooLarge(limit()));
      return;
    }
    const problem = encodingProblem(request.headers);
    if (problem !== null) {
      done(post, problem);
      return;
    }
    request[POST] = post;
    if (request instanceof LightRequest && request.giveBody(listener)) return;
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('error', ignore);
  };
}

/** A body that was read before: text, bytes, or a parsed value, which is serialized again. */
function bodyBefore({ body, headers }: IncomingMessage & { readonly body?: unknown }): Buffer | GatewayError {
  // Frameworks leave nothing or an empty object if the request had no body.
  if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0)) return EMPTY;
  if (body === undefined)
    return new GatewayError(
      'usage',
      'The body was read before the request reached the gateway, and is not in request.body. Mount the gateway before the middleware that reads bodies.',
    );
  return Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Reads a message that arrived over HTTP. The trace in its headers applies unless the message carries its own. */
export function readOverHttp(bytes: Buffer, maxDepth: number, headers: IncomingMessage['headers']): Message {
  const message = readMessage(bytes, maxDepth);
  requireUniqueKeys(message);
  return headers.traceparent === undefined ? message : withHeaderTrace(message, headers);
}

function messageTooLarge(limit: number): GatewayError {
  return new GatewayError('too_large', `The message has more than ${limit} bytes; limits.body allows no more.`);
}

/**
 * The JSON in a body, for routes other than calls; undefined if the body is empty. Rejects with `too_large`, or with
 * `parse` if it is not JSON, or nested more deeply than those who use it can follow.
 */
export async function readJson(request: IncomingMessage, limit: number, maxDepth: number): Promise<unknown> {
  const bytes = await wholeBody(request, limit);
  if (bytes.length === 0) return undefined;
  try {
    skipValue(bytes, skipSpace(bytes, 0, bytes.length), bytes.length, maxDepth);
    return JSON.parse(bytes.toString());
  } catch (error) {
    throw new GatewayError(
      'parse',
      error instanceof DepthError
        ? `The body is nested deeper than ${maxDepth} levels; limits.depth allows no more.`
        : 'The body is not JSON.',
    );
  }
}

/** The fields of a form in a body. */
export async function readForm(request: IncomingMessage, limit: number): Promise<URLSearchParams> {
  const { readableEnded, body } = request as IncomingMessage & { readonly body?: unknown };
  // A framework has read it, and left an object.
  if (readableEnded && isObject(body) && !Buffer.isBuffer(body)) {
    const fields = Object.entries(body).filter(([, value]) => typeof value === 'string');
    return new URLSearchParams(fields as [string, string][]);
  }
  return new URLSearchParams((await wholeBody(request, limit)).toString());
}

async function wholeBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const read = request.readableEnded ? bodyBefore(request) : encodingProblem(request.headers);
  const bytes = read ?? (await readBytes(request, limit));
  if (bytes instanceof GatewayError) throw bytes;
  if (bytes.length > limit) throw bodyTooLarge(limit);
  return bytes;
}

/**
 * Uses listeners, because leaving a `for await` early destroys the socket, and the client would never see the refusal.
 */
export function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const body = new CollectedParts();
    const leave = () =>
      reject(new GatewayError('cancelled', 'The client disconnected before the whole body had arrived.'));
    request.on('data', (chunk: Buffer) => {
      if (body.size + chunk.length > limit) reject(bodyTooLarge(limit));
      else body.push(chunk);
    });
    request.on('end', () => resolve(body.takeJoined()));
    request.on('error', leave);
    request.on('close', leave);
  });
}

function bodyTooLarge(limit: number): GatewayError {
  return new GatewayError('too_large', `The body has more than ${limit} bytes.`);
}

const EMPTY = Buffer.alloc(0);
const ignore = () => {};
