/**
 * `/sse` and `/messages`: HTTP+SSE, the transport of the first revision. One stream carries everything that we send, for as
 * long as the session lasts. The client sends its messages one by one to the address that the stream begins with.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Scope } from '../../../calls/caller.ts';
import { type Identity, requireNotRevoked } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { claimsRevision, type Message } from '../../../protocol/message.ts';
import { readBatch } from '../../../protocol/read.ts';
import { allowsBatch } from '../../../protocol/revisions.ts';
import type { Exchange } from '../../answer.ts';
import { deliver } from '../../peer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post, readOverHttp } from '../wire/body.ts';
import { requireJson, requireStreamReader } from '../wire/content-types.ts';
import { Session, type Sessions } from './sessions.ts';
import { EventStream } from './stream.ts';

type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  identity: Identity,
  scope: Scope,
  headers: readonly string[],
) => void;

export interface SseHandlers {
  /** `GET /sse` */
  readonly open: Handler;
  /** `POST /messages` */
  readonly post: Handler;
}

class SseSession extends Session {
  static readonly beginning = 'GET /sse';
  readonly stream: EventStream;
  readonly exchange: Exchange;

  constructor(gateway: Gateway, identity: Identity, scope: Scope, stream: EventStream) {
    super(gateway, identity, scope, 'sse');
    this.stream = stream;
    this.exchange = exchangeOn(stream);
  }

  override get isDeaf(): boolean {
    return !this.stream.isOpen;
  }

  override notify(message: Buffer): void {
    this.stream.send(message);
  }

  override keepAlive(now: number, isValid: boolean): void {
    super.keepAlive(now, isValid);
    if (isValid) this.stream.keepAlive();
    else this.stream.detach();
  }

  override close(): void {
    super.close();
    this.stream.end();
  }
}

export function createSseHandlers(
  gateway: Gateway,
  sessions: Sessions,
  backpressure: Backpressure,
  base: string,
  fail: (response: ServerResponse, error: unknown, headers: readonly string[]) => void,
): SseHandlers {
  const readBody = createBodyReader(
    () => gateway.config.limits.body,
    (post, body) => {
      try {
        if (body instanceof GatewayError) throw body;
        requireNotRevoked(post.identity.credential);
        receive(find(post.request, post.identity, post.scope), body, post.request);
        post.response.writeHead(202, [...post.headers, 'content-type', 'text/plain']).end('Accepted');
      } catch (error) {
        fail(post.response, error, post.headers);
      }
    },
  );

  function receive({ peer, exchange }: SseSession, body: Buffer, { headers }: IncomingMessage): void {
    const { depth } = gateway.config.limits;
    const batch = readBatch(body);
    if (batch !== null && (peer.revision === null || !allowsBatch(peer.revision)))
      throw new GatewayError('request_invalid', 'A batch is not allowed here; send one message at a time.');
    const messages = (batch ?? [body]).map((part) => readOverHttp(part, depth, headers));
    messages.forEach(refuseModern);
    for (const message of messages) deliver(peer, message, () => exchange);
  }

  function find({ url }: IncomingMessage, identity: Identity, scope: Scope): SseSession {
    const id = new URLSearchParams(url!.slice(url!.indexOf('?') + 1)).get('session_id');
    if (id === null)
      throw new GatewayError(
        'session_missing',
        'The session_id is missing: use the address that GET /sse begins with.',
      );
    return sessions.find(SseSession, id, identity, scope);
  }

  return {
    open(request, response, identity, scope, headers) {
      requireStreamReader(request.headers);
      const stream = new EventStream(backpressure, 'standing', null);
      const session = sessions.open(scope, () => new SseSession(gateway, identity, scope, stream));
      stream.attach(response, headers);
      response.on('close', () => sessions.end(session));
      // Next to the stream: a proxy that leads to the one leads to the other.
      const address = base + request.url!.replace(/\/sse(\?.*)?$/, '/messages');
      response.write(`event: endpoint\ndata: ${address}?session_id=${session.id}\n\n`);
    },
    post(request, response, identity, scope, headers) {
      requireJson(request.headers);
      find(request, identity, scope);
      readBody(new Post(request, response, identity, scope, headers));
    },
  };
}

function exchangeOn(stream: EventStream): Exchange {
  return {
    send: (message) => stream.send(message),
    finish: (reply) => stream.answer(reply),
    abandon() {},
    keepAlive() {},
    get isFull() {
      return stream.isFull;
    },
    get isGone() {
      return !stream.isOpen;
    },
    whenDrained: (goOn) => stream.whenDrained(goOn),
  };
}

function refuseModern(message: Message): void {
  if (claimsRevision(message))
    throw new GatewayError('request_invalid', 'This revision of the protocol has no HTTP+SSE; send it to /mcp.');
}
