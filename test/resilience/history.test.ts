/** The status of a server tells what happened to it. */
import { expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

it('the status of a server has a history of its states, with times and reasons', async () => {
  const data = tempFolder();
  const servers = { c: serverEntry('crash'), gone: { command: 'no-such-program-anywhere' } };
  const config = configFromValue({ mcpServers: servers, data_dir: data }, { cwd: data, env: process.env });
  const gateway = createGateway(config);
  atEnd(() => gateway.close());
  await gateway.tried();
  const status = (key: string) => gateway.statuses().find((one) => one.key === key)!;
  expect(status('c').history.map(({ state }) => state)).toEqual(['starting', 'up']);
  process.kill(status('c').pid!, 'SIGKILL');
  await waitFor(() => status('c').history.length === 4);
  const { history, since, restarts, state } = status('c');
  expect(history.map((one) => `${one.state}: ${one.detail}`)).toEqual([
    'starting: ',
    'up: crash 1.0.0',
    'down: was ended by SIGKILL',
    'up: crash 1.0.0',
  ]);
  expect([state, restarts, since]).toEqual(['up', 1, history[3]!.time]);
  const times = history.map(({ time }) => Date.parse(time));
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(Math.abs(Date.now() - times[3]!)).toBeLessThan(60_000);
  // A server that keeps failing the same way has been down since the first failure, which is recorded once.
  const failed = status('gone');
  expect(failed.history.map(({ state: one }) => one)).toEqual(['starting', 'down']);
  expect(failed.since).toBe(failed.history[1]!.time);
});
