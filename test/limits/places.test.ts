/** Concurrency limits of a server, a tool and an agent: which calls wait, for how long, and which are refused. */
import { describe, expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { killServer } from '../support/in-process-server.ts';
import { open, openPipes } from '../support/open-gateway.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry, startHttpServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { begin, beginMany, doorOf, hanging, refusalOf, textOf } from './limits.ts';

const moment = (ms = 50) => new Promise((resolve) => setTimeout(resolve, ms));

describe('the concurrency limit of a server', () => {
  it('lets the configured number of calls run, queues the next ones, and refuses the rest at once', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 3, queue: 2 }) });
    const door = doorOf(gateway);
    const running = beginMany(door, 3, 's_hang');
    expect(gateway.metrics.inFlight).toBe(3);
    const waiting = beginMany(door, 2, 's_ok');
    expect(gateway.metrics.inFlight).toBe(3);
    const start = performance.now();
    const refused = await refusalOf(begin(door, 's_ok'));
    // A call that waits is refused after 30 s.
    expect(performance.now() - start).toBeLessThan(patient(15_000));
    expect([refused.code, refused.httpStatus, refused.rpcCode, refused.message, refused.details]).toEqual([
      'source_busy',
      503,
      -32_000,
      'Server "s" is busy: 3 calls under way and 2 waiting, which is all that its "concurrency" and "queue" allow. Try again in 1 s.',
      { retryAfter: 1 },
    ]);
    expect(gateway.metrics.refused).toBe(1);
    await moment();
    expect(waiting.map(({ isOver }) => isOver)).toEqual([false, false]);
    running[0]!.cancel();
    for (const one of waiting) expect(await textOf(one)).toMatch(/^\d+$/);
    expect(gateway.metrics.inFlight).toBe(2);
    for (const one of running) one.cancel();
    expect(gateway.metrics.inFlight).toBe(0);
    // No slot leaked: all are free again.
    const again = beginMany(door, 5, 's_slow', { ms: 20 });
    expect(await Promise.all(again.map(textOf))).toEqual(Array(5).fill('slow'));
  });

  it('checks again, when a queued call gets its turn, whether it is still allowed', async () => {
    const servers = { s: hanging({ concurrency: 1 }) };
    const { gateway } = await open(servers, {
      agent_policies: { a: { allowed_servers: ['s'], tool_overrides: { s: ['*'] } } },
    });
    const door = doorOf(gateway, 'a');
    const running = begin(door, 's_hang');
    const [waiting, other] = [begin(door, 's_ok'), begin(door, 's_slow', { ms: 1 })];
    const { config } = gateway;
    const policy = configFromValue(
      { servers, agent_policies: { a: { allowed_servers: ['s'], tool_overrides: { s: ['hang', 'slow'] } } } },
      { cwd: tempFolder(), env: {} },
    ).policy;
    gateway.apply({ ...config, policy });
    running.cancel();
    expect(await refusalOf(waiting)).toMatchObject({
      code: 'item_unknown',
      message: 'The policy no longer allows "s_ok": it changed while the call waited.',
    });
    expect(await textOf(other)).toBe('slow');
    expect(gateway.metrics.inFlight).toBe(0);
    expect(gateway.statuses()[0]?.places).toEqual({ running: 0, waiting: 0 });
  });

  it('serves queued calls in order of arrival', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 50 }) });
    const door = doorOf(gateway);
    const ended: number[] = [];
    const all = Array.from({ length: 20 }, (_, i) => begin(door, 's_slow', { ms: 5, tag: `t${i}` }));
    all.forEach((one, i) => {
      if (i % 3 === 1) one.cancel();
      else void one.done.then(() => ended.push(i));
    });
    await Promise.all(all.map(({ done }) => done));
    expect(ended).toEqual([...Array(20).keys()].filter((i) => i % 3 !== 1));
  });

  it('refuses further calls at once without a queue', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 0 }) });
    const door = doorOf(gateway);
    const first = begin(door, 's_hang');
    expect((await refusalOf(begin(door, 's_ok'))).code).toBe('source_busy');
    first.cancel();
    expect(await textOf(begin(door, 's_ok'))).toMatch(/^\d+$/);
  });

  it('fails a queued call after its timeout', async () => {
    const { gateway } = await open({
      s: hanging({ concurrency: 1, timeout: 30_000, tools: { ok: { timeout: 200 } } }),
    });
    const door = doorOf(gateway);
    const first = begin(door, 's_hang');
    const start = performance.now();
    const { code, message } = await refusalOf(begin(door, 's_ok'));
    expect(performance.now() - start).toBeGreaterThan(190);
    // The timeout of its server is 30 s.
    expect(performance.now() - start).toBeLessThan(patient(15_000));
    expect([code, message]).toEqual([
      'source_busy',
      'Server "s" is busy: the call has waited 0.2 s, because its "concurrency" allows 1 call at one time. Try again in 1 s.',
    ]);
    first.cancel();
    expect(await textOf(begin(door, 's_ok'))).toMatch(/^\d+$/);
  });

  it('frees the slot when the server dies or cannot be started', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 2, queue: 2 }) });
    const door = doorOf(gateway);
    const pid = Number(await textOf(begin(door, 's_ok')));
    const all = beginMany(door, 4, 's_hang');
    killServer(pid);
    const [first, second, ...others] = all;
    for (const one of [first!, second!]) expect((await refusalOf(one)).code).toBe('source_broken');
    // The calls that waited for a slot now wait for the server.
    await waitFor(() => gateway.statuses()[0]!.places.running === 2);
    for (const one of others) one.cancel();
    expect(gateway.metrics.inFlight).toBe(0);
    await waitFor(() => gateway.statuses()[0]!.state === 'up' && gateway.catalog.entries.tool.has('s_ok'));
    const again = beginMany(door, 4, 's_ok');
    for (const one of again) expect(await textOf(one)).toMatch(/^\d+$/);
  });

  it('keeps the slot while a user is asked, and frees it when nobody answers', async () => {
    const { gateway } = await open({ s: { ...serverEntry('asking'), concurrency: 1, queue: 0 } });
    const pipes = await openPipes(gateway, 'modern');
    const able = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      ...able,
    };
    const ask = { name: 's_ask', arguments: {} };
    pipes.send({ id: 'a', method: 'tools/call', params: { _meta: meta, ...ask } });
    const asked = await waitFor(() => pipes.lines.find(({ id }) => id === 'a'));
    expect(asked.result).toMatchObject({ resultType: 'input_required' });
    const door = doorOf(gateway);
    expect((await refusalOf(begin(door, 's_seen'))).code).toBe('source_busy');
    gateway.parked.close();
    expect(await textOf(begin(door, 's_seen'))).toContain('pid');
  });

  it('applies to HTTP servers, and to resources, prompts and completions', async () => {
    const server = await startHttpServer('--resources', 'x://a', '--prompts', 'p', '--delay', 300);
    const { gateway } = await open({ s: { url: server.url, concurrency: 1, queue: 0 } });
    const pipes = await openPipes(gateway, 'legacy');
    const first = pipes.ask('tools/call', { name: 's_echo', arguments: {} });
    const [read, get] = await Promise.all([
      pipes.ask('resources/read', { uri: 's_x://a' }),
      pipes.ask('prompts/get', { name: 's_p' }),
    ]);
    for (const { error } of [read, get])
      expect(error).toMatchObject({ code: -32_000, data: { code: 'source_busy', retryAfter: 1 } });
    expect((await first).result).toBeDefined();
    expect((await pipes.ask('resources/read', { uri: 's_x://a' })).result).toBeDefined();
    expect((await pipes.ask('prompts/get', { name: 's_p' })).result).toBeDefined();
  });
});

