/** Cached results for equal calls, only of tools that are declared cacheable. */
import { describe, expect, it } from 'vitest';
import { connectHttp } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { figuresOf, open, openPipes, outcomesOf } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { server, serverEntry } from '../support/server.ts';
import { basic, begin, doorOf, hanging, refusalOf, textOf } from './limits.ts';

const cached = (more: object = {}) => basic({ tools: { '*': { cache: '10m', ...more } } });

describe('a cacheable tool', () => {
  it('answers equal calls of all callers with the same bytes, and calls the server for others', async () => {
    const { gateway, url, origin } = await open({ s: cached() });
    const door = doorOf(gateway);
    expect(await textOf(begin(door, 's_count', { a: 1, b: [2] }))).toBe('1');
    expect(await textOf(begin(door, 's_count', { b: [2], a: 1 }))).toBe('1');
    expect(await textOf(begin(door, 's_count', { a: 1, b: [3] }))).toBe('2');
    expect(await textOf(begin(door, 's_count'))).toBe('3');
    const [legacy, modern] = [await connectHttp(url), await connectModernHttp(url)];
    const again = await legacy.client.callTool({ name: 's_count', arguments: {} });
    expect(again.content).toEqual([{ type: 'text', text: '3' }]);
    const once = await modern.client.callTool({ name: 's_count', arguments: {} });
    expect(once.content).toEqual([{ type: 'text', text: '3' }]);
    const raw = '{"content":[],"n":9007199254740993,"f":1.0}';
    const first = await door.callTool('s_raw', { json: raw });
    const second = await door.callTool('s_raw', { json: raw });
    expect([first.toString(), second.toString()]).toEqual([raw, raw]);
    expect(outcomesOf(gateway, 's', 'count')).toEqual({ ok: 3, cached: 3 });
    expect(figuresOf(gateway, 's', 'count').cacheMisses).toBe(3);
    expect(gateway.metrics.inFlight).toBe(0);
    const metrics = await (await fetch(`${origin}/metrics`)).text();
    expect(metrics).toContain('toolgate_calls_total{server="s",kind="tool",tool="count",outcome="cached"} 3');
    expect(metrics).toContain('toolgate_cache_misses_total{server="s",kind="tool",tool="count"} 3');
  });

  it('does not cache errors, and caches nothing longer than configured', async () => {
    const { gateway } = await open({ s: cached({ cache: '1s' }) });
    const door = doorOf(gateway);
    const failed = JSON.stringify({ content: [], isError: true });
    for (let i = 0; i < 2; i++) await door.callTool('s_raw', { json: failed });
    await expect(door.callTool('s_raw', {})).rejects.toThrow();
    await expect(door.callTool('s_raw', {})).rejects.toThrow();
    expect(outcomesOf(gateway, 's', 'raw')).toEqual({ tool_error: 2, error: 2 });
    const first = await textOf(begin(door, 's_count'));
    expect(await textOf(begin(door, 's_count'))).toBe(first);
    await waitFor(async () => (await textOf(begin(door, 's_count'))) !== first);
  });

  it('is still limited by rate, and by the result size of each agent', async () => {
    const { gateway } = await open(
      { s: cached({ rate: '3/h' }) },
      { agent_policies: { small: { limits: { max_result: 100 } } } },
    );
    const door = doorOf(gateway);
    const args = { json: JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(500) }] }) };
    expect((await door.callTool('s_raw', args)).toString()).toBe(args.json);
    const small = await doorOf(gateway, 'small').callTool('s_raw', args);
    expect(small.toString()).toContain('Toolgate cut this result');
    expect((await door.callTool('s_raw', args)).toString()).toBe(args.json);
    expect((await refusalOf(begin(door, 's_raw', args))).code).toBe('rate_limited');
    expect(outcomesOf(gateway, 's', 'raw')).toEqual({ ok: 1, cached: 2 });
  });

  it('answers from the cache while its server is busy', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 0, tools: { ok: { cache: '1m' } } }) });
    const door = doorOf(gateway);
    const first = await textOf(begin(door, 's_ok'));
    const hang = begin(door, 's_hang');
    expect(await textOf(begin(door, 's_ok'))).toBe(first);
    expect((await refusalOf(begin(door, 's_ok', { other: 1 }))).code).toBe('source_busy');
    hang.cancel();
  });

  it('passes the cached result through middleware', async () => {
    const { gateway } = await open({ s: cached() });
    const seen: unknown[] = [];
    gateway.use(async (_, next) => {
      const result = await next();
      seen.push(result);
      return result;
    });
    const door = doorOf(gateway);
    for (let i = 0; i < 3; i++) expect(await textOf(begin(door, 's_count'))).toBe('1');
    expect(seen).toHaveLength(3);
  });

  it('does not cache a call in which a modern server asks a question', async () => {
    const { gateway } = await open({ s: { ...serverEntry('asking-modern'), tools: { '*': { cache: '1m' } } } });
    const pipes = await openPipes(gateway, 'modern');
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    };
    for (const id of ['a', 'b']) {
      pipes.send({ id, method: 'tools/call', params: { _meta: meta, name: 's_forever', arguments: {} } });
      const line = await waitFor(() => pipes.lines.find((one) => one.id === id));
      expect(line.result).toMatchObject({ resultType: 'input_required' });
    }
    expect(outcomesOf(gateway, 's', 'forever')).toEqual({ ok: 2 });
  });
});

describe('the result cache keeps nothing', () => {
  it('of a server with share = "session"', async () => {
    const { gateway } = await open({ s: { ...cached(), share: 'session' } });
    const door = doorOf(gateway);
    expect([await textOf(begin(door, 's_count')), await textOf(begin(door, 's_count'))]).toEqual(['1', '2']);
  });

  it('of a tool whose server is replaced', async () => {
    const config = (name: string) => `
active_toolsets = ["*"]
[[servers]]
namespace = "s"
command = ${JSON.stringify(server('basic', '--name', name))}
tools = { "*" = { cache = "10m" } }
`;
    const gateway = await startHttp({ config: config('one') });
    const { client } = await gateway.connect();
    const call = async (name: string) => {
      const { content } = await client.callTool({ name, arguments: {} });
      return (content as { text: string }[])[0]!.text;
    };
    const first = JSON.parse(await call('s_whoami')) as { pid: number; calls: number };
    expect(JSON.parse(await call('s_whoami'))).toEqual(first);
    replaceFile(gateway.cwd, config('two'));
    await waitFor(async () => JSON.parse(await call('s_whoami')).name === 'two');
  });
});
