/**
 * A stand-in for a model: an HTTP server that speaks the four interfaces that coding agents use, notes what each request
 * shows to the model, and answers with what a script says, as quickly as a fast model would.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ShownTool {
  readonly name: string;
  readonly description: string;
}

/** What the model has been told by a tool. */
export interface ToolResult {
  readonly name: string;
  readonly text: string;
}

/** One request of the client to the model, without the differences of the interfaces. */
export interface Turn {
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** System prompt and messages, as one text. */
  readonly text: string;
  readonly tools: readonly ShownTool[];
  /** The results of all calls so far, in their order. */
  readonly results: readonly ToolResult[];
}

export type Answer = { readonly call: string; readonly args: Record<string, unknown> } | { readonly text: string };

/** Decides what the model answers. Requests without tools, such as for a title, are not given to it. */
export type Script = (turn: Turn) => Answer;

export interface ScriptedModel {
  readonly origin: string;
  /** Requests that offered tools. */
  readonly turns: readonly Turn[];
  /** Hosts that the client wanted to reach through the proxy, which is this server. It lets nothing through. */
  readonly refused: ReadonlySet<string>;
  close(): Promise<void>;
}

/** How long it takes to answer. */
const THINKING_MS = 250;

// biome-ignore lint/suspicious/noExplicitAny: four interfaces of others, read field by field
type Json = Record<string, any>;

interface Dialect {
  readonly path: RegExp;
  read(body: Json): Omit<Turn, 'at'>;
  write(answer: Answer, body: Json, path: string): { type: string; body: string };
}

