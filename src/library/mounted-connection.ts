/**
 * Adds toolsets to one connection of an official SDK server. It sits between the transport and the server. It merges
 * the lists, routes each request to the owner of the item that it names, and passes everything else to the server. Both
 * generations of the SDK exchange the same messages there, in either era, so it does not depend on how the server is
 * built.
 */
import { findResource, findTemplate } from '../access/find.ts';
import type { ListKind } from '../access/view.ts';
import { GatewayError } from '../base/errors.ts';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { type Caller, type ClientOptions, FULL_SCOPE } from '../calls/caller.ts';
import { programIdentity } from '../calls/identity.ts';
import { BUILT_IN } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { matchesTemplate } from '../catalog/template.ts';
import type { Exchange } from '../doors/answer.ts';
import { type Channel, openChannel } from '../doors/channel.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { toBytes } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { PROTOCOL_VERSION } from '../protocol/meta.ts';
import { join } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';

/** The SDK server, and the client behind its transport. */
export interface SdkEnds {
  /** Passes a message to the server, with the extra information from its transport. */
  serve(message: JsonObject, extra?: unknown): void;
  /** Sends a message to the client. `relatedRequestId` is the request that it belongs to. */
  send(message: JsonObject, options?: { readonly relatedRequestId?: unknown }): Promise<void>;
  /** A message could not be sent, or something is wrong with the server. */
  failed(error: Error): void;
}

/** The client of a mounted connection. */
export interface MountedClient {
  readonly agent: string;
  readonly principal: string;
  /** A list of its toolsets has changed. */
  changed(list: ListKind): void;
  /** Sets the names of the server's own tools, which tools of toolsets must not have. */
  reserve(names: ReadonlySet<string>): void;
}

/** The methods that list, what they list, and the member of a definition that identifies it. */
const LISTS: Readonly<Record<string, { readonly kind: Kind; readonly items: string; readonly id: string }>> = {
  'tools/list': { kind: 'tool', items: 'tools', id: 'name' },
  'prompts/list': { kind: 'prompt', items: 'prompts', id: 'name' },
  'resources/list': { kind: 'resource', items: 'resources', id: 'uri' },
  'resources/templates/list': { kind: 'template', items: 'resourceTemplates', id: 'uriTemplate' },
};
/** What has to be listed again after a notification of the server. */
const CHANGES: Readonly<Record<string, readonly Kind[]>> = {
  'notifications/tools/list_changed': ['tool'],
  'notifications/prompts/list_changed': ['prompt'],
  'notifications/resources/list_changed': ['resource', 'template'],
};
const METHOD_NOT_FOUND = -32601;
/** The prefix of the ids of our own requests, to the server and to the gateway. */
const OURS = 'toolgate:';
/** The prefix of the ids of requests that toolsets send to the client. */
const QUESTION = 'toolgate-';
/** A server that lists more pages than this is assumed never to stop. */
const MOST_PAGES = 1_000;
/** The merged list is for this client only and may change with its next call, so it overrides what the server says. */
const NOT_CACHEABLE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
const UNKNOWN_CLIENT = { name: 'unknown', version: '0' };

export class MountedConnection {
  private readonly gateway: Gateway;
  private readonly client: MountedClient;
  private readonly clientOptions: ClientOptions;
  private readonly ends: SdkEnds;
  private readonly caller: Caller;
  /** Leads to the toolsets. Opened for the first call. */
  private channel: Channel | null = null;
  /** The client's `initialize`, with the revision that the server agreed to. Empty in the modern era. */
  private handshake: JsonObject = {};
  private initializeId: unknown;
  /** The client's requests for lists that the server is answering. */
  private readonly listing = new Map<
    unknown,
    { readonly method: string; readonly era: Era; readonly isFirstPage: boolean }
  >();
  /** The client's requests that must not fail if the server does not know the method. */
  private readonly lenient = new Set<unknown>();
  /** Our own requests to the server. */
  private readonly asked = new Map<unknown, (answer: JsonObject) => void>();
  /** The names of the server's own items, as far as they are known. */
  private readonly own = new Map<Kind, ReadonlySet<string>>();
  /** The names on the pages that the server has listed so far. */
  private readonly listed = new Map<Kind, Set<string>>();
  private lastId = 0;
  private isOpen = true;

