/** Tools over plain HTTP: lists, calls, and what describes them. Whoever comes has no session, and sees all that its policy allows. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { findTool } from '../../../access/find.ts';
import { includesTool } from '../../../access/toolset.ts';
import type { View } from '../../../access/view.ts';
import { type Caller, FULL_SCOPE, type Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import { nameIn } from '../../../catalog/catalog.ts';
import { KINDS } from '../../../catalog/item.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { toBytes } from '../../../protocol/json.ts';
import { namedInCall, toolCall } from '../../../protocol/tool-call.ts';
import { withHeaderTrace } from '../../../protocol/trace.ts';
import { decodePart, pathOf } from '../path.ts';
import type { AgentHandler } from '../router.ts';
import { requireNamespace } from '../scope.ts';
import { createSessionlessClients, type SessionlessClient } from '../sessionless.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post } from '../wire/body.ts';
import { cancelOnClose } from '../wire/cancel-on-close.ts';
import { requireJson, requireJsonReader } from '../wire/content-types.ts';
import { type Fail, sendReply } from '../wire/reply.ts';
import { documentsOf, inputSchemaOf } from './documents.ts';
import { requestId, withOwnId } from './request-id.ts';
import { RestCall } from './rest-call.ts';

export interface RestHandlers {
  /** `GET /tools` */
  readonly list: AgentHandler;
  /** `GET` and `POST /tools/{name}` */
  readonly tool: AgentHandler;
  /** `GET /tools/{name}/schema` */
  readonly schema: AgentHandler;
  readonly namespaces: AgentHandler;
  readonly openApi: AgentHandler;
  /** The same at the addresses of mcpo. */
  readonly mcpoCall: AgentHandler;
  readonly mcpoOpenApi: AgentHandler;
}

export interface Rest extends RestHandlers {
  /** Calls whose clients wait for the answers. */
  readonly awaited: number;
  /** Ends the calls whose credentials were revoked. */
  endRevoked(): void;
  close(): void;
}

export interface RestOptions {
  readonly backpressure: Backpressure;
  readonly fail: Fail;
  /** The address that clients know us by, without a path; empty where that is the one they use. */
  base(): string;
  /** Whether nobody is let in without a token. */
  needsToken(): boolean;
}

/** Over REST nothing is switched, and Toolgate's own tools are left out. */
export const REST_SCOPE: Scope = Object.freeze({ ...FULL_SCOPE, controls: false, selection: 'all' });

class RestClient implements SessionlessClient {
  readonly caller: Caller;
  readonly running: RestCall[] = [];

  constructor(gateway: Gateway, identity: Identity, scope: Scope) {
    this.caller = gateway.join({ identity, scope, door: 'rest' });
  }

  get isIdle(): boolean {
    return this.running.length === 0;
  }

  close(): void {
    for (const call of [...this.running]) call.cancel('the client is gone');
    this.caller.leave();
  }
}

