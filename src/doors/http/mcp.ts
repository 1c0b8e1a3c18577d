/** `/mcp`: Streamable HTTP. Which era a message belongs to is decided here, once. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { Gateway } from '../../gateway.ts';
import { isRequest, type Message } from '../../protocol/message.ts';
import { readBatch, readMessage } from '../../protocol/read.ts';
import { ALL_REVISIONS, allowsBatch, isRevision } from '../../protocol/revisions.ts';
import { deliver } from '../peer.ts';
import { createBodyReader, Post } from './body.ts';
import { HttpExchange, startStream } from './exchange.ts';
import type { Session, Sessions } from './sessions.ts';
import { isModernHeader, isStateless, type Stateless } from './stateless.ts';

/** Answers one request to `/mcp`. Throws a GatewayError for what is wrong with the HTTP exchange itself. */
export type McpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  agent: string,
  headers: readonly string[],
) => void;

export function createMcpHandler(
  gateway: Gateway,
  sessions: Sessions,
  stateless: Stateless,
  fail: (response: ServerResponse, error: unknown, headers: readonly string[]) => void,
): McpHandler {
  const readBody = createBodyReader(
    () => gateway.config.limits.body,
    (post, body) => {
      try {
        if (body instanceof GatewayError) throw body;
        receive(body, post);
      } catch (failure) {
        fail(post.response, failure, post.headers);
      }
    },
  );

  function receive(body: Buffer, { request, response, agent, headers }: Post): void {
    const { depth } = gateway.config.limits;
    const batch = readBatch(body);
    if (batch !== null) {
      if (isModernHeader(request.headers)) throw batchRefused();
      const session = findSession(request, agent);
      receiveBatch(
        session,
        batch.map((part) => readMessage(part, depth)),
        response,
        headers,
      );
      return;
    }
    const message = readMessage(body, depth);
    if (isStateless(message, request.headers)) {
      stateless.receive(message, request, response, agent, headers);
      return;
    }
    if (message.method === 'initialize') {
      initialize(message, response, agent, headers);
      return;
    }
    const session = findSession(request, agent);
    if (isRequest(message)) {
      session.peer.request(message, new HttpExchange(response, headers));
    } else {
      session.peer.accept(message);
      response.writeHead(202, [...headers, 'content-length', '0']).end();
    }
  }

  function initialize(message: Message, response: ServerResponse, agent: string, headers: readonly string[]): void {
    if (!isRequest(message)) throw new GatewayError('request_invalid', '"initialize" is a request and needs an id.');
    const session = sessions.open(agent);
    session.peer.request(message, new HttpExchange(response, ['mcp-session-id', session.id, ...headers]));
    // Refused: nobody will come back for it.
    if (session.peer.revision === null) sessions.end(session);
  }

  function receiveBatch(
    session: Session,
    messages: readonly Message[],
    response: ServerResponse,
    headers: readonly string[],
  ): void {
    const { revision } = session.peer;
    if (revision === null || !allowsBatch(revision)) throw batchRefused();
    const expected = messages.filter(isRequest).length;
    const exchange = expected === 0 ? null : new HttpExchange(response, headers, expected);
    for (const message of messages) deliver(session.peer, message, () => exchange!);
    if (exchange === null) response.writeHead(202, [...headers, 'content-length', '0']).end();
  }

  function findSession(request: IncomingMessage, agent: string): Session {
    const id = request.headers['mcp-session-id'];
    if (typeof id !== 'string') {
      throw new GatewayError(
        'session_missing',
        'The Mcp-Session-Id header is missing: start with "initialize" and send the id it answers with.',
      );
    }
    const version = request.headers['mcp-protocol-version'];
    if (version !== undefined && !isRevision(version)) {
      throw new GatewayError(
        'version_unsupported',
        `This MCP-Protocol-Version is not supported; Toolgate speaks ${ALL_REVISIONS.join(', ')}.`,
      );
    }
    return sessions.find(id, agent);
  }

  return (request, response, agent, headers) => {
    if (request.method !== 'POST' && isModernHeader(request.headers))
      throw new GatewayError('method_not_allowed', 'Only POST is possible in this revision of the protocol.');
    switch (request.method) {
      case 'POST':
        if (!isJson(request.headers['content-type'])) {
          throw new GatewayError('media_unsupported', 'Send the message as application/json.');
        }
        accepts(request, POST_REPLIES);
        readBody(new Post(request, response, agent, headers));
        return;
      case 'GET': {
        accepts(request, STREAM);
        const session = findSession(request, agent);
        startStream(response, headers);
        session.listen(response);
        return;
      }
      case 'DELETE':
        sessions.end(findSession(request, agent));
        response.writeHead(204, [...headers]).end();
        return;
      default:
        throw new GatewayError('method_not_allowed', 'Only POST, GET and DELETE are possible here.');
    }
  };
}

function batchRefused(): GatewayError {
  return new GatewayError(
    'request_invalid',
    'A batch is not allowed in this revision of the protocol; send one message at a time.',
  );
}

function isJson(type: string | undefined): boolean {
  return (
    type === 'application/json' ||
    (type !== undefined && type.split(';', 1)[0]!.trim().toLowerCase() === 'application/json')
  );
}

const STREAM = ['text/event-stream'];
const POST_REPLIES = ['application/json', 'text/event-stream'];

/** Refuses a client that would not understand what it gets. */
function accepts(request: IncomingMessage, types: readonly string[]): void {
  const { accept } = request.headers;
  if (accept === undefined || accept.includes('*/*')) return;
  for (const type of types) {
    if (!accept.includes(type))
      throw new GatewayError('not_acceptable', `The Accept header must list ${types.join(' and ')}.`);
  }
}
