/** No worker, and no process started by a tool, outlives the gateway, however the gateway ends. */
import { describe, expect, it } from 'vitest';
import { callsInFlight } from '../support/in-flight.ts';
import { descendants, running, waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { useProcesses } from '../support/switch.ts';
import { startFaulty } from './faulty.ts';

useProcesses();

describe.skipIf(noPython !== undefined)('a gateway killed by SIGKILL', () => {
  it.each(['auto', 'off'])('leaves no worker behind (isolation: %s)', { timeout: 90_000 }, async (isolation) => {
    const dock = await startFaulty({ a: '60s' }, { settings: `[folders]\nisolation = "${isolation}"\n` });
    // These calls never return by themselves.
    for (const tool of ['ts_loop', 'py_loop_async', 'ts_waits', 'py_waits']) dock.call(`a_${tool}`).catch(() => {});
    await dock.call('calm_ts');
    await callsInFlight(dock, 4);
    const workers = descendants(dock.pid);
    expect(running(dock.cwd).length).toBeGreaterThanOrEqual(4);
    process.kill(dock.pid, 'SIGKILL');
    const start = performance.now();
    await waitFor(() => running(dock.cwd).length === 0 || null);
    if (process.env.FIGURES)
      console.log(`${isolation}: ${workers.length} processes gone ${Math.round(performance.now() - start)} ms after`);
  });
});
