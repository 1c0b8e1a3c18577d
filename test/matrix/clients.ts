/** The clients of the matrix with one interface: SDK v1 for the legacy era, SDK v2 for the modern one, at every door. */
import type { ClientCapabilities as ModernCapabilities, Client as ModernClient } from '@modelcontextprotocol/client';
import type { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import {
  type ClientCapabilities,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  type ElicitResult,
  ListRootsRequestSchema,
  ResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { connectSse, type HttpConnection, type Told } from '../support/connection.ts';
import { type HttpGateway, startModernStdio, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { withoutServer } from '../support/questions.ts';
import { NAMESPACE } from './servers.ts';
import type { Side } from './sides.ts';

/** The common part of the clients of both SDKs. */
interface Verbs {
  getInstructions(): string | undefined;
  listTools(): Promise<{ tools: { name: string }[] }>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: object[] }>;
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<object>;
  complete(params: Completion): Promise<{ completion: object }>;
}

interface Completion {
  ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string };
  argument: { name: string; value: string };
}

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

export interface CallOptions {
  readonly namespace?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

export interface Asked {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface MatrixClient extends Pick<Told, 'messages' | 'notifications'> {
  readonly side: Side;
  readonly client: Verbs;
  /** The URL and headers of its requests, for checks that send requests themselves. Only with a session over HTTP. */
  readonly http?: { readonly url: string; readonly headers: Record<string, string> };
  /** The questions that it received, in order. */
  readonly asked: readonly Asked[];
  /** A request whose result the SDK does not check. */
  request(method: string, params?: object): Promise<Record<string, unknown>>;
  /** Calls a tool by the name that its server uses. */
  call(tool: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  /** The same, with log messages from this level on. */
  callAt(level: string, tool: string): Promise<ToolResult>;
  /** Listens for changes of the resource until the returned function is called. */
  listen(uri: string): Promise<() => Promise<unknown>>;
  /** Another client at the same kind of door, with fewer capabilities. */
  another(capabilities: ClientCapabilities): Promise<MatrixClient>;
}

/** All kinds of questions, and MCP tasks. */
const ABLE = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
  extensions: { 'io.modelcontextprotocol/tasks': {} },
};

export const ROOTS = [{ uri: 'file:///srv/one', name: 'one' }];

/** `http` is a gateway with the same configuration, for clients over HTTP. */
export async function openMatrixClient(
  side: Side,
  http: HttpGateway,
  config: string,
  capabilities: ClientCapabilities = ABLE,
): Promise<MatrixClient> {
  const asked: Asked[] = [];
  const answer = answering(capabilities, asked);
  const another = (less: ClientCapabilities) => openMatrixClient(side, http, config, less);
  const { opened, own } =
    side.era === 'legacy'
      ? await openLegacy(side, http, config, capabilities).then((one) => ({
          opened: one,
          own: ofLegacy(one.client, answer),
        }))
      : await openModern(side, http, config, capabilities).then((one) => ({
          opened: one,
          own: ofModern(one.client, answer),
        }));
  const { client, messages, notifications } = opened;
  return {
    side,
    client: client as unknown as Verbs,
    messages,
    notifications,
    asked,
    another,
    ...own,
    ...('transport' in opened && { http: placeOf(http, opened.transport as Session) }),
  };
}

function openLegacy({ transport }: Side, http: HttpGateway, config: string, capabilities: ClientCapabilities) {
  if (transport === 'stdio') return startStdio({ config, capabilities });
  if (transport === 'sse') return connectSse(`${http.origin}/sse`, capabilities);
  return http.connect({ capabilities });
}

function openModern({ transport }: Side, http: HttpGateway, config: string, can: ClientCapabilities) {
  const capabilities = can as ModernCapabilities;
  if (transport === 'stdio') return startModernStdio({ config, capabilities });
  return connectModernHttp(http.url, {}, capabilities);
}

function placeOf({ url }: HttpGateway, { sessionId = '', protocolVersion = '' }: Session) {
  return { url, headers: { 'mcp-session-id': sessionId, 'mcp-protocol-version': protocolVersion } };
}

type Session = Pick<HttpConnection['transport'], 'sessionId' | 'protocolVersion'>;
type Answers = ReadonlyMap<string, (params?: object) => object>;

/** Answers each question, and records it. */
function answering(capabilities: ClientCapabilities, asked: Asked[]): Answers {
  const all: [keyof ClientCapabilities, string, (params: { message?: string; mode?: string }) => object][] = [
    [
      'elicitation',
      'elicitation/create',
      ({ message, mode }) => ({ action: 'accept', ...(mode !== 'url' && { content: { word: `re ${message}` } }) }),
    ],
    [
      'sampling',
      'sampling/createMessage',
      () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'a word' } }),
    ],
    ['roots', 'roots/list', () => ({ roots: ROOTS })],
  ];
  const able = all.filter(([capability]) => capability in capabilities);
  return new Map(
    able.map(([, method, answer]) => [
      method,
      (params = {}) => {
        const { message } = params as { message?: string };
        const told = { ...params, ...(message !== undefined && { message: withoutServer(message) }) };
        asked.push({ method, params: told as Asked['params'] });
        return answer(told);
      },
    ]),
  );
}

type Own = Pick<MatrixClient, 'request' | 'call' | 'callAt' | 'listen'>;

function ofLegacy(client: LegacyClient, answers: Answers): Own {
  const [elicit, sample, listRoots] = ['elicitation/create', 'sampling/createMessage', 'roots/list'].map((method) =>
    answers.get(method),
  );
  if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params) as ElicitResult);
  if (sample)
    client.setRequestHandler(
      CreateMessageRequestSchema,
      ({ params }) => sample(params) as { model: string; role: 'assistant'; content: { type: 'text'; text: string } },
    );
  if (listRoots) client.setRequestHandler(ListRootsRequestSchema, ({ params }) => listRoots(params) as { roots: [] });
  const call: MatrixClient['call'] = async (tool, args = {}, { namespace = NAMESPACE, meta, signal } = {}) =>
    (await client.callTool(
      { name: `${namespace}_${tool}`, arguments: { ...args }, ...(meta && { _meta: meta }) },
      undefined,
      signal && { signal },
    )) as unknown as ToolResult;
  return {
    request: (method, params = {}) => client.request({ method, params: { ...params } }, ResultSchema),
    call,
    async callAt(level, tool) {
      await client.setLoggingLevel(level as 'info');
      return call(tool);
    },
    async listen(uri) {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
  };
}

/** A schema that accepts everything. */
const RAW = {
  '~standard': { version: 1, vendor: 'toolgate-test', validate: (value: unknown) => ({ value }) },
} as const;

function ofModern(client: ModernClient, answers: Answers): Own {
  for (const [method, answer] of answers)
    client.setRequestHandler(method as 'roots/list', ({ params }) => answer(params) as { roots: [] });
  const call: MatrixClient['call'] = async (tool, args = {}, { namespace = NAMESPACE, meta, signal } = {}) =>
    (await client.callTool(
      { name: `${namespace}_${tool}`, arguments: { ...args }, ...(meta && { _meta: meta }) },
      signal && { signal },
    )) as unknown as ToolResult;
  return {
    request: async (method, params = {}) =>
      (await client.request({ method, params: { ...params } }, RAW)) as Record<string, unknown>,
    call,
    callAt: (level, tool) => call(tool, {}, { meta: { 'io.modelcontextprotocol/logLevel': level } }),
    async listen(uri) {
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      return () => subscription.close();
    },
  };
}
