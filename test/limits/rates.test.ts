/** Rate limits, per second, minute and day. Calls beyond them are refused at once, with the time to retry. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { callTool } from '../support/dock.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { passMidnight } from '../support/midnight.ts';
import { open, openPipes } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { received, replaceFile } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';
import { basic, begin, beginMany, doorOf, refusalOf, textOf } from './limits.ts';

describe('a rate limit', () => {
  it.each([1, 3, 10])('of %d a minute lets that many calls through, and says when to retry', async (count) => {
    const { gateway } = await open({ s: basic({ rate: `${count}/m` }) });
    const door = doorOf(gateway);
    for (let i = 0; i < count; i++) expect(await textOf(begin(door, 's_count'))).toBe(String(i + 1));
    const error = await refusalOf(begin(door, 's_count'));
    const { retryAfter } = error.details as { retryAfter: number };
    expect([error.code, error.httpStatus, error.rpcCode]).toEqual(['rate_limited', 429, -32_000]);
    expect(error.message).toBe(`Server "s" has reached its "rate" of ${count}/m. Try again in ${retryAfter} s.`);
    expect(retryAfter).toBeLessThanOrEqual(60 / count);
    expect(retryAfter).toBeGreaterThan(60 / count - 3);
    expect(gateway.metrics.refused).toBe(1);
  });

  it('refills over time', async () => {
    const { gateway } = await open({ s: basic({ rate: '5/s' }) });
    const door = doorOf(gateway);
    // All begin at once, so that no time passes between the first and the last one.
    const calls = beginMany(door, 6, 's_count');
    expect((await refusalOf(calls.pop()!)).code).toBe('rate_limited');
    expect(await Promise.all(calls.map(textOf))).toEqual(['1', '2', '3', '4', '5']);
    await waitFor(async () => (await begin(door, 's_count').done) instanceof Buffer);
  });

  it('of a tool is its own, even if a pattern sets it for several tools', async () => {
    const { gateway } = await open({ s: basic({ tools: { '*': { rate: '1/m' }, echo: { rate: '2/h' } } }) });
    const door = doorOf(gateway);
    await textOf(begin(door, 's_count'));
    await textOf(begin(door, 's_whoami'));
    await textOf(begin(door, 's_echo'));
    await textOf(begin(door, 's_echo'));
    const names = ['s_count', 's_whoami', 's_echo'];
    const errors = await Promise.all(names.map((name) => refusalOf(begin(door, name))));
    expect(errors.map(({ message }) => message.split('. ')[0])).toEqual([
      'The tool "s_count" has reached its "rate" of 1/m',
      'The tool "s_whoami" has reached its "rate" of 1/m',
      'The tool "s_echo" has reached its "rate" of 2/h',
    ]);
  });

  it('does not count calls that are refused for another reason', async () => {
    const tools = { echo: { rate: '1/m' } };
    const { gateway } = await open({ s: basic({ rate: '3/m', max_arguments: 20, tools }) });
    const door = doorOf(gateway);
    expect((await refusalOf(begin(door, 's_echo', { text: 'far too long to be taken' }))).code).toBe('too_large');
    await textOf(begin(door, 's_echo'));
    for (let i = 0; i < 5; i++) expect((await refusalOf(begin(door, 's_echo'))).message).toMatch(/^The tool "s_echo"/);
    await textOf(begin(door, 's_count'));
    await textOf(begin(door, 's_count'));
    expect((await refusalOf(begin(door, 's_count'))).message).toMatch(/^Server "s"/);
  });

  it('applies to resources, prompts and completions, and is reported to clients of both eras', async () => {
    const { gateway } = await open({ s: basic({ rate: '2/h' }, '--resources', 'x://a', '--prompts', 'p') });
    const legacy = await openPipes(gateway, 'legacy');
    const modern = await openPipes(gateway, 'modern');
    await legacy.ask('resources/read', { uri: 's_x://a' });
    await modern.ask('prompts/get', { name: 's_p' });
    const data = { success: false, result: null, code: 'rate_limited', retryAfter: expect.any(Number) };
    expect((await legacy.ask('resources/read', { uri: 's_x://a' })).error).toMatchObject({ code: -32_000, data });
    expect((await modern.ask('prompts/get', { name: 's_p' })).error).toMatchObject({ code: -32_600, data });
    for (const { ask } of [legacy, modern]) {
      const { result } = await ask('tools/call', { name: 's_count', arguments: {} });
      const [{ text }] = result!.content as [{ text: string }];
      expect([result!.isError, JSON.parse(text).code]).toEqual([true, 'rate_limited']);
    }
  });
});

describe('a daily limit', () => {
  beforeEach(passMidnight);
  const config = (limits: string, ...args: string[]) => `
active_toolsets = ["*"]
[[servers]]
namespace = "s"
command = ${JSON.stringify(server('basic', ...args))}
${limits}
`;
  const call = async ({ client }: Awaited<ReturnType<typeof startStdio>>) => {
    const { content, isError } = await client.callTool({ name: 's_count', arguments: {} });
    const [{ text }] = content as [{ text: string }];
    return isError === true ? (JSON.parse(text) as { code: string; message: string }) : text;
  };

  it('is counted across a restart, and refuses further calls', async () => {
    const cwd = tempFolder();
    const first = await startStdio({ cwd, config: config('calls_per_day = 3') });
    expect([await call(first), await call(first)]).toEqual(['1', '2']);
    await first.stop();
    const second = await startStdio({ cwd, config: config('calls_per_day = 3') });
    expect(await call(second)).toBe('1');
    const refused = await call(second);
    expect(refused).toMatchObject({ code: 'rate_limited' });
    expect((refused as { message: string }).message).toMatch(
      /^Server "s" has reached its "calls_per_day" of 3\. The next day \(UTC\) begins in \d+ s\.$/,
    );
  });

  it('lets exactly so many calls through gateways that share a data folder, also if one is killed', {
    timeout: 120_000,
  }, async () => {
    const log = join(tempFolder(), 'log');
    const cwd = tempFolder({ 'tools.toml': config('calls_per_day = 60', '--log', log) });
    const open = () => startHttp({ cwd, process: true });
    const gateways = await Promise.all(Array.from({ length: isWide ? 3 : 2 }, open));
    let answered = 0;
    /** Calls until the limit is reached, or the gateway is gone. */
    const callAll = async (gateway: HttpGateway, most = 100) => {
      for (let i = 0; i < most; i++) {
        const { text, isError } = await callTool(gateway.url, 's_count');
        if (isError) return text;
        answered++;
      }
      return '';
    };
    const first = callAll(gateways[0]!).catch(() => '');
    await Promise.all(gateways.slice(1).map((one) => callAll(one, 10)));
    gateways[0]!.process.kill('SIGKILL');
    await first;
    const all = [...gateways.slice(1), await open()];
    const refusals = await Promise.all(all.map((one) => callAll(one)));
    for (const text of refusals) expect(text).toContain('has reached its \\"calls_per_day\\" of 60');
    const calls = received(log).filter(({ method }) => method === 'tools/call').length;
    expect(calls).toBeLessThanOrEqual(60);
    // The killed gateway may have counted a call that it did not send, or whose answer did not arrive.
    expect(answered).toBeGreaterThanOrEqual(59);
  });

  it('is counted separately for a tool and its server, and continues after a reload', async () => {
    const cwd = tempFolder();
    const gateway = await startHttp({
      cwd,
      config: config('calls_per_day = 3\ntools = { echo = { calls_per_day = 1 } }'),
    });
    const { client } = await gateway.connect();
    const call = async (name: string) => (await client.callTool({ name, arguments: {} })).isError === true;
    expect([await call('s_echo'), await call('s_echo'), await call('s_count')]).toEqual([false, true, false]);
    const more = config('calls_per_day = 3\ntools = { echo = { calls_per_day = 2 } }');
    replaceFile(cwd, more);
    await waitFor(async () => !(await call('s_echo')));
    expect([await call('s_echo'), await call('s_count')]).toEqual([true, true]);
  });
});
