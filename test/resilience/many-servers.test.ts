/** Many real servers at once: each is up in time, and the second start lists all of them at once. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callText, logOf, toml, toolNames } from '../support/running-gateway.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const COUNT = 30;
/** In milliseconds. A quiet machine needs a second; a gateway that waits for its servers needs as long as all of them do. */
const FIRST_ANSWER = 40_000;
const program = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'));
const servers = Array.from({ length: COUNT }, (_, i) => ({
  namespace: `m${i}`,
  command: process.execPath,
  args: [program],
  env: { NUMBER: String(i) },
}));

it('starts many servers in turns, and lists and calls all of them at once the next time', async () => {
  const args = ['--log-level', 'info'];
  const beforeFirst = performance.now();
  const first = await startStdio({ config: toml(servers), args });
  expect(performance.now() - beforeFirst).toBeLessThan(FIRST_ANSWER);
  const up = (gateway: typeof first) => logOf(gateway).filter(({ message }) => message.startsWith('up: ')).length;
  await waitFor(() => up(first) === COUNT, 60_000);
  const names = await toolNames(first.client);
  expect(names).toHaveLength(COUNT * 9);
  expect(logOf(first).filter(({ message }) => message.includes('did not start'))).toEqual([]);
  await first.stop();

  const beforeSecond = performance.now();
  const second = await startStdio({ cwd: first.cwd, args });
  expect(await toolNames(second.client)).toEqual(names);
  expect(performance.now() - beforeSecond).toBeLessThan(FIRST_ANSWER);
  // Not all of them are up yet, and the last one is called.
  expect(await callText(second.client, `m${COUNT - 1}_read_graph`)).toContain('entities');
  await waitFor(() => up(second) === COUNT, 60_000);
  expect(second.changes('tools')).toBe(0);
}, 120_000);
