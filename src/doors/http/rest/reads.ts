/** Reading about tools over REST: lists, definitions, schemas, namespaces, OpenAPI documents. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { findTool } from '../../../access/find.ts';
import { includesTool, type Toolset } from '../../../access/toolset.ts';
import type { View } from '../../../access/view.ts';
import { type Caller, reportDenied, type Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import { awayError, awayText } from '../../../catalog/away.ts';
import { type Catalog, nameIn } from '../../../catalog/catalog.ts';
import { hasNamespace } from '../../../catalog/narrow.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { ServerStatus } from '../../../sources/fleet.ts';
import { problemText } from '../../../sources/last-good.ts';
import { decodePart, pathOf } from '../path.ts';
import type { AgentHandler } from '../router.ts';
import { requireNamespace } from '../scope.ts';
import { requireJsonReader } from '../wire/content-types.ts';
import { sendJson, sendReply } from '../wire/reply.ts';
import { documentsOf, inputSchemaOf } from './documents.ts';

export interface ReadHandlers {
  /** `GET /tools` */
  readonly list: AgentHandler;
  /** `GET /tools/{name}` */
  readonly definition: AgentHandler;
  /** `GET /tools/{name}/schema` */
  readonly schema: AgentHandler;
  readonly namespaces: AgentHandler;
  readonly openApi: AgentHandler;
  /** The same for the addresses of mcpo. */
  readonly mcpoOpenApi: AgentHandler;
}

export interface RestReadOptions {
  callerOf(identity: Identity, scope: Scope): Caller;
  /** The server address in OpenAPI documents; empty for the address that a document is read from. */
  base(): string;
  /** Whether calls need a token. */
  needsToken(): boolean;
}

type Respond = (
  caller: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
  scope: Scope,
) => void | Promise<void>;

export function createReadHandlers(gateway: Gateway, { callerOf, base, needsToken }: RestReadOptions): ReadHandlers {
  /** Answers once all servers have been tried. */
  function reading(respond: Respond): AgentHandler {
    return async (request, response, headers, identity, scope) => {
      requireJsonReader(request.headers);
      requireNamespace(gateway, scope);
      const caller = callerOf(identity, scope);
      await gateway.opening;
      // Some servers do not announce changes, so they are listed again from time to time when a client reads.
      caller.list('tool', 'modern');
      await respond(caller, request, response, headers, scope);
    };
  }

  function documenting(isMcpo: boolean): AgentHandler {
    return reading((caller, request, response, headers, { namespace, toolset }) => {
      requireUp(caller.view(), namespace);
      const path = namespace === null ? '' : `${isMcpo ? '' : '/ns'}/${encodeURIComponent(namespace)}`;
      const servers = namespace === null ? [] : gateway.statuses().filter((server) => server.namespace === namespace);
      const { description, ...about } = aboutOf(servers);
      const { bytes, etag } = documentsOf(caller.view()).openApi({
        title: namespace === null ? 'Toolgate' : `Toolgate: ${namespace}`,
        description: [description, caller.serverInstructions].filter(Boolean).join('\n\n'),
        ...about,
        server: `${base()}${path}` || '/',
        prefix: isMcpo ? '' : '/tools',
        needsToken: needsToken(),
        toolset: toolset?.name ?? null,
      });
      const cached = ['etag', etag, 'cache-control', 'no-cache', 'vary', 'authorization, x-namespace, x-toolset'];
      if (isSame(request.headers['if-none-match'], etag)) response.writeHead(304, [...headers, ...cached]).end();
      else send(response, bytes, [...headers, ...cached]);
    });
  }

  return {
    list: reading(async (caller, _, response, headers, { namespace }) => {
      const tools = documentsOf(caller.view()).list;
      requireUp(caller.view(), namespace);
      if (namespace !== null) return send(response, tools, headers);
      // Implicit toolsets are left out: they would only repeat the names of all tools.
      const toolsets = (await gateway.toolsets.list()).toolsets.filter(({ place }) => place !== 'implicit');
      const missing = missingServers(caller.view());
      const tail = `,"toolsets":${JSON.stringify(visibleToolsets(caller.view(), toolsets))}${missing}}`;
      return send(response, Buffer.concat([TOOLS, tools, Buffer.from(tail)]), headers);
    }),
    definition: reading((caller, request, response, headers) =>
      send(response, definitionAt(gateway, caller, request, -1), headers),
    ),
    schema: reading((caller, request, response, headers) =>
      send(response, inputSchemaOf(definitionAt(gateway, caller, request, -2)), headers),
    ),
    // The answer is the same for every namespace, so the request need not name one.
    async namespaces(request, response, headers, identity, scope) {
      requireJsonReader(request.headers);
      const caller = callerOf(identity, { ...scope, toolset: null, namespace: null });
      await gateway.opening;
      sendJson(response, 200, countNamespaces(gateway, caller.view()), headers);
    },
    openApi: documenting(false),
    mcpoOpenApi: documenting(true),
  };
}

