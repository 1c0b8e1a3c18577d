/** Clients of both eras that can be asked, and helpers for these tests. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  type ClientCapabilities,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  type ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';
import { type HttpGateway, startStdio } from './gateway.ts';
import { mirrored } from './modern.ts';
import { messagesOf } from './relay-clients.ts';

export const ABLE: ClientCapabilities = { elicitation: {}, sampling: {}, roots: {} };

export type Door = 'stdio' | 'http';

export interface Asked {
  readonly client: Client;
  /** The questions it received, in order. */
  readonly questions: string[];
}

/** The text of a question without the name of the server that Toolgate puts in front of it. */
export function withoutServer(message: string): string {
  return message.replace(/^Server "[^"]*" asks: /, '');
}

/** Answers a question; the message is the text of the question. */
export type Answering = (message: string) => ElicitResult | Promise<ElicitResult>;

export const accept: Answering = (message) => ({ action: 'accept', content: { word: `re ${message}` } });

/** Lets a connected client (v1) answer: forms by `answering`, completions with "word". */
export function answerWith(client: Client, answering: Answering): Asked {
  const questions: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    const message = withoutServer(params.message);
    questions.push(message);
    return answering(message);
  });
  client.setRequestHandler(CreateMessageRequestSchema, async () => {
    questions.push('sampling');
    return { model: 'm', role: 'assistant', content: { type: 'text', text: 'word' } };
  });
  return { client, questions };
}

export async function openLegacy(gateway: HttpGateway, answering: Answering = accept): Promise<Asked> {
  return answerWith((await gateway.connect({ capabilities: ABLE })).client, answering);
}

export async function openLegacyPipe(config: string, answering: Answering = accept): Promise<Asked> {
  return answerWith((await startStdio({ config, capabilities: ABLE })).client, answering);
}

export interface ModernResult {
  readonly resultType?: string;
  readonly inputRequests?: Readonly<Record<string, { method: string; params: { message?: string } }>>;
  readonly requestState?: string;
  readonly content?: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

export interface ModernReply {
  readonly result?: ModernResult;
  readonly error?: { readonly code: number; readonly message: string };
}

let count = 0;

/** Where requests go, with headers that they need. */
interface Addressed {
  readonly url: string;
  readonly headers?: Record<string, string>;
}

/** A request of a modern client over HTTP that declares these capabilities. */
export async function request(
  gateway: Addressed,
  method: string,
  params: object,
  capabilities: object = ABLE,
  signal?: AbortSignal,
): Promise<ModernReply> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'asked', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const text = JSON.stringify({ ...params, _meta: envelope });
  const response = await fetch(gateway.url, {
    method: 'POST',
    body: `{"jsonrpc":"2.0","id":${++count},"method":"${method}","params":${text}}`,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...mirrored(method, text),
      ...gateway.headers,
    },
    ...(signal && { signal }),
  });
  return JSON.parse((await messagesOf(response)).at(-1)!.toString()) as ModernReply;
}

/** A call of a modern client. */
export function callModern(gateway: Addressed, name: string, args: object = {}, more: object = {}) {
  return request(gateway, 'tools/call', { name, arguments: args, ...more });
}

/** The parameters that continue a request: the answers under the keys of the questions, and the state. */
export function answersTo({ result }: ModernReply, answer: object = { action: 'accept', content: { word: 'yes' } }) {
  const keys = Object.keys(result!.inputRequests!);
  return {
    inputResponses: Object.fromEntries(keys.map((key) => [key, answer])),
    requestState: result!.requestState!,
  };
}

/** The questions in a reply. */
export function askedIn({ result }: ModernReply): (string | undefined)[] {
  return Object.values(result?.inputRequests ?? {}).map(({ params }) =>
    params.message === undefined ? undefined : withoutServer(params.message),
  );
}

/** The text of a good result, as JSON. */
export function jsonOf(result: object | undefined): unknown {
  const { content, isError } = result as ModernResult;
  if (isError === true) throw new Error(`the call failed: ${content?.[0]?.text}`);
  return JSON.parse(content![0]!.text);
}
