/**
 * Generated hostile requests to a gateway in this process, with a meter of how long it computes for each. That is how
 * long its event loop stands still, and other programs on the machine do not add to it.
 */
import { startHttp } from './gateway.ts';
import { isJson, jsonCorpus } from './json-corpus.ts';
import { createRandom } from './random.ts';
import { startSession } from './raw-http.ts';
import { toml } from './running-gateway.ts';
import { server } from './server.ts';

/** Texts that cost a parser more than their length. */
const LARGE = [
  `"${'\\u0061'.repeat(50_000)}"`,
  `"${'x\u0001'.repeat(50_000)}"`,
  '1'.repeat(100_000),
  `[${'1,'.repeat(50_000)}1]`,
  `{${Array.from({ length: 20_000 }, () => '"a":1').join(',')}}`,
  `{${Array.from({ length: 9_000 }, (_, i) => `"k${i}":1`).join(',')}}`,
  `"a:${'b/'.repeat(50_000)}"`,
  `"${'é'.repeat(100_000)}"`,
].map((text) => Buffer.from(text));

/** The parameters of every method. */
const METHODS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ping: { x: 1 },
  'tools/list': { cursor: 'a' },
  'tools/call': { name: 's_echo', arguments: { a: 1 } },
  'prompts/list': { cursor: 'a' },
  'prompts/get': { name: 's_prompt', arguments: { a: 'b' } },
  'resources/list': { cursor: 'a' },
  'resources/templates/list': { cursor: 'a' },
  'resources/read': { uri: 's_note://a' },
  'resources/subscribe': { uri: 's_note://a' },
  'resources/unsubscribe': { uri: 's_note://a' },
  'completion/complete': { ref: { type: 'ref/prompt', name: 's_prompt' }, argument: { name: 'a', value: 'b' } },
  'logging/setLevel': { level: 'info' },
  'tasks/get': { taskId: 'a' },
  'tasks/result': { taskId: 'a' },
  'tasks/cancel': { taskId: 'a' },
  'tasks/update': { taskId: 'a', inputResponses: { a: 1 } },
  'tasks/list': { cursor: 'a' },
  'subscriptions/listen': { notifications: { toolsListChanged: true } },
  'server/discover': { x: 1 },
  'x/unknown': { x: 1 },
};

interface HostileRequest {
  readonly path: '/mcp' | '/tools/s_echo';
  readonly body: Buffer;
  /** What every answer to it has to say. */
  readonly refusal?: RegExp;
}

export interface HostileRun {
  readonly sent: number;
  /**
   * Requests that took more than 100 ms of computing, every time that they were sent, were answered with 5xx, or were not
   * refused though they had to be.
   */
  readonly wrong: readonly string[];
  /** Megabytes of memory. */
  readonly grown: number;
  readonly isAlive: boolean;
}