const TOOLS = Buffer.from('{"tools":');

function send(response: ServerResponse, body: Buffer, headers: readonly string[]): void {
  sendReply(response, 200, { head: '', body, tail: '' }, headers);
}

/** Throws if a namespace has no tools because its servers are not up: an empty list would say that it is empty. */
function requireUp({ entries, catalog }: View, namespace: string | null): void {
  const { away } = catalog;
  if (namespace === null || entries.tool.size > 0 || away.length === 0) return;
  throw awayError(away, `The tools of the namespace "${namespace}" are not known now: ${awayText(away)}.`);
}

/** The servers whose tools are missing in the list, as a further member of it; empty if there are none. */
function missingServers({ catalog }: View): string {
  const missing = catalog.away.filter(({ isListed }) => !isListed);
  const servers = missing.map(({ key, state, reason }) => ({ server: key, state, reason }));
  return servers.length === 0 ? '' : `,"unavailable":${JSON.stringify(servers)}`;
}

/** `part` says which part of the path is the tool's name, counted from the end. */
function definitionAt(
  { events }: Gateway,
  caller: Caller,
  { method = '', url = '' }: IncomingMessage,
  part: number,
): Buffer {
  const view = caller.view();
  const path = pathOf(url);
  const name = decodePart(path.split('/').at(part)!, 'tool');
  try {
    return documentsOf(view).definition(nameIn(view.catalog, findTool(view, name)));
  } catch (error) {
    reportDenied(events, caller, 'tools/list', name, error, `${method} ${path}`);
    throw error;
  }
}

/** Toolsets with at least one tool that the caller sees. */
function visibleToolsets({ entries }: View, toolsets: readonly Toolset[]) {
  return toolsets
    .map((toolset) => ({
      name: toolset.name,
      description: toolset.description,
      tools: [...entries.tool].filter(([, entry]) => includesTool(toolset, entry)).map(([name]) => name),
    }))
    .filter(({ tools }) => tools.length > 0);
}

/**
 * The namespaces that a caller may know about, in the order of the configuration. Empty ones are listed only for
 * callers without a policy.
 */
export function countNamespaces(gateway: Gateway, { catalog, permission }: Pick<View, 'catalog' | 'permission'>) {
  const names = [...gateway.namespaces()].filter((name) => permission === null || hasNamespace(catalog, name));
  const tools = [...catalog.entries.tool.values()];
  const statuses = gateway.statuses().filter(({ key }) => permission === null || isVisible(catalog, key));
  return names.map((name) => {
    const servers = statuses.filter(({ namespace }) => namespace === name);
    const count = tools.filter(({ namespace }) => namespace === name).length;
    const problems = permission === null ? servers.flatMap((server) => server.problems.map(problemText)) : [];
    return {
      name,
      ...aboutOf(servers),
      tool_count: count,
      ...stateOf(catalog, servers),
      ...(problems.length > 0 && { problems }),
    };
  });
}

/** What a namespace says about itself. Absent members are not known. */
function aboutOf(servers: readonly ServerStatus[]): Partial<Record<'description' | 'version' | 'author', string>> {
  const first = (part: 'description' | 'version' | 'author') => servers.find((server) => server[part])?.[part];
  const [description, version, author] = [first('description'), first('version'), first('author')];
  return { ...(description && { description }), ...(version && { version }), ...(author && { author }) };
}

/** Whether a caller with this catalog may know about the server. */
function isVisible({ sources, away }: Catalog, key: string): boolean {
  return sources.has(key) || away.some((source) => source.key === key);
}

/** The state of a namespace: that of its first server that is not up. */
function stateOf({ away }: Catalog, servers: readonly ServerStatus[]) {
  const absence = servers.flatMap(({ key }) => away.find((source) => source.key === key) ?? [])[0];
  const server = servers.find(({ key }) => key === absence?.key) ?? servers[0];
  if (server === undefined) return { state: 'empty' };
  const state = absence?.state ?? server.state;
  return absence === undefined ? { state } : { state, reason: server.detail };
}

function isSame(asked: string | undefined, etag: string): boolean {
  if (asked === undefined) return false;
  return asked.trim() === '*' || asked.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}
