/** Calls that come while a worker restarts wait for the new one. They do not prolong the outage. */
import { expect, it } from 'vitest';
import { startDock, tsTool } from '../support/dock.ts';
import { waitFor } from '../support/processes.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const DIES = tsTool('die', '(process as any).reallyExit(7);') + tsTool('here', 'return "1";');

it('calls that come after the end of a worker wait for the next one, and all are answered', {
  timeout: 120_000,
}, async () => {
  const dock = await startDock({ 'ts/a.ts': DIES }, { python: false });
  await waitFor(async () => (await dock.names()).length === 2, 30_000);
  for (let round = 0; round < 2; round++) {
    await dock.call('ts_die');
    // More than the failures in a row after which a server is not called for a while.
    const calls = await Promise.all(Array.from({ length: 10 }, () => dock.call('ts_here')));
    expect(calls.map(({ text }) => text)).toEqual(calls.map(() => '1'));
  }
  const metrics = await (await fetch(`${dock.origin}/metrics`)).text();
  expect(metrics).toMatch(/^toolgate_server_breaker_open\{.*\} 0$/m);
});
