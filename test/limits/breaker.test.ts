/** The circuit breaker: after five failures in a row a server is not called for a while, then one call tests it. */
import { describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/index.ts';
import { killServer } from '../support/in-process-server.ts';
import { open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { begin, beginMany, doorOf, hanging, refusalOf, startMoody, textOf } from './limits.ts';

const OPEN = /^Server "s" failed \d+ times in a row and is not called for now;/;

async function openMoody(more: object = {}) {
  const server = await startMoody();
  const { gateway } = await open({ s: { url: server.url, timeout: 300, ...more } });
  const notes: string[] = [];
  gateway.events.listen((name, event) => {
    if (name === 'note') notes.push((event as { message: string }).message);
  });
  const door = doorOf(gateway);
  const fails = async () => refusalOf(begin(door, 's_do'));
  return { server, gateway, door, notes, fails, breaker: () => gateway.statuses()[0]!.breaker };
}

describe('the circuit breaker', () => {
  it('blocks the sixth call after five failures, and tells callers when the server is tried again', async () => {
    // A long timeout: however slow the machine is, the server's own answer is what fails.
    const { server, gateway, door, notes, fails, breaker } = await openMoody({ timeout: 60_000 });
    await server.be('broken');
    for (let i = 1; i <= 5; i++) {
      expect(breaker()).toMatchObject({ state: 'closed', failures: i - 1 });
      expect((await fails()).message).toContain('answered with HTTP status 500');
    }
    // All at once, and before anything else is waited for, because the server is tried again after a second.
    const refused = beginMany(door, 20, 's_do').map(refusalOf);
    const [status] = gateway.statuses();
    expect(status!.breaker).toEqual({ state: 'open', failures: 5, until: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(status!.detail).toMatch(/; failed 5 times in a row and is tried again at \d{4}-.*Z$/);
    for (const error of await Promise.all(refused)) {
      expect([error.code, error.details.retryAfter]).toEqual(['source_unavailable', 1]);
      expect(error.message).toMatch(OPEN);
      expect(error.message).toMatch(
        /it is tried again in 1 s\. The last error: Server "s" answered with HTTP status 500/,
      );
    }
    expect(await server.calls()).toBe(5);
    expect(notes.filter((note) => OPEN.test(note))).toHaveLength(1);
  });

  it('tests the server with one call at a time, at growing intervals, and closes on the first success', async () => {
    const { server, door, notes, fails, breaker } = await openMoody();
    await server.be('broken');
    for (let i = 0; i < 5; i++) await fails();
    const pauses: number[] = [];
    for (let round = 0; round < 3; round++) {
      const start = performance.now();
      const before = await server.calls();
      while ((await server.calls()) === before) {
        await Promise.all([fails(), fails(), fails()]);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      pauses.push(performance.now() - start);
      expect(await server.calls()).toBe(before + 1);
    }
    expect(pauses[2]).toBeGreaterThan(pauses[0]!);
    await server.be('silent');
    await waitFor(() => begin(door, 's_do') && breaker().state === 'trying');
    // While one call tests the server, the others are refused with that reason.
    expect((await fails()).message).toContain('it is being tried again right now');
    await waitFor(() => breaker().state === 'open');
    await server.be('fine');
    const before = await server.calls();
    await waitFor(async () => (await begin(door, 's_do').done) instanceof Buffer);
    expect(await server.calls()).toBe(before + 1);
    expect([breaker().state, await textOf(begin(door, 's_do'))]).toEqual(['closed', 'fine']);
    expect(notes.at(-1)).toBe('answers again, and is called as before');
  });

  it('does not count failing tools or error replies as failures', async () => {
    const { server, door, breaker } = await openMoody();
    for (const mood of ['unhappy', 'wrong'] as const) {
      await server.be(mood);
      for (let i = 0; i < 8; i++) await begin(door, 's_do').done;
    }
    expect([breaker(), await server.calls()]).toEqual([{ state: 'closed', failures: 0, until: null }, 16]);
  });

  it('does not count cancelled calls, or calls that hit a shorter timeout of their agent', async () => {
    const server = await startMoody();
    const { gateway } = await open(
      { s: { url: server.url, timeout: 5_000 } },
      { default_policy: { limits: { timeout: 100 } } },
    );
    await server.be('silent');
    const calls = beginMany(doorOf(gateway), 8, 's_do');
    await waitFor(async () => (await server.calls()) === 8);
    for (const call of calls) call.cancel();
    const agent = doorOf(gateway, 'hasty');
    for (const call of beginMany(agent, 8, 's_do')) expect((await refusalOf(call)).code).toBe('source_timeout');
    expect(gateway.statuses()[0]!.breaker.state).toBe('closed');
  });

  it('fails waiting calls at once when it opens', async () => {
    const { server, door } = await openMoody({ concurrency: 5, queue: 50, timeout: 1_000 });
    await server.be('silent');
    const running = beginMany(door, 5, 's_do');
    await waitFor(async () => (await server.calls()) === 5);
    // The others begin half a timeout later: what they have left is enough to see them refused.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const all = [...running, ...beginMany(door, 25, 's_do')];
    const errors = await Promise.all(all.map(refusalOf));
    // Each of the first four that times out lets one waiting call through.
    expect(errors.filter(({ code }) => code === 'source_timeout')).toHaveLength(9);
    expect(errors.filter(({ message }) => OPEN.test(message))).toHaveLength(21);
    expect(await server.calls()).toBe(9);
  });
});

describe('the circuit breaker of a stdio server', () => {
  it('counts one failure when the server dies during many calls, and stays closed after the restart', async () => {
    const { gateway } = await open({ s: hanging() });
    const door = doorOf(gateway);
    const pid = Number(await textOf(begin(door, 's_ok')));
    const calls = beginMany(door, 20, 's_hang');
    killServer(pid);
    for (const call of calls) await refusalOf(call);
    expect(gateway.statuses()[0]!.breaker).toMatchObject({ state: 'closed', failures: 1 });
    await waitFor(() => isBack(gateway, pid));
    for (const call of beginMany(door, 20, 's_ok')) expect(await textOf(call)).toMatch(/^\d+$/);
  });

  it('lets a call through at once after the server was restarted', async () => {
    const { gateway } = await open({ s: { ...serverEntry('hang'), timeout: 100 } });
    const door = doorOf(gateway);
    const pid = Number(await textOf(begin(door, 's_ok')));
    // Enough failures for a long pause.
    for (let round = 0; round < 12; round++) {
      await waitFor(async () => (await refusalOf(begin(door, 's_hang'))).code === 'source_timeout');
      if (gateway.statuses()[0]!.breaker.failures >= 8) break;
    }
    killServer(pid);
    await waitFor(() => isBack(gateway, pid));
    expect(await textOf(begin(door, 's_ok'))).not.toBe(String(pid));
    expect(gateway.statuses()[0]!.breaker.state).toBe('closed');
  });

  it('is separate for each client with share = "session"', async () => {
    const { gateway } = await open({ s: { ...serverEntry('hang'), timeout: 50, share: 'session' } });
    const [one, other] = [doorOf(gateway), doorOf(gateway)];
    for (let i = 0; i < 7; i++) expect((await refusalOf(begin(one, 's_hang'))).code).toBe('source_timeout');
    expect(await textOf(begin(other, 's_ok'))).toMatch(/^\d+$/);
  });
});

/** Whether the server runs in a new process. */
function isBack(gateway: Gateway, pid: number): boolean {
  const [status] = gateway.statuses();
  return status!.state === 'up' && status!.pid !== pid && gateway.catalog.entries.tool.has('s_ok');
}