export async function startModel(script: Script): Promise<ScriptedModel> {
  const turns: Turn[] = [];
  const refused = new Set<string>();
  const sockets = new Set<Socket>();
  const server = createServer(async (request, response) => {
    const url = request.url ?? '/';
    if (/^https?:\/\//.test(url)) refused.add(new URL(url).host);
    const body = await bodyOf(request);
    const dialect = request.method === 'POST' ? DIALECTS.find(({ path }) => path.test(url.split('?')[0]!)) : undefined;
    if (dialect === undefined || body === undefined)
      return send(response, 404, 'application/json', '{"error":{"message":"There is nothing here."}}');
    const turn = { at: performance.timeOrigin + performance.now(), ...dialect.read(body) };
    let answer: Answer = { text: 'A title' };
    if (turn.tools.length > 0) {
      turns.push(turn);
      answer = script(turn);
    }
    await sleep(THINKING_MS);
    const written = dialect.write(answer, body, url);
    send(response, 200, written.type, written.body);
  });
  server.on('connect', (request, socket) => {
    refused.add(request.url ?? '');
    socket.on('error', () => {});
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    turns,
    refused,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

const anthropic: Dialect = {
  path: /\/messages$/,
  read(body) {
    const names = new Map<string, string>();
    const results: ToolResult[] = [];
    for (const block of (body.messages as Json[]).flatMap(({ content }) =>
      Array.isArray(content) ? (content as Json[]) : [],
    )) {
      if (block.type === 'tool_use') names.set(block.id, block.name);
      if (block.type === 'tool_result')
        results.push({ name: names.get(block.tool_use_id) ?? '', text: textIn(block.content) });
    }
    return { text: textIn([body.system, body.messages]), tools: shown(body.tools), results };
  },
  write(answer, body) {
    const block =
      'call' in answer
        ? { type: 'tool_use', id: newId('toolu'), name: answer.call, input: answer.args }
        : { type: 'text', text: answer.text };
    const reason = 'call' in answer ? 'tool_use' : 'end_turn';
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
    const message = { id: newId('msg'), type: 'message', role: 'assistant', model: body.model, usage };
    if (body.stream !== true) return json({ ...message, content: [block], stop_reason: reason, stop_sequence: null });
    const delta =
      'call' in answer
        ? { type: 'input_json_delta', partial_json: JSON.stringify(answer.args) }
        : { type: 'text_delta', text: answer.text };
    const empty = 'call' in answer ? { ...block, input: {} } : { ...block, text: '' };
    return events([
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: 'content_block_start', index: 0, content_block: empty },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ]);
  },
};

const responses: Dialect = {
  path: /\/responses$/,
  read(body) {
    const names = new Map<string, string>();
    const results: ToolResult[] = [];
    const input = Array.isArray(body.input) ? (body.input as Json[]) : [];
    for (const item of input) {
      if (item.type === 'function_call') names.set(item.call_id, flatName(item.namespace, item.name));
      if (item.type === 'function_call_output')
        results.push({ name: names.get(item.call_id) ?? '', text: textIn(item.output) });
    }
    const groups = ((body.tools ?? []) as Json[])
      .filter(({ type }) => type === 'namespace')
      .map(({ description }) => description);
    return { text: textIn([body.instructions, body.input, groups]), tools: shown(body.tools), results };
  },
  write(answer, body) {
    const id = newId('resp');
    const item =
      'call' in answer
        ? callItem(answer, body)
        : {
            type: 'message',
            role: 'assistant',
            id: newId('msg'),
            status: 'completed',
            content: [{ type: 'output_text', text: answer.text, annotations: [] }],
          };
    const usage = {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    };
    const response = {
      id,
      object: 'response',
      created_at: 0,
      model: body.model,
      parallel_tool_calls: false,
      tool_choice: 'auto',
      tools: [],
    };
    const complete = { ...response, status: 'completed', output: [item], usage };
    if (body.stream !== true) return json(complete);
    return events([
      { type: 'response.created', sequence_number: 0, response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', sequence_number: 1, output_index: 0, item },
      { type: 'response.output_item.done', sequence_number: 2, output_index: 0, item },
      { type: 'response.completed', sequence_number: 3, response: complete },
    ]);
  },
};

/** Codex groups the tools of a server as one tool of type `namespace`; a call then names both. */
function callItem({ call, args }: { call: string; args: Record<string, unknown> }, body: Json): Json {
  const item = {
    type: 'function_call',
    id: newId('fc'),
    call_id: newId('call'),
    arguments: JSON.stringify(args),
    status: 'completed',
  };
  for (const group of (body.tools ?? []) as Json[])
    if (group.type === 'namespace')
      for (const one of group.tools as Json[])
        if (flatName(group.name, one.name) === call) return { ...item, namespace: group.name, name: one.name };
  return { ...item, name: call };
}

const chat: Dialect = {
  path: /\/chat\/completions$/,
  read(body) {
    const names = new Map<string, string>();
    const results: ToolResult[] = [];
    for (const message of body.messages as Json[]) {
      for (const call of (message.tool_calls ?? []) as Json[]) names.set(call.id, call.function.name);
      if (message.role === 'tool')
        results.push({ name: names.get(message.tool_call_id) ?? '', text: textIn(message.content) });
    }
    return { text: textIn(body.messages), tools: shown(body.tools), results };
  },
  write(answer, body) {
    const head = { id: newId('chatcmpl'), created: 0, model: body.model };
    const call =
      'call' in answer
        ? {
            id: newId('call'),
            type: 'function',
            function: { name: answer.call, arguments: JSON.stringify(answer.args) },
          }
        : undefined;
    const message = {
      role: 'assistant',
      content: 'text' in answer ? answer.text : null,
      ...(call && { tool_calls: [call] }),
    };
    const finish_reason = call ? 'tool_calls' : 'stop';
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    if (body.stream !== true)
      return json({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage });
    const delta = { ...message, ...(call && { tool_calls: [{ index: 0, ...call }] }) };
    const chunk = (choices: Json[]) => ({ ...head, object: 'chat.completion.chunk', choices });
    const parts = [
      chunk([{ index: 0, delta, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason }]),
      { ...chunk([]), usage },
    ];
    return {
      type: 'text/event-stream',
      body: `${parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join('')}data: [DONE]\n\n`,
    };
  },
};

const gemini: Dialect = {
  path: /:(?:streamGenerateContent|generateContent)$/,
  read(body) {
    const results: ToolResult[] = [];
    for (const part of (body.contents as Json[]).flatMap(({ parts }) => (parts ?? []) as Json[]))
      if (part.functionResponse)
        results.push({ name: part.functionResponse.name, text: textIn(part.functionResponse.response) });
    const tools = ((body.tools ?? []) as Json[]).flatMap((group) => (group.functionDeclarations ?? []) as Json[]);
    return { text: textIn([body.systemInstruction, body.contents]), tools: shown(tools), results };
  },
  write(answer, body, path) {
    // It also asks who speaks next, or which model to take, and wants an object of the form that it gives.
    const text =
      'text' in answer && body.generationConfig?.responseMimeType === 'application/json'
        ? '{}'
        : 'text' in answer
          ? answer.text
          : '';
    const part = 'call' in answer ? { functionCall: { name: answer.call, args: answer.args } } : { text };
    const candidate = { index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' };
    const result = {
      candidates: [candidate],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    if (!path.includes(':stream')) return json(result);
    return { type: 'text/event-stream', body: `data: ${JSON.stringify(result)}\n\n` };
  },
};

const DIALECTS = [anthropic, responses, chat, gemini];

let serial = 0;

function newId(prefix: string): string {
  serial += 1;
  return `${prefix}_${serial}`;
}

function flatName(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}${name}`;
}

function shown(tools: Json[] = []): ShownTool[] {
  return tools.flatMap((one) => {
    if (one.type === 'namespace')
      return (one.tools as Json[]).map((inner) => ({
        name: flatName(one.name, inner.name),
        description: inner.description ?? '',
      }));
    const { name, type, description = '' } = one.function ?? one;
    return [{ name: name ?? type, description }];
  });
}

/** All texts in a value, one per line. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || typeof value !== 'object') return '';
  return Object.values(value)
    .map(textIn)
    .filter((text) => text !== '')
    .join('\n');
}

function json(value: unknown) {
  return { type: 'application/json', body: JSON.stringify(value) };
}

function events(values: Json[]) {
  return {
    type: 'text/event-stream',
    body: values.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join(''),
  };
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}

async function bodyOf(request: IncomingMessage): Promise<Json | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as Json;
  } catch {
    return undefined;
  }
}
