/** `/mcp`: Streamable HTTP for the revisions with sessions. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { Gateway } from '../../gateway.ts';
import { JsonError, readElements } from '../../protocol/json.ts';
import { isRequest, type Message, readMessage } from '../../protocol/message.ts';
import { allowsBatch, isRevision, REVISIONS } from '../../protocol/revisions.ts';
import { deliver } from '../peer.ts';
import { HttpExchange, startStream } from './exchange.ts';
import type { Session, Sessions } from './sessions.ts';

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
  fail: (response: ServerResponse, error: unknown) => void,
): McpHandler {
  function post(request: IncomingMessage, response: ServerResponse, agent: string, headers: readonly string[]): void {
    if (!isJson(request.headers['content-type'])) {
      throw new GatewayError('media_unsupported', 'Send the message as application/json.');
    }
    accepts(request, 'application/json', 'text/event-stream');
    readBody(request, gateway.config.limits.body, (error, body) => {
      try {
        if (error !== null) throw error;
        receive(body, request, response, agent, headers);
      } catch (failure) {
        fail(response, failure);
      }
    });
  }

  function receive(
    body: Buffer,
    request: IncomingMessage,
    response: ServerResponse,
    agent: string,
    headers: readonly string[],
  ): void {
    const { depth } = gateway.config.limits;
    const batch = readBatch(body);
    if (batch !== null) {
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
  }

  function receiveBatch(
    session: Session,
    messages: readonly Message[],
    response: ServerResponse,
    headers: readonly string[],
  ): void {
    const { revision } = session.peer;
    if (revision === null || !allowsBatch(revision)) {
      throw new GatewayError(
        'request_invalid',
        'A batch is not allowed in this revision of the protocol; send one message at a time.',
      );
    }
    if (messages.length === 0) throw new GatewayError('request_invalid', 'The batch is empty.');
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
        `This MCP-Protocol-Version is not supported; Toolgate speaks ${REVISIONS.join(', ')}.`,
      );
    }
    return sessions.find(id, agent);
  }

  return (request, response, agent, headers) => {
    switch (request.method) {
      case 'POST':
        post(request, response, agent, headers);
        return;
      case 'GET': {
        accepts(request, 'text/event-stream');
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

function isJson(type: string | undefined): boolean {
  return (
    type === 'application/json' ||
    (type !== undefined && type.split(';', 1)[0]!.trim().toLowerCase() === 'application/json')
  );
}

/** Refuses a client that would not understand what it gets. */
function accepts(request: IncomingMessage, ...types: string[]): void {
  const { accept } = request.headers;
  if (accept === undefined || accept.includes('*/*')) return;
  const missing = types.filter((type) => !accept.includes(type));
  if (missing.length > 0)
    throw new GatewayError('not_acceptable', `The Accept header must list ${types.join(' and ')}.`);
}

function readBatch(body: Buffer): Buffer[] | null {
  try {
    return readElements(body, 0, body.length)?.map(({ start, end }) => body.subarray(start, end)) ?? null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new GatewayError('parse', `The message is not valid JSON: ${error.message}.`);
  }
}

function readBody(
  request: IncomingMessage,
  limit: number,
  done: (error: GatewayError | null, body: Buffer) => void,
): void {
  const tooLarge = () =>
    new GatewayError('too_large', `The message has more than ${limit} bytes; limits.body allows no more.`);
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    const fitted = size <= limit;
    size += chunk.length;
    if (size <= limit) parts.push(chunk);
    else if (fitted) done(tooLarge(), EMPTY);
  });
  request.on('end', () => {
    if (size <= limit) done(null, parts.length === 1 ? parts[0]! : Buffer.concat(parts, size));
  });
  request.on('error', () => {});
}

const EMPTY = Buffer.alloc(0);
