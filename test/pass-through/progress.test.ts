/** Progress reaches the caller that asked for it, whole, in order, before the answer, under the caller's own token. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, type StdioGateway, startHttp, startStdio } from '../support/gateway.ts';
import { server, serversToml, startHttpServer } from '../support/server.ts';

interface Progress {
  readonly method: string;
  readonly params: { readonly progressToken: unknown; readonly progress: number; readonly total: number };
}

const config = `controls = []\n${serversToml({ slow: server('hang'), flood: server('flood') })}`;
const steps = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

/** `"token"` or `7`, as JSON text. */
const call = (tool: string, args: string, token?: string) =>
  `{"name":"${tool}","arguments":${args}${token === undefined ? '' : `,"_meta":{"progressToken":${token}}`}}`;

/** The messages of a reply, whichever way it came. */
async function messages(response: Response): Promise<unknown[]> {
  const text = await response.text();
  if (response.headers.get('content-type') === 'application/json') return [JSON.parse(text)];
  return [...text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1]!));
}

async function session(gateway: HttpGateway): Promise<(params: string, id?: string) => Promise<unknown[]>> {
  const started = await gateway.post('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
  const headers = { 'mcp-session-id': started.headers.get('mcp-session-id') ?? '' };
  return async (params, id = '1') =>
    messages(await gateway.post(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`, headers));
}

describe('a client on stdio', () => {
  let gateway: StdioGateway;
  beforeAll(async () => {
    gateway = await startStdio({ config });
  });

  /** Everything that arrives up to and with the answer. */
  async function run(params: string): Promise<unknown[]> {
    const before = gateway.lines.length;
    await gateway.request('tools/call', params);
    return gateway.lines.slice(before).map((line) => JSON.parse(line.toString()) as unknown);
  }

  it.each([
    ['a string', '"mine"', 'mine'],
    ['a string with an escape', '"\\u00e9\\/"', 'é/'],
    ['zero', '0', 0],
    ['a number', '42', 42],
    ['an empty string', '""', ''],
  ])('gets every notification under a token that is %s, the last one before the answer', async (_, token, value) => {
    const got = (await run(call('slow_slow', '{"ms":30,"steps":3,"tag":"x"}', token))) as Progress[];
    expect(got.slice(0, -1).map(({ params }) => params.progress)).toEqual([1, 2, 3]);
    expect(got.slice(0, -1).map(({ params }) => params.progressToken)).toEqual([value, value, value]);
    expect(got.at(-1)).toMatchObject({ result: { content: [{ text: 'slow x' }] } });
  });

  it('gets the token as it was written', async () => {
    const before = gateway.lines.length;
    await gateway.request('tools/call', call('slow_slow', '{"ms":5,"steps":1}', '"\\u0041\\/"'));
    expect(gateway.lines[before]!.toString()).toContain('"progressToken":"\\u0041\\/"');
  });

  it('gets all of two thousand notifications in order', async () => {
    const got = (await run(call('flood_flood', '{"progress":2000}', '"many"'))) as Progress[];
    expect(got.slice(0, -1).map(({ params }) => params.progress)).toEqual(steps(2000));
  });

  it('gets nothing that it did not ask for', async () => {
    const got = await run(call('slow_slow', '{"ms":20,"steps":3}'));
    expect(got).toHaveLength(1);
  });

  it('gets the progress of two calls under one token with the right totals', async () => {
    const before = gateway.lines.length;
    await Promise.all([
      gateway.request('tools/call', call('slow_slow', '{"ms":60,"steps":3}', '"same"')),
      gateway.request('tools/call', call('slow_slow', '{"ms":60,"steps":5}', '"same"')),
    ]);
    const got = gateway.lines.slice(before).map((line) => JSON.parse(line.toString()) as Progress);
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

  it('get every notification on the stream of the call, the answer last', async () => {
    const run = await session(gateway);
    const got = (await run(call('slow_slow', '{"ms":30,"steps":3}', '7'))) as Progress[];
    expect(got.slice(0, -1).map(({ params }) => [params.progressToken, params.progress])).toEqual([
      [7, 1],
      [7, 2],
      [7, 3],
    ]);
    expect(got.at(-1)).toMatchObject({ id: 1, result: {} });
  });

  it('get plain JSON where there was no token', async () => {
    const run = await session(gateway);
    expect(await run(call('slow_slow', '{"ms":20,"steps":3}'))).toHaveLength(1);
  });

  it('with the same id and the same token do not get each other’s progress', async () => {
    const runs = await Promise.all(Array.from({ length: 12 }, () => session(gateway)));
    const got = await Promise.all(
      runs.map((run, i) => run(call('slow_slow', `{"ms":80,"steps":${i + 2},"tag":"${i}"}`, '"t"'), '"same"')),
    );
    for (const [i, all] of got.entries()) {
      const progress = all.slice(0, -1) as Progress[];
      expect(progress.map(({ params }) => params.progress)).toEqual(steps(i + 2));
      expect(new Set(progress.map(({ params }) => params.total))).toEqual(new Set([i + 2]));
      expect(all.at(-1)).toMatchObject({ id: 'same', result: { content: [{ text: `slow ${i}` }] } });
    }
  });
});

describe('an upstream on HTTP that streams', () => {
  it('has its progress relayed to stdio and to HTTP, under the token of each', async () => {
    const upstream = await startHttpServer('--sse');
    const toml = `controls = []\n[[servers]]\nnamespace = "up"\nurl = "${upstream.url}"\n`;
    const pipe = await startStdio({ config: toml });
    await pipe.request('tools/call', call('up_echo', '{}', '"s"'));
    const lines = pipe.lines.slice(-3).map((line) => JSON.parse(line.toString()) as Progress);
    expect(lines.map(({ params }) => params?.progress)).toEqual([1, 2, undefined]);
    expect(lines[0]!.params.progressToken).toBe('s');
    const run = await session(await startHttp({ config: toml }));
    const got = (await run(call('up_echo', '{}', '"h"'))) as Progress[];
    expect(got.map(({ params }) => params?.progressToken)).toEqual(['h', 'h', undefined]);
  });
});
