/** Requests of Toolgate's own, outside the path of a call. */
import { READS_AT_ONCE, type SourceRequest, type Ticket } from '../protocol/contract.ts';
import { NO_ABILITIES, OWN_META } from '../protocol/envelope.ts';
import { toBytes } from '../protocol/json.ts';
import { join } from '../protocol/parts.ts';
import { unanswerable } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';
import { requestMessage } from '../protocol/rpc.ts';

/** An error object that a server answered with. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: number;
  readonly data: unknown;
  /** The complete object, as the server sent it. */
  readonly error: Buffer;

  constructor(error: Buffer) {
    const body = parseError(error);
    super(String(body?.message ?? 'unknown error'));
    this.code = typeof body?.code === 'number' ? body.code : 0;
    this.data = body?.data;
    this.error = error;
  }
}

interface ErrorObject {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly data?: unknown;
}

/** Servers also send `null`, or invalid JSON. Neither must become an exception in the reader of the pipe. */
function parseError(error: Buffer): ErrorObject | null {
  try {
    return JSON.parse(error.toString()) as ErrorObject | null;
  } catch {
    return null;
  }
}

/** The parameters of a request of our own, in the form of the era. */
export function ownParams(params: object, era: Era): Buffer {
  return toBytes(era === 'modern' ? { ...params, _meta: { ...OWN_META, ...metaOf(params) } } : params);
}

function metaOf(params: object): object {
  return (params as { _meta?: object })._meta ?? {};
}

const OURSELVES = {};

/** A connection or a source. */
interface RequestTaker {
  request(request: SourceRequest): Ticket;
}

/** A request that can be cancelled. */
export interface OwnRequest {
  readonly answer: Promise<Buffer>;
  readonly ticket: Ticket;
}

export function startAsking(server: RequestTaker, method: string, params: object, timeout: number): OwnRequest {
  let ticket: Ticket | null = null;
  const answer = new Promise<Buffer>((resolve, reject) => {
    ticket = server.request({
      method,
      encode: (id, era) => requestMessage(id, method, ownParams(params, era)),
      headers: () => ['mcp-method', method],
      token: null,
      pinned: true,
      client: null,
      timeout,
      totalTimeout: timeout,
      sink: {
        ...NO_ABILITIES,
        ...READS_AT_ONCE,
        owner: OURSELVES,
        awaySince: null,
        result: (result) => resolve(join(result)),
        error: (error) => reject(new UpstreamError(error)),
        fail: reject,
        notify() {},
        ask: ({ method, refuse }) => refuse(unanswerable(method, 'it was asked outside of a call')),
      },
    });
  });
  return { answer, ticket: ticket! };
}

export function ask(server: RequestTaker, method: string, params: object, timeout: number): Promise<Buffer> {
  return startAsking(server, method, params, timeout).answer;
}
