/**
 * Progress reaches the caller that asked for it: complete, in order, before the answer, with the caller's own token.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, type StdioGateway, startHttp, startStdio } from '../support/gateway.ts';
import { INITIALIZED } from '../support/raw-http.ts';
import { type Era, messagesOf, metaOf, modernHeaders } from '../support/relay-clients.ts';
import { server, serversToml } from '../support/server.ts';
import { eras, findRoute, paths, type Route, titled, useRoutes } from './paths.ts';

interface Progress {
  readonly method: string;
  readonly params: { readonly progressToken: unknown; readonly progress: number; readonly total: number };
}

const steps = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
const parse = (messages: readonly Buffer[]) => messages.map((message) => JSON.parse(message.toString()) as Progress);

const routes = useRoutes();

// A plain JSON reply cannot carry progress.
describe.each(titled(paths.filter(({ carrier }) => carrier !== 'http json')))('%s', (_, path) => {
  /** Everything that arrives up to and including the answer. */
  const run = (members: string) => {
    const { exchange, target, meta }: Route = findRoute(routes, path);
    return exchange('tools/call', `{${target('tools/call')},${meta(members)}}`);
  };

  it.each([
    ['a string', '"mine"'],
    ['a string with escapes', '"\\u00e9\\/"'],
    ['zero', '0'],
    ['a number', '42'],
    ['an empty string', '""'],
  ])('delivers every notification with a token that is %s, verbatim, before the answer', async (_, token) => {
    const got = await run(`"test/progress":3,"progressToken":${token}`);
    const expected = steps(3).map((step) => {
      const params = `{"progress":${step},"progressToken":${token},"message":"1.0"}`;
      return `{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`;
    });
    expect(got.slice(0, -1).map(String)).toEqual(expected);
    expect(got.at(-1)!.toString()).toContain('"result"');
  });

  it('delivers hundreds of notifications in order', async () => {
    const got = parse(await run('"test/progress":500,"progressToken":"many"'));
    expect(got.slice(0, -1).map(({ params }) => params.progress)).toEqual(steps(500));
  });

  it('delivers no progress without a token', async () => {
    expect(await run('"test/progress":3')).toHaveLength(1);
  });
});

const config = `controls = []\n${serversToml({ slow: server('hang'), flood: server('flood') })}`;

/** The parameters of a call; the token is JSON text. */
const call = (era: Era, tool: string, args: string, token: string) =>
  `{"name":"${tool}","arguments":${args},${metaOf(era, `"progressToken":${token}`)}}`;

describe('a client on stdio', () => {
  let gateway: StdioGateway;
  beforeAll(async () => {
    gateway = await startStdio({ config });
  });

  it('gets two thousand progress notifications in order', async () => {
    const before = gateway.lines.length;
    await gateway.request('tools/call', call('legacy', 'flood_flood', '{"progress":2000}', '"many"'));
    const got = parse(gateway.lines.slice(before));
    expect(got.slice(0, -1).map(({ params }) => params.progress)).toEqual(steps(2000));
  });

  it('gets the progress of two calls with the same token, each with the right total', async () => {
    const before = gateway.lines.length;
    await Promise.all([
      gateway.request('tools/call', call('legacy', 'slow_slow', '{"ms":60,"steps":3}', '"same"')),
      gateway.request('tools/call', call('legacy', 'slow_slow', '{"ms":60,"steps":5}', '"same"')),
    ]);
    const got = parse(gateway.lines.slice(before));
    const of = (total: number) =>
      got.filter(({ params }) => params?.total === total).map(({ params }) => params.progress);
    expect([of(3), of(5)]).toEqual([steps(3), steps(5)]);
  });
});

describe('clients on HTTP', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config });
  });

  type Run = (tool: string, args: string, token: string, id: string) => Promise<Progress[]>;

  async function openSession(): Promise<Record<string, string>> {
    const started = await gateway.post('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
    const session = { 'mcp-session-id': started.headers.get('mcp-session-id') ?? '' };
    await gateway.post(INITIALIZED, session);
    return session;
  }

  async function openClient(era: Era): Promise<Run> {
    const session = era === 'legacy' ? await openSession() : null;
    return async (tool, args, token, id) => {
      const params = call(era, tool, args, token);
      const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
      return parse(await messagesOf(await gateway.post(body, session ?? modernHeaders('tools/call', params))));
    };
  }

  it('do not get each other’s progress with the same id and token', async () => {
    const runs = await Promise.all(Array.from({ length: 16 }, (_, i) => openClient(eras[i % 2]!)));
    const got = await Promise.all(
      runs.map((run, i) => run('slow_slow', `{"ms":80,"steps":${i + 2},"tag":"${i}"}`, '"t"', '"same"')),
    );
    for (const [i, all] of got.entries()) {
      const progress = all.slice(0, -1);
      expect(progress.map(({ params }) => params.progress)).toEqual(steps(i + 2));
      expect(new Set(progress.map(({ params }) => params.total))).toEqual(new Set([i + 2]));
      expect(all.at(-1)).toMatchObject({ id: 'same', result: { content: [{ text: `slow ${i}` }] } });
    }
  });
});
