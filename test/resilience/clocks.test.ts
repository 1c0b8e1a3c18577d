/** The two timeouts of a call: one since the last sign of life, one in total. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import { timed, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

let gateway: StdioGateway;
beforeAll(async () => {
  const entry = { namespace: 'slow', command: server('hang'), timeout: '800ms', total_timeout: '2s' };
  gateway = await startStdio({ config: toml([entry]) });
});

const call = (args: object, options: object = {}) =>
  gateway.client.callTool({ name: 'slow_slow', arguments: { ...args } }, undefined, options);
const progress = { onprogress: () => {} };

describe('a call with timeout and total_timeout', () => {
  it('may take longer than timeout while it reports progress', async () => {
    const { value, ms } = await timed(call({ ms: 1500, steps: 15 }, progress));
    expect(textOf(value)).toBe('slow');
    expect(ms).toBeGreaterThan(1000);
  });

  it('ends after timeout without progress', async () => {
    // It would take longer than total_timeout.
    const value = await call({ ms: 6000, steps: 60 });
    expect(errorOf(value)).toMatchObject({ code: 'source_timeout' });
    expect(errorOf(value).message).toMatch(/within 0\.8 s .* raise its timeout/);
  });

  it('ends after total_timeout despite progress', async () => {
    const { value, ms } = await timed(call({ ms: 6000, steps: 60 }, progress));
    expect(errorOf(value)).toMatchObject({ code: 'source_timeout' });
    expect(errorOf(value).message).toMatch(/within 2 s .* raise its total_timeout/);
    expect(ms).toBeGreaterThan(1900);
  });

  it('is cancelled at the server by either timeout', async () => {
    await Promise.all([call({ ms: 5000, tag: 'idle' }), call({ ms: 6000, steps: 60, tag: 'total' }, progress)]);
    const cancelled = textOf(await gateway.client.callTool({ name: 'slow_cancelled' }));
    expect(cancelled).toContain('"idle"');
    expect(cancelled).toContain('"total"');
  });
});
