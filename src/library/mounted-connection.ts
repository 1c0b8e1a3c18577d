/**
 * One connection of a server of the official SDK, with toolsets beside its own tools. It stands between the transport and the
 * server: lists are put together, calls go to whoever has the tool, and all else is the server's. Both generations of the SDK
 * have the same messages there, in either era, so that nothing has to be known of the server itself.
 */

import { GatewayError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/objects.ts';
import { FULL_SCOPE } from '../calls/caller.ts';
import { programIdentity } from '../calls/identity.ts';
import { BUILT_IN } from '../catalog/entry.ts';
import type { Exchange } from '../doors/answer.ts';
import { type Channel, openChannel } from '../doors/channel.ts';
import type { Gateway } from '../gateway/types.ts';
import { toBytes } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { PROTOCOL_VERSION } from '../protocol/meta.ts';
import { join } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';

/** The server, and the client behind its transport. */
export interface SdkEnds {
  /** Gives the server a message, with what its transport said of it. */
  serve(message: JsonObject, extra?: unknown): void;
  /** Sends the client one. `related` is the request in whose course it is said. */
  send(message: JsonObject, options?: { readonly relatedRequestId?: unknown }): Promise<void>;
  /** Something could not be sent, or is wrong with the server. */
  failed(error: Error): void;
}

export interface MountedClient {
  readonly agent: string;
  readonly principal: string;
  /** The tools of the toolsets have changed. */
  changed(): void;
  /** The names of the server's own tools, which those of toolsets cannot have. */
  reserve(names: ReadonlySet<string>): void;
}

export interface MountedConnection {
  /** The client says something. */
  fromClient(message: JsonObject, extra?: unknown): void;
  /** The server does. */
  fromServer(message: JsonObject, options?: object): Promise<void>;
  close(): void;
}

const CHANGED = 'notifications/tools/list_changed';
const NOT_FOUND = -32601;
/** Before the ids of what is asked of either by us. */
const OURS = 'toolgate:';
/** Before those of questions that the client is asked for a toolset. */
const QUESTION = 'toolgate-';
/** Of more pages than these a server has no end of them. */
const MOST_PAGES = 1_000;

export function combine(gateway: Gateway, session: MountedClient, ends: SdkEnds): MountedConnection {
  const { agent, principal } = session;
  const client = { identity: programIdentity(agent, principal), scope: FULL_SCOPE, door: 'local' } as const;
  const caller = gateway.join({
    ...client,
    changed(kind) {
      if (kind !== 'tools') return;
      say({ jsonrpc: '2.0', method: CHANGED });
      session.changed();
    },
  });
  let channel: Channel | null = null;
  /** What the client said when it opened a session, as far as it did. */
  let handshake: JsonObject = {};
  let greetingId: unknown;
  /** Lists of the server that are on their way, and the era of who asked for them. */
  const listing = new Map<unknown, Era>();
  /** Requests that are no error where the server does not know them. */
  const lenient = new Set<unknown>();
  const asked = new Map<unknown, (message: JsonObject) => void>();
  /** The server's own; null where that is not known. */
  let own: ReadonlySet<string> | null = null;
  let pages = new Set<string>();
  let lastId = 0;
  let isOpen = true;

  function say(message: JsonObject, relatedRequestId?: unknown): void {
    if (!isOpen) return;
    ends.send(message, relatedRequestId === undefined ? undefined : { relatedRequestId }).catch(ends.failed);
  }

  function exchangeOf(id: unknown): Exchange {
    const isQuiet = typeof id === 'string' && id.startsWith(OURS);
    const tell = (text: string) => {
      if (!isQuiet) say(JSON.parse(text) as JsonObject, id);
    };
    return {
      send: (message) => tell(message.toString()),
      finish: ({ head, body, tail }) => tell(head + join(body).toString() + tail),
      abandon() {},
      keepAlive() {},
      isFull: false,
      whenDrained: (goOn) => goOn(),
    };
  }

  /** The way to the toolsets, opened when the first call is made. */
  function channelIn(era: Era): Channel {
    if (channel !== null) return channel;
    channel = openChannel(gateway, client, {
      exchange: exchangeOf(null),
      exchangeFor: (message: Message) => exchangeOf(JSON.parse(idText(message))),
      // Of changed lists we hear ourselves.
      notify: (message) => {
        const said = JSON.parse(message.toString()) as JsonObject;
        if (!String(said.method).endsWith('/list_changed')) say(said);
      },
      end() {},
    });
    if (era === 'legacy') {
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: CLIENT, ...handshake };
      give({ jsonrpc: '2.0', id: `${OURS}greeting`, method: 'initialize', params });
      give({ jsonrpc: '2.0', method: 'notifications/initialized' });
    }
    return channel;
  }

  function give(message: JsonObject): void {
    channel?.receive(toBytes(message));
  }

  function call(message: JsonObject, params: JsonObject): void {
    if (!isOpen) return;
    // What it would be asked about such a task, the server would be asked.
    const { task: _, ...rest } = params;
    channelIn(eraOf(params));
    give({ ...message, params: rest });
  }

  function takeCall(message: JsonObject, params: JsonObject, extra: unknown): void {
    const entry = caller.view().entries.tool.get(String(params.name));
    if (entry === undefined) ends.serve(message, extra);
    else if (own?.has(entry.name)) refuse(message.id, twice([entry.name]));
    // What is about to be switched on must not be called like what the server has.
    else if (entry.sourceId === BUILT_IN && own === null) {
      const goOn = () => call(message, params);
      learn(params, extra).then(goOn, goOn);
    } else call(message, params);
  }

  function refuse(id: unknown, error: GatewayError): void {
    ends.failed(error);
    say({ jsonrpc: '2.0', id, error: { code: error.rpcCode, message: error.message } }, id);
  }

  /** Asks the server for its own tools. */
  async function learn(params: JsonObject, extra: unknown): Promise<void> {
    let cursor: unknown;
    for (let page = 0; page < MOST_PAGES; page++) {
      const id = `${OURS}${++lastId}`;
      const said = {
        ...(params._meta !== undefined && { _meta: params._meta }),
        ...(cursor !== undefined && { cursor }),
      };
      const answer = await new Promise<JsonObject>((resolve) => {
        asked.set(id, resolve);
        ends.serve({ jsonrpc: '2.0', id, method: 'tools/list', params: said }, extra);
      });
      const result = isObject(answer.result) ? answer.result : {};
      note(result, page === 0);
      cursor = result.nextCursor;
      if (cursor === undefined) return;
    }
  }

  function note(result: JsonObject, isFirst: boolean): void {
    if (isFirst) pages = new Set();
    for (const name of namesOf(result)) pages.add(name);
    if (result.nextCursor !== undefined) return;
    own = pages;
    session.reserve(pages);
  }

  /** The server's list, with ours at its end. */
  function completed(message: JsonObject, era: Era): JsonObject {
    const isThere = isObject(message.result);
    const isNone = isObject(message.error) && message.error.code === NOT_FOUND;
    if (!isThere && !isNone) return message;
    const theirs: JsonObject = isThere ? (message.result as JsonObject) : {};
    note(theirs, !isLater.delete(message.id));
    if (theirs.nextCursor !== undefined) return message;
    const ours = JSON.parse(caller.list('tool', era).toString()) as JsonObject;
    const both = namesOf(ours).filter((name) => own!.has(name));
    if (both.length > 0) {
      const error = twice(both);
      ends.failed(error);
      return { jsonrpc: '2.0', id: message.id, error: { code: error.rpcCode, message: error.message } };
    }
    const tools = [...listOf(theirs), ...listOf(ours)];
    return { jsonrpc: '2.0', id: message.id, result: { ...theirs, ...(era === 'modern' && NOT_KEPT), tools } };
  }

  /** Lists of which another page is asked for. */
  const isLater = new Set<unknown>();

  function fromClient(message: JsonObject, extra?: unknown): void {
    const params = isObject(message.params) ? message.params : {};
    switch (message.method) {
      case 'tools/call':
        takeCall(message, params, extra);
        return;
      case 'tools/list':
        listing.set(message.id, eraOf(params));
        if (params.cursor !== undefined) isLater.add(message.id);
        break;
      case 'initialize':
        handshake = params;
        greetingId = message.id;
        break;
      case 'logging/setLevel':
        lenient.add(message.id);
        channelIn('legacy');
        give({ ...message, id: `${OURS}level` });
        break;
      case 'notifications/cancelled':
        // Then there is no answer either.
        listing.delete(params.requestId);
        lenient.delete(params.requestId);
        give(message);
        break;
      case 'notifications/roots/list_changed':
        give(message);
        break;
      case undefined:
        if (typeof message.id !== 'string' || !message.id.startsWith(QUESTION)) break;
        give(message);
        return;
    }
    ends.serve(message, extra);
  }

  function fromServer(message: JsonObject, options?: object): Promise<void> {
    if (message.method === CHANGED) own = null;
    if (message.method !== undefined) return ends.send(message, options);
    const { id } = message;
    const heard = asked.get(id);
    if (heard !== undefined) {
      asked.delete(id);
      heard(message);
      return Promise.resolve();
    }
    const era = listing.get(id);
    if (era !== undefined) {
      listing.delete(id);
      return ends.send(completed(message, era), options);
    }
    if (id === greetingId && isObject(message.result)) {
      greetingId = undefined;
      handshake = { ...handshake, protocolVersion: message.result.protocolVersion };
    }
    const isUnknown = lenient.delete(id) && isObject(message.error) && message.error.code === NOT_FOUND;
    return ends.send(isUnknown ? { jsonrpc: '2.0', id, result: {} } : message, options);
  }

  return {
    fromClient,
    fromServer,
    close() {
      isOpen = false;
      channel?.close();
      caller.leave();
      session.reserve(new Set());
    },
  };
}

/** Whatever the server says of its own list, ours is of this client and may change with its next call. */
const NOT_KEPT = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

const CLIENT = { name: 'unknown', version: '0' };

function eraOf({ _meta }: JsonObject): Era {
  return isObject(_meta) && _meta[PROTOCOL_VERSION] !== undefined ? 'modern' : 'legacy';
}

function listOf({ tools }: JsonObject): readonly unknown[] {
  return Array.isArray(tools) ? tools : [];
}

function namesOf(result: JsonObject): string[] {
  return listOf(result).map((tool) => String(isObject(tool) ? tool.name : ''));
}

function twice(names: readonly string[]): GatewayError {
  return new GatewayError(
    'internal',
    `The server has tools of its own that are called like tools of its toolsets: ${names.join(', ')}. Rename one of each two.`,
  );
}
