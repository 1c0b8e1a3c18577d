/**
 * `/sse` and `/messages`: HTTP+SSE, the transport of the first revision. One stream carries everything that we say, for as
 * long as the session lasts; the client sends its messages one by one to the address that the stream begins with.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { claimsRevision, type Message } from '../../../protocol/message.ts';
import { readBatch } from '../../../protocol/read.ts';
import { allowsBatch } from '../../../protocol/revisions.ts';
import { readOverHttp } from '../../../protocol/trace.ts';
import type { Exchange } from '../../answer.ts';
import { isInvalid, outlives, requireNotRevoked } from '../../credential.ts';
import { deliver, Peer } from '../../peer.ts';
import type { Visitor } from '../auth/visitor.ts';
import { requireNamespace, requireSame } from '../scope.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post } from '../wire/body.ts';
import { requireJson, requireStreamReader } from '../wire/content-types.ts';
import { EventStream } from './stream.ts';

type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  visitor: Visitor,
  headers: readonly string[],
) => void;

export interface SseDoor {
  readonly size: number;
  /** Requests whose clients wait for the answers. */
  readonly awaited: number;
  readonly open: Handler;
  readonly post: Handler;
  keepAlive(): void;
  /** Ends those whose credentials were taken back. */
  turnOut(): void;
  close(): void;
}

interface SseSession {
  readonly peer: Peer;
  readonly stream: EventStream;
  readonly exchange: Exchange;
  /** As it came with the credential that is good for longest. */
  visitor: Visitor;
  readonly namespace: string | null;
}

export function createSseDoor(
  gateway: Gateway,
  unread: Backpressure,
  base: string,
  fail: (response: ServerResponse, error: unknown, headers: readonly string[]) => void,
): SseDoor {
  const sessions = new Map<string, SseSession>();

  const readBody = createBodyReader(
    () => gateway.config.limits.body,
    (post, body) => {
      try {
        if (body instanceof GatewayError) throw body;
        requireNotRevoked(post.visitor.credential);
        receive(find(post.request, post.visitor), body, post.request);
        post.response.writeHead(202, [...post.headers, 'content-type', 'text/plain']).end('Accepted');
      } catch (failure) {
        fail(post.response, failure, post.headers);
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

  function find({ url }: IncomingMessage, visitor: Visitor): SseSession {
    const id = new URLSearchParams(url!.slice(url!.indexOf('?') + 1)).get('session_id');
    if (id === null)
      throw new GatewayError(
        'session_missing',
        'The session_id is missing: use the address that GET /sse begins with.',
      );
    const session = sessions.get(id);
    if (session === undefined || session.peer.principal !== visitor.principal)
      throw new GatewayError('session_unknown', 'The session is unknown or over. Start a new one with GET /sse.');
    requireSame(session.namespace, visitor);
    if (outlives(visitor.credential, session.visitor.credential)) session.visitor = visitor;
    return session;
  }

  return {
    get size() {
      return sessions.size;
    },
    get awaited() {
      let sum = 0;
      for (const { peer } of sessions.values()) sum += peer.awaited;
      return sum;
    },
    open(request, response, visitor, headers) {
      requireStreamReader(request.headers);
      requireNamespace(gateway, visitor);
      if (sessions.size >= gateway.config.http.maxSessions)
        throw new GatewayError(
          'sessions_full',
          'All sessions are in use. Try again later, or raise http.max_sessions.',
        );
      const stream = new EventStream(unread, 'standing', null);
      stream.attach(response, headers);
      const { namespace } = visitor;
      const peer = joinPeer(gateway, visitor, stream);
      const session: SseSession = { peer, stream, exchange: exchangeOn(stream), visitor, namespace };
      const id = randomBytes(18).toString('base64url');
      sessions.set(id, session);
      response.on('close', () => {
        sessions.delete(id);
        session.peer.close();
      });
      // Beside the stream, so that what leads to the one leads to the other.
      const beside = base + request.url!.replace(/\/sse(\?.*)?$/, '/messages');
      response.write(`event: endpoint\ndata: ${beside}?session_id=${id}\n\n`);
    },
    post(request, response, visitor, headers) {
      requireJson(request.headers);
      find(request, visitor);
      readBody(new Post(request, response, visitor, headers));
    },
    keepAlive() {
      const now = Date.now();
      for (const { stream, visitor } of sessions.values()) {
        if (isInvalid(visitor.credential, now)) stream.detach();
        else stream.keepAlive();
      }
    },
    turnOut() {
      for (const { stream, visitor, peer } of sessions.values()) {
        if (!visitor.credential.revocation.isRevoked) continue;
        peer.close(true);
        stream.detach();
      }
    },
    close() {
      for (const { stream, peer } of sessions.values()) {
        peer.close();
        stream.end();
      }
      sessions.clear();
    },
  };
}

function joinPeer(
  gateway: Gateway,
  { agent, principal, toolset, namespace, task }: Visitor,
  stream: EventStream,
): Peer {
  return new Peer(gateway, {
    agent,
    principal,
    door: 'sse',
    selection: 'own',
    toolset,
    namespace,
    task,
    notify: (message) => stream.send(message),
  });
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
