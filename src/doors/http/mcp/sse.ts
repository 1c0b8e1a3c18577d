/**
 * `/sse` and `/messages`: HTTP+SSE, the transport of the first revision. One stream carries everything that we send
 * during the session. The client sends each of its messages to the address in the first event of the stream.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { claimsRevision, type Message } from '../../../protocol/message.ts';
import { readBatch } from '../../../protocol/read.ts';
import { allowsBatch } from '../../../protocol/revisions.ts';
import type { Exchange } from '../../answer.ts';
import { deliver } from '../../peer.ts';
import { clientIdOf, requireClientId } from '../client-id.ts';
import type { AgentHandler } from '../router.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post, readOverHttp } from '../wire/body.ts';
import { requireJson, requireStreamReader } from '../wire/content-types.ts';
import type { Fail } from '../wire/reply.ts';
import { Session, type Sessions } from './sessions.ts';
import { EventStream } from './stream.ts';

export interface SseHandlers {
  /** `GET /sse` */
  readonly open: AgentHandler;
  /** `POST /messages` */
  readonly post: AgentHandler;
}

class SseSession extends Session {
  static readonly beginning = 'GET /sse';
  readonly stream: EventStream;
  readonly exchange: Exchange;

  constructor(gateway: Gateway, identity: Identity, scope: Scope, clientId: string | null, stream: EventStream) {
    super(gateway, identity, scope, 'sse', clientId);
    this.stream = stream;
    this.exchange = exchangeOn(stream);
  }

  override get lacksStream(): boolean {
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
  fail: Fail,
): SseHandlers {
  const readBody = createBodyReader(() => gateway.config.limits.body, receive, fail);

  function receive({ request, response, headers, identity, scope }: Post, body: Buffer): void {
    const { peer, exchange } = find(request, identity, scope);
    const { depth, batch: most } = gateway.config.limits;
    const batch = readBatch(body, most);
    if (batch !== null && (peer.revision === null || !allowsBatch(peer.revision)))
      throw new GatewayError('request_invalid', 'A batch is not allowed here; send one message at a time.');
    const messages = (batch ?? [body]).map((part) => readOverHttp(part, depth, request.headers));
    messages.forEach(refuseModern);
    for (const message of messages) deliver(peer, message, () => exchange);
    response.writeHead(202, [...headers, 'content-type', 'text/plain']).end('Accepted');
  }

  function find({ url }: IncomingMessage, identity: Identity, scope: Scope): SseSession {
    const id = new URLSearchParams(url!.slice(url!.indexOf('?') + 1)).get('session_id');
    if (id === null)
      throw new GatewayError(
        'session_missing',
        'The session_id is missing: use the address in the first event of GET /sse.',
      );
    return sessions.find(SseSession, id, identity, scope);
  }

  return {
    open(request, response, headers, identity, scope) {
      requireClientId(gateway, request.headers);
      requireStreamReader(request.headers);
      const stream = new EventStream(backpressure, 'standing', null);
      const clientId = clientIdOf(identity, request.headers);
      const session = sessions.open(scope, () => new SseSession(gateway, identity, scope, clientId, stream));
      stream.attach(response, headers);
      response.on('close', () => sessions.end(session));
      // The address is next to the stream's, so that a proxy that forwards one also forwards the other.
      const address = base + request.url!.replace(/\/sse(\?.*)?$/, '/messages');
      response.write(`event: endpoint\ndata: ${address}?session_id=${session.id}\n\n`);
    },
    post(request, response, headers, identity, scope) {
      requireJson(request.headers);
      find(request, identity, scope);
      readBody(new Post(request, response, headers, identity, scope));
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
    whenDrained: (proceed) => stream.whenDrained(proceed),
  };
}

function refuseModern(message: Message): void {
  if (claimsRevision(message))
    throw new GatewayError(
      'request_invalid',
      'This revision of the protocol has no HTTP+SSE; send the message to /mcp.',
    );
}
