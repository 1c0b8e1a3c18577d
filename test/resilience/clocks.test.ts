/** The two clocks of a call: one for a sign of life, one for all of it. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { server } from '../support/server.ts';
import { errorOf, textOf } from '../upstreams/use.ts';
import { timed, toml } from './use.ts';

let gateway: StdioGateway;
beforeAll(async () => {
  const entry = { namespace: 'slow', command: server('hang'), timeout: '600ms', total_timeout: '2s' };
  gateway = await startStdio({ config: toml([entry]) });
});

const call = (args: object, options: object = {}) =>
  gateway.client.callTool({ name: 'slow_slow', arguments: { ...args } }, undefined, options);
const progress = { onprogress: () => {} };

describe('a call', () => {
  it('may take longer than timeout while there is progress', async () => {
    const { value, ms } = await timed(call({ ms: 1500, steps: 10 }, progress));
    expect(textOf(value)).toBe('slow');
    expect(ms).toBeGreaterThan(1000);
  });

  it('ends after timeout without a sign of life', async () => {
    const { value, ms } = await timed(call({ ms: 1500, steps: 10 }));
    expect(errorOf(value)).toMatchObject({ code: 'source_timeout' });
    expect(errorOf(value).message).toMatch(/within 0\.6 s .* raise its timeout/);
    expect(ms).toBeLessThan(1400);
  });

  it('ends after total_timeout, whatever its progress', async () => {
    const { value, ms } = await timed(call({ ms: 6000, steps: 40 }, progress));
    expect(errorOf(value)).toMatchObject({ code: 'source_timeout' });
    expect(errorOf(value).message).toMatch(/within 2 s .* raise its total_timeout/);
    expect(ms).toBeGreaterThan(1900);
    expect(ms).toBeLessThan(3500);
  });

  it('is told to stop by either', async () => {
    await call({ ms: 5000, tag: 'idle' });
    await call({ ms: 6000, steps: 40, tag: 'total' }, progress);
    const cancelled = textOf(await gateway.client.callTool({ name: 'slow_cancelled' }));
    expect(cancelled).toContain('"idle"');
    expect(cancelled).toContain('"total"');
  });
});