  constructor(gateway: Gateway, client: MountedClient, ends: SdkEnds) {
    this.gateway = gateway;
    this.client = client;
    this.ends = ends;
    const { agent, principal } = client;
    this.clientOptions = { identity: programIdentity(agent, principal), scope: FULL_SCOPE, door: 'local' };
    this.caller = gateway.join({
      ...this.clientOptions,
      changed: (list) => {
        this.sendToClient({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` });
        client.changed(list);
      },
    });
  }

  /** The client sent a message. */
  fromClient(message: JsonObject, extra?: unknown): void {
    const params = toObject(message.params);
    switch (message.method) {
      case 'tools/call':
        this.routeCall(message, params, extra);
        return;
      case 'prompts/get':
        this.routeNamed(message, params, extra, 'prompt', String(params.name));
        return;
      case 'resources/read':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        void this.routeResource(message, params, extra);
        return;
      case 'completion/complete': {
        const { type, name, uri } = toObject(params.ref);
        if (type === 'ref/prompt') this.routeNamed(message, params, extra, 'prompt', String(name));
        else this.routeNamed(message, params, extra, 'template', String(uri));
        return;
      }
      case 'tools/list':
      case 'prompts/list':
      case 'resources/list':
      case 'resources/templates/list':
        this.listing.set(message.id, {
          method: message.method,
          era: eraOf(params),
          isFirstPage: params.cursor === undefined,
        });
        break;
      case 'initialize':
        this.handshake = params;
        this.initializeId = message.id;
        break;
      case 'logging/setLevel':
        this.lenient.add(message.id);
        this.openChannel('legacy');
        this.sendToToolsets({ ...message, id: `${OURS}level` });
        break;
      case 'notifications/cancelled':
        // The server will not answer these.
        this.listing.delete(params.requestId);
        this.lenient.delete(params.requestId);
        this.sendToToolsets(message);
        break;
      case 'notifications/roots/list_changed':
        this.sendToToolsets(message);
        break;
      case undefined:
        if (typeof message.id !== 'string' || !message.id.startsWith(QUESTION)) break;
        this.sendToToolsets(message);
        return;
    }
    this.ends.serve(message, extra);
  }

  /** The server sent a message. */
  fromServer(message: JsonObject, options?: object): Promise<void> {
    if (message.method !== undefined) {
      for (const kind of CHANGES[String(message.method)] ?? []) this.own.delete(kind);
      return this.ends.send(message, options);
    }
    const { id } = message;
    const answered = this.asked.get(id);
    if (answered !== undefined) {
      this.asked.delete(id);
      answered(message);
      return Promise.resolve();
    }
    const list = this.listing.get(id);
    if (list !== undefined) {
      this.listing.delete(id);
      return this.ends.send(this.mergeLists(message, list.method, list.era, list.isFirstPage), options);
    }
    if (id === this.initializeId && isObject(message.result)) {
      this.initializeId = undefined;
      this.handshake = { ...this.handshake, protocolVersion: message.result.protocolVersion };
    }
    const isIgnored = this.lenient.delete(id) && isMethodUnknown(message);
    return this.ends.send(isIgnored ? { jsonrpc: '2.0', id, result: {} } : message, options);
  }

  close(): void {
    this.isOpen = false;
    this.channel?.close();
    this.caller.leave();
    this.client.reserve(new Set());
  }

  // Requests that name an item.

  private routeCall(message: JsonObject, params: JsonObject, extra: unknown): void {
    const entry = this.caller.view().entries.tool.get(String(params.name));
    if (entry?.sourceId === BUILT_IN && !this.own.has('tool')) {
      // A meta-tool may switch on a toolset. Its tools must not have names of the server's own tools.
      const call = () => this.askToolset(message, params);
      this.learnOwn('tools/list', params, extra).then(call, call);
    } else this.routeNamed(message, params, extra, 'tool', String(params.name));
  }

  private routeNamed(message: JsonObject, params: JsonObject, extra: unknown, kind: Kind, name: string): void {
    const view = this.caller.view();
    const entry = kind === 'template' ? findTemplate(view, name) : view.entries[kind].get(name);
    if (entry === undefined) this.ends.serve(message, extra);
    else if (this.own.get(kind)?.has(name)) this.refuse(message.id, conflict(kind, [name]));
    else this.askToolset(message, params);
  }

  /** A URI may come from a template, so the server's own lists decide whose it is. */
  private async routeResource(message: JsonObject, params: JsonObject, extra: unknown): Promise<void> {
    const uri = String(params.uri);
    if (!this.hasResource(uri)) return this.ends.serve(message, extra);
    for (const method of ['resources/list', 'resources/templates/list'])
      if (!this.own.has(LISTS[method]!.kind)) await this.learnOwn(method, params, extra).catch(() => {});
    const isListed = this.caller.view().entries.resource.has(uri);
    const isOwn = this.own.get('resource')?.has(uri) === true;
    if (isListed && isOwn) this.refuse(message.id, conflict('resource', [uri]));
    else if (isOwn || (!isListed && this.hasOwnTemplate(uri))) this.ends.serve(message, extra);
    else this.askToolset(message, params);
  }

  private hasResource(uri: string): boolean {
    try {
      findResource(this.caller.view(), uri);
      return true;
    } catch {
      return false;
    }
  }

  private hasOwnTemplate(uri: string): boolean {
    return [...(this.own.get('template') ?? [])].some((template) => matchesTemplate(template, uri));
  }

  private askToolset(message: JsonObject, params: JsonObject): void {
    if (!this.isOpen) return;
    // The client would poll the server for an MCP task that the server does not know. So the call does not run as one.
    const { task: _, ...rest } = params;
    this.openChannel(eraOf(params));
    this.sendToToolsets({ ...message, params: rest });
  }

  private refuse(id: unknown, error: GatewayError): void {
    this.ends.failed(error);
    this.sendToClient(errorAnswer(id, error), id);
  }

  // Lists.

  /** The server's list, with the items of the toolsets at the end of the last page. */
  private mergeLists(answer: JsonObject, method: string, era: Era, isFirstPage: boolean): JsonObject {
    if (!isObject(answer.result) && !isMethodUnknown(answer)) return answer;
    const { kind, items, id } = LISTS[method]!;
    const page = toObject(answer.result);
    this.noteOwn(method, page, isFirstPage);
    if (page.nextCursor !== undefined) return answer;
    const ours = listIn(JSON.parse(this.caller.list(kind, era).toString()), items);
    const both = namesOf(ours, id).filter((name) => this.own.get(kind)!.has(name));
    if (both.length > 0) {
      const error = conflict(kind, both);
      this.ends.failed(error);
      return errorAnswer(answer.id, error);
    }
    const all = [...listIn(page, items), ...ours];
    const result = { ...page, ...(era === 'modern' && NOT_CACHEABLE), [items]: all };
    return { jsonrpc: '2.0', id: answer.id, result };
  }

  private noteOwn(method: string, page: JsonObject, isFirstPage: boolean): void {
    const { kind, items, id } = LISTS[method]!;
    const names = isFirstPage ? new Set<string>() : (this.listed.get(kind) ?? new Set());
    this.listed.set(kind, names);
    for (const name of namesOf(listIn(page, items), id)) names.add(name);
    if (page.nextCursor !== undefined) return;
    this.own.set(kind, names);
    if (kind === 'tool') this.client.reserve(names);
  }

  /** Asks the server for the names of its own items. */
  private async learnOwn(method: string, params: JsonObject, extra: unknown): Promise<void> {
    let cursor: unknown;
    for (let page = 0; page < MOST_PAGES; page++) {
      const id = `${OURS}${++this.lastId}`;
      const listParams = {
        ...(params._meta !== undefined && { _meta: params._meta }),
        ...(cursor !== undefined && { cursor }),
      };
      const answer = await new Promise<JsonObject>((resolve) => {
        this.asked.set(id, resolve);
        this.ends.serve({ jsonrpc: '2.0', id, method, params: listParams }, extra);
      });
      const result = toObject(answer.result);
      this.noteOwn(method, result, page === 0);
      cursor = result.nextCursor;
      if (cursor === undefined) return;
    }
  }

  // Messages.

  private openChannel(era: Era): void {
    if (this.channel !== null) return;
    this.channel = openChannel(this.gateway, this.clientOptions, {
      exchange: this.exchangeFor(null),
      exchangeFor: (message: Message) => this.exchangeFor(JSON.parse(idText(message))),
      notify: (bytes) => {
        const message = JSON.parse(bytes.toString()) as JsonObject;
        // The caller already reports changed lists.
        if (!String(message.method).endsWith('/list_changed')) this.sendToClient(message);
      },
      end() {},
    });
    if (era === 'legacy') {
      const params = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: UNKNOWN_CLIENT,
        ...this.handshake,
      };
      this.sendToToolsets({ jsonrpc: '2.0', id: `${OURS}initialize`, method: 'initialize', params });
      this.sendToToolsets({ jsonrpc: '2.0', method: 'notifications/initialized' });
    }
  }

  /** Answers to our own requests are not sent to the client. */
  private exchangeFor(id: unknown): Exchange {
    const isOurs = typeof id === 'string' && id.startsWith(OURS);
    const send = (text: string) => {
      if (!isOurs) this.sendToClient(JSON.parse(text) as JsonObject, id);
    };
    return {
      send: (message) => send(message.toString()),
      finish: ({ head, body, tail }) => send(head + join(body).toString() + tail),
      abandon() {},
      keepAlive() {},
      isFull: false,
      whenDrained: (resume) => resume(),
    };
  }

  private sendToClient(message: JsonObject, relatedRequestId?: unknown): void {
    if (!this.isOpen) return;
    const options = relatedRequestId === undefined ? undefined : { relatedRequestId };
    this.ends.send(message, options).catch(this.ends.failed);
  }

  private sendToToolsets(message: JsonObject): void {
    this.channel?.receive(toBytes(message));
  }
}

function eraOf({ _meta }: JsonObject): Era {
  return isObject(_meta) && _meta[PROTOCOL_VERSION] !== undefined ? 'modern' : 'legacy';
}

function isMethodUnknown({ error }: JsonObject): boolean {
  return isObject(error) && error.code === METHOD_NOT_FOUND;
}

function errorAnswer(id: unknown, error: GatewayError): JsonObject {
  return { jsonrpc: '2.0', id, error: { code: error.rpcCode, message: error.message } };
}

function listIn(result: JsonObject, items: string): readonly unknown[] {
  const list = result[items];
  return Array.isArray(list) ? list : [];
}

function namesOf(items: readonly unknown[], id: string): string[] {
  return items.map((item) => String(isObject(item) ? item[id] : ''));
}

function conflict(kind: Kind, names: readonly string[]): GatewayError {
  const what = kind === 'tool' || kind === 'prompt' ? `${kind}s with the same names` : `the same ${kind}s`;
  return new GatewayError(
    'internal',
    `The server and its toolsets have ${what}: ${names.join(', ')}. Rename one of each pair.`,
  );
}