describe('the concurrency limit of a tool', () => {
  it('is separate from the other tools of the server', async () => {
    const tools = { hang: { concurrency: 1, queue: 0 }, 's*': { concurrency: 2, queue: 1 } };
    const { gateway } = await open({ s: hanging({ tools }) });
    const door = doorOf(gateway);
    const hang = begin(door, 's_hang');
    expect((await refusalOf(begin(door, 's_hang'))).message).toMatch(/^The tool "s_hang" is busy: 1 call under way/);
    const slow = beginMany(door, 3, 's_slow', { ms: 50 });
    expect((await refusalOf(begin(door, 's_slow', { ms: 1 }))).message).toMatch(/^The tool "s_slow" is busy: 2 calls/);
    expect(await textOf(begin(door, 's_ok'))).toMatch(/^\d+$/);
    for (const one of slow) expect(await textOf(one)).toBe('slow');
    hang.cancel();
    expect(gateway.metrics.inFlight).toBe(0);
  });

  it('is taken before that of the server, and released if the server is full', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 1, tools: { ok: { concurrency: 1 } } }) });
    const door = doorOf(gateway);
    const hang = begin(door, 's_hang');
    const waiting = begin(door, 's_ok');
    const behind = begin(door, 's_ok');
    expect((await refusalOf(begin(door, 's_slow', { ms: 1 }))).message).toMatch(/^Server "s" is busy/);
    waiting.cancel();
    // The next call of the tool now waits for the server.
    hang.cancel();
    expect(await textOf(behind)).toMatch(/^\d+$/);
    expect(await textOf(begin(door, 's_ok'))).toMatch(/^\d+$/);
  });
});