/** The whole corpus in three places, every method with each of its keys twice, and then so many chosen at random. */
export async function sendHostile(atRandom: number, part: <T>(all: readonly T[]) => readonly T[]): Promise<HostileRun> {
  const gateway = await startHttp({
    config: toml([{ namespace: 's', command: server('basic', '--prompts', 'prompt') }]),
  });
  const session = await startSession(gateway);
  const { origin } = gateway;
  const { pick } = createRandom();
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...session.headers,
  };
  const send = async ({ path, body }: HostileRequest) => {
    const before = process.cpuUsage();
    const response = await fetch(origin + path, { method: 'POST', headers, body });
    const text =
      path === '/mcp' && response.headers.get('content-type') === 'text/event-stream' ? '' : await response.text();
    await response.body?.cancel().catch(() => {});
    const { user, system } = process.cpuUsage(before);
    return { status: response.status, text, ms: (user + system) / 1000 };
  };

  const corpus = jsonCorpus();
  const all = [...corpus, ...LARGE];
  const requests: (() => HostileRequest)[] = [
    () => ({ path: '/mcp', body: pick(all) }),
    () => ({ path: '/tools/s_echo', body: pick(all) }),
    () => asParams(pick(Object.keys(METHODS)), pick(all)),
    () => asArguments(pick(all)),
    () => pick(doubled),
  ];
  const doubled = Object.entries(METHODS).flatMap(([method, params]) => [...twice(method, params)]);
  const planned: HostileRequest[] = [
    ...part(corpus).flatMap((body) => {
      // As the body of a call over REST nothing is an empty object.
      const refusal = isJson(body) ? {} : { refusal: /error|code|invalid|JSON/i };
      return [
        { path: '/mcp', body, ...refusal } as const,
        { path: '/tools/s_echo', body, ...(body.toString().trim() !== '' && refusal) } as const,
        {
          ...asArguments(body),
          ...(isJson(Buffer.concat([Buffer.from('{"a":'), body, Buffer.from('}')])) ? {} : refusal),
        },
      ];
    }),
    ...part(doubled),
    ...Array.from({ length: atRandom }, () => pick(requests)()),
  ];

  const memory = process.memoryUsage().rss;
  const wrong: string[] = [];
  for (const request of planned) {
    const shown = `${request.path} ${JSON.stringify(request.body.toString('utf8', 0, 160))}`;
    const { status, text, ms } = await send(request);
    if (status >= 500 && status !== 503) wrong.push(`${status} for ${shown}`);
    if (request.refusal !== undefined && (status < 400 || !request.refusal.test(text)))
      wrong.push(`${status} ${text.slice(0, 200)} for ${shown}`);
    // Something else may have run in between, such as a collection of garbage.
    let least = ms;
    for (let again = 0; again < 3 && least > 100; again++) least = Math.min(least, (await send(request)).ms);
    if (least > 100) wrong.push(`${Math.round(least)} ms for ${shown}`);
  }
  const grown = (process.memoryUsage().rss - memory) / 1024 ** 2;
  const isAlive = (await fetch(`${origin}/health`)).status === 200;
  return { sent: planned.length, wrong, grown, isAlive };
}

function asParams(method: string, params: Buffer): HostileRequest {
  const head = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":`);
  return { path: '/mcp', body: Buffer.concat([head, params, Buffer.from('}')]) };
}

function asArguments(value: Buffer): HostileRequest {
  return asParams('tools/call', Buffer.concat([Buffer.from('{"name":"s_echo","arguments":'), value, Buffer.from('}')]));
}

/** The request with each key twice, at every level, except inside of `arguments`: those are the server's business. */
function* twice(method: string, params: Readonly<Record<string, unknown>>): Generator<HostileRequest> {
  const refusal = /twice/;
  for (const printed of doubledKeys(params)) yield { ...asParams(method, Buffer.from(printed)), refusal };
  const members = { jsonrpc: '"2.0"', id: '1', method: JSON.stringify(method), params: JSON.stringify(params) };
  for (const key of ['id', 'method', 'params'] as const) {
    const text = Object.entries(members).map(([name, value]) => `"${name}":${value}`);
    yield { path: '/mcp', body: Buffer.from(`{${[...text, `"${key}":${members[key]}`].join(',')}}`), refusal };
  }
}

function* doubledKeys(params: Readonly<Record<string, unknown>>): Generator<string> {
  const entries = Object.entries(params);
  const print = (all: readonly (readonly [string, string])[]) =>
    `{${all.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`;
  const texts = entries.map(([key, value]) => [key, JSON.stringify(value)] as const);
  for (const [i, [key, value]] of entries.entries()) {
    yield print([...texts, texts[i]!]);
    if (key === 'arguments' || typeof value !== 'object' || value === null) continue;
    for (const inner of doubledKeys(value as Record<string, unknown>))
      yield print(texts.map((one, at) => (at === i ? [key, inner] : one)));
  }
}