export function createRest(gateway: Gateway, { backpressure, fail, base, needsToken }: RestOptions): Rest {
  const sessionless = createSessionlessClients((identity, scope) => new RestClient(gateway, identity, scope));

  const readBody = createBodyReader(() => gateway.config.limits.body, call, fail);

  /** How the tool at an address is named in calls. The same few addresses come again and again. */
  const named = new Map<string, string>();

  function namedAt(path: string): string {
    const known = named.get(path);
    if (known !== undefined) return known;
    const name = namedInCall(decodePart(path.slice(path.lastIndexOf('/') + 1), 'tool'));
    if (named.size >= MOST_NAMED) named.clear();
    if (path.length <= LONGEST_NAMED) named.set(path, name);
    return name;
  }

  function call({ request, response, headers, identity, scope, isMcpo }: Post, body: Buffer): void {
    // A content type was checked before the body was read.
    if (body.length > 0 && request.headers['content-type'] === undefined) requireJson(request.headers);
    const id = requestId(request.headers);
    const made = toolCall(id, namedAt(pathOf(request.url ?? '')), body, gateway.config.limits.depth);
    const message = request.headers.traceparent === undefined ? made : withHeaderTrace(made, request.headers);
    const { caller, running } = sessionless.of(identity, scope);
    const asked = new RestCall(
      response,
      withOwnId(headers, id),
      id,
      backpressure,
      identity.credential,
      isMcpo,
      running,
    );
    asked.start(gateway.pipeline, caller, message);
    // Over already: nothing to cancel.
    if (asked.place >= 0) cancelOnClose(response, asked);
  }

  /** For what is read: answered when servers have been tried. `ignoresScope` is for what is the same in every namespace. */
  function reading(
    answer: (
      caller: Caller,
      request: IncomingMessage,
      response: ServerResponse,
      headers: readonly string[],
      scope: Scope,
    ) => void | Promise<void>,
    ignoresScope = false,
  ): AgentHandler {
    return async (request, response, headers, identity, scope) => {
      requireJsonReader(request.headers);
      if (!ignoresScope) requireNamespace(gateway, scope);
      const { caller } = sessionless.of(identity, ignoresScope ? { ...scope, toolset: null, namespace: null } : scope);
      await gateway.opening;
      // Some servers do not announce changes: they are listed again now and then, when a client looks.
      if (!ignoresScope) caller.list('tool', 'modern');
      await answer(caller, request, response, headers, scope);
    };
  }

  const list = reading(async (caller, _, response, headers, { namespace }) => {
    const tools = documentsOf(caller.view()).list;
    if (namespace !== null) return send(response, tools, headers);
    const { toolsets } = await gateway.toolsets.list();
    const tail = `,"toolsets":${JSON.stringify(visibleToolsets(caller.view(), toolsets))}}`;
    return send(response, Buffer.concat([TOOLS, tools, Buffer.from(tail)]), headers);
  });

  const definition = reading((caller, { url = '' }, response, headers) =>
    send(response, definitionAt(caller, url, -1), headers),
  );

  const schema = reading((caller, { url = '' }, response, headers) =>
    send(response, inputSchemaOf(definitionAt(caller, url, -2)), headers),
  );

  const namespaces = reading(
    (caller, _, response, headers) => send(response, toBytes(countNamespaces(gateway, caller.view())), headers),
    true,
  );

  function documenting(isMcpo: boolean): AgentHandler {
    return reading((caller, request, response, headers, { namespace, toolset }) => {
      const place = namespace === null ? '' : `${isMcpo ? '' : '/ns'}/${encodeURIComponent(namespace)}`;
      const { bytes, etag } = documentsOf(caller.view()).openApi({
        title: namespace === null ? 'Toolgate' : `Toolgate: ${namespace}`,
        description: caller.introduction(),
        server: `${base()}${place}` || '/',
        prefix: isMcpo ? '' : '/tools',
        needsToken: needsToken(),
        toolset: toolset?.name ?? null,
      });
      const all = [
        ...headers,
        'etag',
        etag,
        'cache-control',
        'no-cache',
        'vary',
        'authorization, x-namespace, x-toolset',
      ];
      if (isSame(request.headers['if-none-match'], etag)) response.writeHead(304, all).end();
      else send(response, bytes, all);
    });
  }

  function posting(isMcpo: boolean): AgentHandler {
    return (request, response, headers, identity, scope) => {
      requireJsonReader(request.headers);
      // Without a body there is nothing to be of a type.
      if (request.headers['content-type'] !== undefined) requireJson(request.headers);
      requireNamespace(gateway, scope);
      readBody(new Post(request, response, headers, identity, scope, isMcpo));
    };
  }

  const post = posting(false);
  return {
    list,
    tool: (request, response, headers, identity, scope) =>
      (request.method === 'POST' ? post : definition)(request, response, headers, identity, scope),
    schema,
    namespaces,
    openApi: documenting(false),
    mcpoCall: posting(true),
    mcpoOpenApi: documenting(true),
    get awaited() {
      let sum = 0;
      for (const { running } of sessionless.all) sum += running.filter(({ response }) => !response.destroyed).length;
      return sum;
    },
    endRevoked() {
      for (const { running } of sessionless.all) for (const call of [...running]) call.turnOut();
    },
    close() {
      for (const client of sessionless.all) client.close();
    },
  };
}

const MOST_NAMED = 1_000;
const LONGEST_NAMED = 200;

const TOOLS = Buffer.from('{"tools":');

function send(response: ServerResponse, body: Buffer, headers: readonly string[]): void {
  sendReply(response, 200, { head: '', body, tail: '' }, headers);
}

/** `place` is where in the path its name stands, counted from the end. */
function definitionAt(caller: Caller, url: string, place: number): Buffer {
  const parts = pathOf(url).split('/');
  const view = caller.view();
  const entry = findTool(view, decodePart(parts.at(place)!, 'tool'));
  return documentsOf(view).definition(nameIn(view.catalog, entry));
}

/** Toolsets with something in them that the caller sees. */
function visibleToolsets({ entries }: View, toolsets: readonly Parameters<typeof includesTool>[0][]) {
  return toolsets
    .map((toolset) => ({
      name: toolset.name,
      description: toolset.description,
      tools: [...entries.tool].filter(([, entry]) => includesTool(toolset, entry)).map(([name]) => name),
    }))
    .filter(({ tools }) => tools.length > 0);
}

/** The namespaces that a caller may know of, in the order of the configuration. One with nothing in it is known where all is allowed. */
function countNamespaces(gateway: Gateway, { catalog, permission }: View) {
  const counts = new Map<string, number>();
  if (permission === null) for (const { namespace } of gateway.statuses()) counts.set(namespace, 0);
  for (const kind of KINDS)
    for (const entry of catalog.claims[kind].values())
      if (entry !== null && !counts.has(entry.namespace)) counts.set(entry.namespace, 0);
  for (const { namespace } of catalog.entries.tool.values()) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  counts.delete('');
  return [...counts].map(([name, tools]) => ({ name, tool_count: tools }));
}

function isSame(asked: string | undefined, etag: string): boolean {
  if (asked === undefined) return false;
  return asked.trim() === '*' || asked.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}
