/** The protocol over a connection: handshake, then the lists, page by page. */
import { type Item, type Kind, kindWords, type Offer, readItems } from '../catalog/item.ts';
import { GatewayError } from '../errors.ts';
import { decodeString, findMember, toBytes } from '../protocol/json.ts';
import { join } from '../protocol/parts.ts';
import { isRevision, LATEST_REVISION, REVISIONS } from '../protocol/revisions.ts';
import { notificationMessage, requestMessage } from '../protocol/rpc.ts';
import { IDENTITY, INSTANCE, INSTANCE_KEY } from '../version.ts';
import type { Connection } from './connection.ts';

const MAX_PAGES = 1000;

/** An error object that a server answered with. */
class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: number;

  constructor(error: Buffer) {
    const body = parseError(error);
    super(String(body?.message ?? 'unknown error'));
    this.code = typeof body?.code === 'number' ? body.code : 0;
  }
}

/** Servers send `null` too, or what JSON.parse does not take; either must not reach the pipe's reader as an exception. */
function parseError(error: Buffer): { code?: unknown; message?: unknown } | null {
  try {
    return JSON.parse(error.toString()) as { code?: unknown; message?: unknown } | null;
  } catch {
    return null;
  }
}

/** A request of our own, outside the path of a call. */
export function ask(connection: Connection, method: string, params: unknown, timeout: number): Promise<Buffer> {
  const bytes = params === undefined ? null : toBytes(params);
  return new Promise((resolve, reject) => {
    connection.request({
      method,
      encode: (id) => requestMessage(id, method, bytes),
      token: null,
      timeout,
      sink: {
        result: (result) => resolve(join(result)),
        error: (error) => reject(new UpstreamError(error)),
        fail: reject,
        progress() {},
      },
    });
  });
}

export interface Greeting {
  readonly revision: string;
  readonly server: string;
  readonly kinds: readonly Kind[];
}

export async function greet(connection: Connection, timeout: number): Promise<Greeting> {
  const _meta = { [INSTANCE_KEY]: INSTANCE };
  const params = { protocolVersion: LATEST_REVISION, capabilities: {}, clientInfo: IDENTITY, _meta };
  const result = await ask(connection, 'initialize', params, timeout);
  const answer = JSON.parse(result.toString()) as {
    protocolVersion?: unknown;
    capabilities?: Record<string, unknown>;
    serverInfo?: { name?: unknown; version?: unknown };
  };
  const revision = answer.protocolVersion;
  if (!isRevision(revision)) {
    const text = `speaks protocol revision ${JSON.stringify(revision)}, Toolgate speaks ${REVISIONS.join(', ')}`;
    throw new GatewayError('source_broken', text);
  }
  connection.agreed(revision);
  connection.notify(notificationMessage('notifications/initialized'));
  const capabilities = answer.capabilities ?? {};
  const kinds: Kind[] = [];
  if (capabilities.tools !== undefined) kinds.push('tool');
  if (capabilities.resources !== undefined) kinds.push('resource', 'template');
  if (capabilities.prompts !== undefined) kinds.push('prompt');
  return { revision, server: [answer.serverInfo?.name, answer.serverInfo?.version].filter(Boolean).join(' '), kinds };
}

/** Everything of the given kinds. `deadline` is for all pages together. */
export async function listOffer(connection: Connection, kinds: readonly Kind[], deadline: number): Promise<Offer> {
  const offers = await Promise.all(kinds.map((kind) => listKind(connection, kind, deadline)));
  return { items: offers.flatMap((offer) => offer.items), problems: offers.flatMap((offer) => offer.problems) };
}

/** All pages of one list; a server whose pages never end is cut off and reported. */
async function listKind(connection: Connection, kind: Kind, deadline: number): Promise<Offer> {
  const { method } = kindWords[kind];
  const items: Item[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  let cursor: string | null = null;
  for (let page = 1; ; page++) {
    let result: Buffer;
    try {
      const left = Math.max(1, deadline - Date.now());
      result = await ask(connection, method, cursor === null ? {} : { cursor }, left);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      // Many servers with resources have no templates and do not know the method.
      if (!(kind === 'template' && error.code === -32601)) problems.push(`${method} failed: ${error.message}`);
      break;
    }
    const offer = readItems(kind, result);
    items.push(...offer.items);
    problems.push(...offer.problems);
    cursor = nextCursor(result);
    if (cursor === null) break;
    if (seen.has(cursor)) {
      problems.push(`${method} gave the cursor ${JSON.stringify(cursor)} twice; the list may be incomplete`);
      break;
    }
    if (page === MAX_PAGES) {
      problems.push(`${method} has more than ${MAX_PAGES} pages; the rest was left out`);
      break;
    }
    seen.add(cursor);
  }
  return { items, problems };
}

function nextCursor(result: Buffer): string | null {
  const cursor = findMember(result, 'nextCursor');
  return cursor === null || result[cursor.start] !== 0x22 ? null : decodeString(result, cursor.start, cursor.end);
}
