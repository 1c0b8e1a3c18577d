/** `/mcp`: Streamable HTTP. The era of a message is decided here, once. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { isRequest, type Message, parseParams } from '../../../protocol/message.ts';
import { readBatch } from '../../../protocol/read.ts';
import {
  allowsBatch,
  isRevision,
  LATEST_REVISION,
  negotiate,
  type Revision,
  readsEmptyEvents,
} from '../../../protocol/revisions.ts';
import { deliver } from '../../peer.ts';
import { clientIdOf, requireClientId } from '../client-id.ts';
import type { AgentHandler } from '../router.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post, readOverHttp } from '../wire/body.ts';
import { mayStream, requireJson, requireStreamReader } from '../wire/content-types.ts';
import type { Fail } from '../wire/reply.ts';
import { createPlainExchange, HttpExchange } from './exchange.ts';
import type { Sessions } from './sessions.ts';
import type { SharedSession } from './shared-session.ts';
import type { SharedSessions } from './shared-sessions.ts';
import { isModernHeader, isStateless, type Stateless } from './stateless.ts';
import type { Budget } from './stream.ts';
import { StreamableSession } from './streamable-session.ts';

/** Answers POST, GET and DELETE. Throws if the HTTP exchange itself is at fault. */
export function createMcpHandler(
  gateway: Gateway,
  sessions: Sessions,
  shared: SharedSessions | null,
  stateless: Stateless,
  backpressure: Backpressure,
  fail: Fail,
): AgentHandler {
  const budget: Budget = { used: 0 };
  const readBody = createBodyReader(() => gateway.config.limits.body, receive, fail);

  function receive(post: Post, body: Buffer): void {
    const { request, identity, scope } = post;
    const { depth, batch: most } = gateway.config.limits;
    const batch = readBatch(body, most);
    if (batch !== null) {
      if (isModernHeader(request.headers)) throw batchRefused();
      const messages = batch.map((part) => readOverHttp(part, depth, request.headers));
      withSession(post, (session) => receiveBatch(session, messages, post));
      return;
    }
    const message = readOverHttp(body, depth, request.headers);
    if (isStateless(message, request.headers)) {
      mayStream(request.headers, LATEST_REVISION);
      stateless.receive(message, post);
    } else if (message.method === 'initialize') initialize(message, post);
    else if (shared === null) receiveOne(findSession(request, identity, scope), message, post);
    else withSession(post, (session) => receiveShared(shared, session as SharedSession, message, post));
  }

  /** Goes on at once, or when another replica's session has been found. */
  function withSession(post: Post, work: (session: StreamableSession) => void | Promise<void>): void {
    const { request, response, headers, identity, scope } = post;
    const failed = (error: unknown) => fail(response, error, headers);
    if (shared === null) {
      void work(findSession(request, identity, scope));
      return;
    }
    findShared(shared, request, identity, scope).then(work).catch(failed);
  }

  async function findShared(
    all: SharedSessions,
    { headers }: IncomingMessage,
    identity: Identity,
    scope: Scope,
  ): Promise<SharedSession> {
    const session = await all.find(requireSessionId(headers), identity, scope);
    requireVersion(headers, session.peer.revision, gateway.config.revisions);
    return session;
  }

  async function receiveShared(
    all: SharedSessions,
    session: SharedSession,
    message: Message,
    post: Post,
  ): Promise<void> {
    const { request, response, headers } = post;
    const streams = mayStream(request.headers, session.peer.revision!);
    if (!isRequest(message)) {
      await all.accept(session, message);
      response.writeHead(202, [...headers, 'content-length', '0']).end();
      return;
    }
    if (!session.peer.isInitialized && message.method !== 'ping')
      await new Promise<void>((resolve, reject) =>
        session.whenInitialized(resolve, () => reject(uninitialized(message.method))),
      );
    if (all.isCall(message)) await all.call(session, message, post, streams);
    else
      session.peer.request(
        message,
        streams
          ? new HttpExchange(response, headers, backpressure, null)
          : createPlainExchange(response, headers, backpressure, session, null),
      );
  }

  function receiveOne(session: StreamableSession, message: Message, { request, response, headers }: Post): void {
    const streams = mayStream(request.headers, session.peer.revision!);
    if (!isRequest(message)) {
      session.peer.accept(message);
      response.writeHead(202, [...headers, 'content-length', '0']).end();
      return;
    }
    const exchange = streams
      ? new HttpExchange(response, headers, backpressure, session.log)
      : createPlainExchange(response, headers, backpressure, session, null);
    if (session.peer.isInitialized || message.method === 'ping') {
      session.peer.request(message, exchange);
      return;
    }
    session.whenInitialized(
      () => session.peer.request(message, exchange),
      () => fail(response, uninitialized(message.method), headers),
    );
  }

  function initialize(message: Message, { request, response, headers, identity, scope }: Post): void {
    if (!isRequest(message)) throw new GatewayError('request_invalid', '"initialize" is a request and needs an id.');
    const { revisions } = gateway.config;
    requireVersion(request.headers, null, revisions);
    mayStream(request.headers, negotiate(parseParams(message).protocolVersion, revisions) ?? LATEST_REVISION);
    const clientId = clientIdOf(identity, request.headers);
    if (shared !== null) {
      const failed = (error: unknown) => fail(response, error, headers);
      shared.open(message, identity, scope, clientId, { response, headers }).catch(failed);
      return;
    }
    const session = sessions.open(
      scope,
      () => new StreamableSession(gateway, identity, scope, clientId, backpressure, budget),
    );
    // Answered at once, so it never becomes a stream.
    session.peer.request(
      message,
      new HttpExchange(response, ['mcp-session-id', session.id, ...headers], backpressure, null),
    );
    const { revision } = session.peer;
    // The peer refused the request, so the client will not use the session.
    if (revision === null) sessions.end(session);
    else session.log.primes = readsEmptyEvents(revision);
  }

  function receiveBatch(session: StreamableSession, messages: readonly Message[], post: Post): void {
    const { request, response, headers } = post;
    const { peer, log } = session;
    if (!allowsBatch(peer.revision!)) throw batchRefused();
    const streams = mayStream(request.headers, peer.revision!);
    const expected = messages.filter(isRequest).length;
    if (expected === 0) {
      for (const message of messages) peer.accept(message);
      response.writeHead(202, [...headers, 'content-length', '0']).end();
      return;
    }
    const proceed = () => {
      const exchange = streams
        ? new HttpExchange(response, headers, backpressure, log, null, expected)
        : createPlainExchange(response, headers, backpressure, session, expected);
      for (const message of messages) deliver(peer, message, () => exchange);
    };
    const first = messages.find((message) => isRequest(message) && message.method !== 'ping');
    if (first === undefined || messages.some(({ method }) => method === 'notifications/initialized')) proceed();
    else session.whenInitialized(proceed, () => fail(response, uninitialized(first.method), headers));
  }

  function findSession({ headers }: IncomingMessage, identity: Identity, scope: Scope): StreamableSession {
    const session = sessions.find(StreamableSession, requireSessionId(headers), identity, scope);
    requireVersion(headers, session.peer.revision, gateway.config.revisions);
    return session;
  }

  return (request, response, headers, identity, scope) => {
    requireClientId(gateway, request.headers);
    if (request.method !== 'POST' && isModernHeader(request.headers))
      throw new GatewayError('method_not_allowed', 'Only POST is possible in this revision of the protocol.');
    switch (request.method) {
      case 'POST':
        requireJson(request.headers);
        readBody(new Post(request, response, headers, identity, scope));
        return;
      case 'GET': {
        requireStreamReader(request.headers, true);
        const lastEventId = request.headers['last-event-id'] as string | undefined;
        if (shared === null) findSession(request, identity, scope).listen(response, headers, lastEventId);
        else
          return findShared(shared, request, identity, scope).then((session) =>
            session.listen(response, headers, lastEventId),
          );
        return;
      }
      default:
        if (shared !== null)
          return findShared(shared, request, identity, scope)
            .then((session) => shared.end(session))
            .then(() => void response.writeHead(204, [...headers]).end());
        sessions.end(findSession(request, identity, scope));
        response.writeHead(204, [...headers]).end();
    }
  };
}

