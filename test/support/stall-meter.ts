/**
 * Generated hostile requests to a gateway in this process, with a meter of how long it computes for each. That is how
 * long its event loop stands still, and other programs on the machine do not add to it.
 */
import { startHttp } from './gateway.ts';
import { createRandom } from './random.ts';
import { toml } from './running-gateway.ts';
import { server } from './server.ts';

/** Texts that are not JSON, or only just are: the places where parsers differ. */
const ODD = [
  ...['', ' ', '[', '{', '"', '{"a"}', '[1,]', '{"a":1,}', '[01]', '[1.]', '[.5]', '[1e]', '[+1]', '[-]', '[NaN]'],
  ...['{"a":1,"a":2}', '["\\x"]', '["\\u12"]', '["\\ud800"]', '["\u0000"]', '[1]]', 'nul', 'True', "{'a':1}", '/**/1'],
  ...['[1e400]', '[-0]', '{"__proto__":{"x":1}}', '\ufeff{}', '[1 2]', '{"a":1 "b":2}', '{1:2}', '[,]', '{,}'],
  '['.repeat(5_000),
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
  `"${'\\u0061'.repeat(50_000)}"`,
  `"${'x\u0001'.repeat(50_000)}"`,
  '1'.repeat(100_000),
  `[${'1,'.repeat(50_000)}1]`,
  `{${Array.from({ length: 20_000 }, () => '"a":1').join(',')}}`,
];
const METHODS = ['tools/call', 'tools/list', 'resources/read', 'prompts/get', 'completion/complete', 'ping', 'x/y'];

export interface HostileRun {
  /** Requests that took more than 100 ms of computing, every time that they were sent, or were answered with 5xx. */
  readonly stalls: readonly string[];
  /** Megabytes of memory. */
  readonly grown: number;
  readonly isAlive: boolean;
}

export async function sendHostile(count: number): Promise<HostileRun> {
  const gateway = await startHttp({ config: toml([{ namespace: 's', command: server('basic') }]) });
  const { pick } = createRandom();
  const { origin } = new URL(gateway.url);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const bodies: (() => [string, string])[] = [
    () => ['/mcp', pick(ODD)],
    () => ['/tools/s_echo', pick(ODD)],
    () => ['/mcp', `{"jsonrpc":"2.0","id":1,"method":"${pick(METHODS)}","params":${pick(ODD)}}`],
    () => [
      '/mcp',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s_echo","arguments":${pick(ODD)}}}`,
    ],
    () => {
      const params = `{"name":"s_echo","name":"other","uri":"a:b","uri":"a:c","ref":{},"ref":{},"arguments":{}}`;
      return ['/mcp', `{"jsonrpc":"2.0","id":1,"method":"${pick(METHODS)}","params":${params}}`];
    },
  ];
  const memory = process.memoryUsage().rss;
  const stalls: string[] = [];
  const send = async (path: string, body: string) => {
    const before = process.cpuUsage();
    const response = await fetch(origin + path, { method: 'POST', headers, body });
    await response.arrayBuffer();
    const { user, system } = process.cpuUsage(before);
    return { status: response.status, ms: (user + system) / 1000 };
  };
  for (let i = 0; i < count; i++) {
    const [path, body] = pick(bodies)();
    const { status, ms } = await send(path, body);
    if (status >= 500 && status !== 503) stalls.push(`${status} for ${path} ${body.slice(0, 60)}`);
    // Something else may have run in between, such as a collection of garbage.
    let least = ms;
    for (let again = 0; again < 3 && least > 100; again++) least = Math.min(least, (await send(path, body)).ms);
    if (least > 100) stalls.push(`${Math.round(least)} ms for ${path} ${body.slice(0, 60)}`);
  }
  const grown = (process.memoryUsage().rss - memory) / 1024 ** 2;
  const isAlive = (await fetch(`${origin}/health`)).status === 200;
  return { stalls, grown, isAlive };
}