describe('queued calls', () => {
  it('go through middleware like others', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 1 }) });
    gateway.use((_, next) => next());
    const door = doorOf(gateway);
    const all = beginMany(door, 2, 's_slow', { ms: 30 });
    expect((await refusalOf(begin(door, 's_ok'))).code).toBe('source_busy');
    for (const one of all) expect(await textOf(one)).toBe('slow');
    const [running, waiting] = [begin(door, 's_hang'), begin(door, 's_hang')];
    await moment();
    waiting.cancel();
    running.cancel();
    expect(await textOf(begin(door, 's_ok'))).toMatch(/^\d+$/);
    expect(gateway.metrics.inFlight).toBe(0);
  });

  it('are dropped when their client disconnects', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 1 }) });
    const door = doorOf(gateway);
    const running = begin(door, 's_hang');
    const pipes = await openPipes(gateway, 'legacy');
    pipes.send({ id: 'w', method: 'tools/call', params: { name: 's_ok', arguments: {} } });
    await waitFor(async () => (await refusalOf(begin(door, 's_ok'))).code === 'source_busy');
    pipes.send({ method: 'notifications/cancelled', params: { requestId: 'w' } });
    const next = begin(door, 's_ok');
    await moment();
    expect(next.isOver).toBe(false);
    running.cancel();
    expect(await textOf(next)).toMatch(/^\d+$/);
  });

  it('stop waiting when the server is removed or its limit is raised', async () => {
    const { gateway } = await open({ s: hanging({ concurrency: 1, queue: 2 }) });
    const door = doorOf(gateway);
    const running = begin(door, 's_hang');
    const waiting = beginMany(door, 2, 's_ok');
    const [server] = gateway.config.servers;
    gateway.apply({
      ...gateway.config,
      servers: [{ ...server!, limits: { ...server!.limits, concurrency: 2 } }],
    });
    for (const one of waiting) expect(await textOf(one)).toMatch(/^\d+$/);
    // Running calls have kept their slots.
    const second = begin(door, 's_hang');
    const third = begin(door, 's_ok');
    await moment();
    expect([gateway.metrics.inFlight, third.isOver]).toEqual([2, false]);
    running.cancel();
    expect(await textOf(third)).toMatch(/^\d+$/);
    second.cancel();
  });
});