function requireSessionId({ 'mcp-session-id': id }: IncomingHttpHeaders): string {
  if (typeof id === 'string') return id;
  throw new GatewayError(
    'session_missing',
    'The Mcp-Session-Id header is missing: start with "initialize" and send the id it answers with.',
  );
}

/** A request without the header has the revision of its session. Any other revision is refused. */
function requireVersion(
  { 'mcp-protocol-version': version }: IncomingHttpHeaders,
  agreed: Revision | null,
  supported: readonly string[],
): void {
  if (version === undefined || version === agreed) return;
  if (!isRevision(version) || !supported.includes(version)) {
    throw new GatewayError(
      'version_unsupported',
      `This MCP-Protocol-Version is not supported; Toolgate speaks ${supported.join(', ')}.`,
    );
  }
  if (agreed !== null) {
    throw new GatewayError(
      'version_unsupported',
      `The session uses revision ${agreed}: send that in MCP-Protocol-Version, or open a new session.`,
    );
  }
}

function batchRefused(): GatewayError {
  return new GatewayError(
    'request_invalid',
    'A batch is not allowed in this revision of the protocol; send one message at a time.',
  );
}

function uninitialized(method: string): GatewayError {
  return new GatewayError('not_initialized', `Send "notifications/initialized" before "${method}".`);
}
