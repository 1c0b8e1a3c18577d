/** Lazy servers: listed without a process, started by a call, stopped when idle. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { isServerRunning, runningServers } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, logged, pidOf, replaceFile, timed, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

let count = 0;
/** A server whose process can be found by name. */
function lazy(settings: Record<string, unknown> = {}) {
  const name = `lazy-${process.pid}-${++count}`;
  const command = server('basic', '--name', name, '--tools', 'echo,whoami', '--resources', 'note://1');
  return { name, entry: { namespace: 'l', command, start: 'lazy', ...settings } };
}

/** Uses the same folder twice, so that the second gateway knows the servers from the first. */
async function startAgain(config: string): Promise<StdioGateway> {
  const first = await startStdio({ config });
  await toolNames(first.client);
  await waitFor(() => offersIn(first.cwd).length > 0);
  await first.stop();
  return startStdio({ cwd: first.cwd });
}

function offersIn(cwd: string): string[] {
  const folder = join(cwd, '.toolgate', 'offers');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
}

it('lists a lazy server from its stored items without a process, and starts it on the first call', async () => {
  const { name, entry } = lazy();
  const gateway = await startAgain(toml([entry]));
  const { client } = gateway;
  expect(await toolNames(client)).toEqual(['l_echo', 'l_whoami']);
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['l_note://1']);
  expect(runningServers(name)).toEqual([]);
  expect(await callText(client, 'l_echo', { a: 1 })).toBe('{"a":1}');
  expect(runningServers(name)).toHaveLength(1);
  // Nothing has changed, so no client is notified.
  expect(gateway.changes('tools')).toBe(0);
});

it('starts a lazy server once for many concurrent calls', async () => {
  const { name, entry } = lazy();
  const { client } = await startAgain(toml([entry]));
  const pids = await Promise.all(Array.from({ length: 20 }, () => pidOf(client, 'l')));
  expect(new Set(pids).size).toBe(1);
  expect(runningServers(name)).toEqual([pids[0]]);
});

it('starts a lazy server once with the gateway if no items are stored', async () => {
  const { name, entry } = lazy();
  const { client, cwd } = await startStdio({ config: toml([entry]) });
  expect(await toolNames(client)).toEqual(['l_echo', 'l_whoami']);
  expect(runningServers(name)).toHaveLength(1);
  expect(await waitFor(() => offersIn(cwd)[0])).toMatch(/^[0-9a-f]{32}\.json$/);
});

it('stops an idle server, keeps it listed, and starts it again on the next call', async () => {
  const { name, entry } = lazy({ start: 'eager', idle_stop: '400ms' });
  const gateway = await startStdio({ config: toml([entry]) });
  const first = await pidOf(gateway.client, 'l');
  await waitFor(() => !isServerRunning(first));
  expect(runningServers(name)).toEqual([]);
  expect(await toolNames(gateway.client)).toEqual(['l_echo', 'l_whoami']);
  const second = await pidOf(gateway.client, 'l');
  expect(second).not.toBe(first);
  expect(gateway.changes('tools')).toBe(0);
});

it('does not stop a server that is in use', async () => {
  const hang = { namespace: 'h', command: server('hang'), idle_stop: '1s' };
  const { client } = await startStdio({ config: toml([hang]) });
  const pid = await callText(client, 'h_ok');
  expect(await callText(client, 'h_slow', { ms: 1300 })).toBe('slow');
  for (const end = performance.now() + 1300; performance.now() < end; ) {
    expect(await callText(client, 'h_slow', { ms: 60 })).toBe('slow');
    expect(await callText(client, 'h_ok')).toBe(pid);
  }
});

it.each([
  ['half of it', '{"tools":[{"name":"wrong","inputSchema":{}}'],
  ['nothing', ''],
  ['no lists', '{}'],
  ['other JSON', '[1,2,3]'],
  ['wrong lists', '{"tools":5,"resources":{},"prompts":"x"}'],
  ['bytes', '\u0000\u0001\ufffd'],
])('ignores a damaged file of stored items: %s', async (_, content) => {
  const { entry } = lazy();
  const first = await startStdio({ config: toml([entry]) });
  await toolNames(first.client);
  const [file] = await waitFor(() => offersIn(first.cwd).length > 0 && offersIn(first.cwd));
  await first.stop();
  writeFileSync(join(first.cwd, '.toolgate', 'offers', file!), content);
  const { client } = await startStdio({ cwd: first.cwd });
  expect(await toolNames(client)).toEqual(['l_echo', 'l_whoami']);
  expect(await callText(client, 'l_echo')).toBe('{}');
});

it('fails the call at once if a lazy server does not start, and removes its items', async () => {
  // The same command works the first time and never again.
  const once = join(tempFolder(), 'once');
  const command = `if [ -e ${once} ]; then echo 'the licence has run out' >&2; exit 7; fi; touch ${once}; exec ${server('basic', '--tools', 'echo')}`;
  const gateway = await startAgain(toml([{ namespace: 'l', command, start: 'lazy' }]));
  expect(await toolNames(gateway.client)).toEqual(['l_echo']);
  const { value, ms } = await timed(callError(gateway.client, 'l_echo'));
  expect(value).toMatchObject({
    code: 'source_unavailable',
    message: 'Server "l" is not available: exited with code 7.',
  });
  // A call that waits for the start would end with its timeout of five minutes.
  expect(ms).toBeLessThan(10_000);
  await logged(gateway, 'down: exited with code 7 (it said: the licence has run out)');
  await waitFor(() => gateway.changes('tools') === 1);
  expect(await toolNames(gateway.client)).toEqual([]);
});

it('discards the stored items of a server when its command changes', async () => {
  const { entry } = lazy();
  const gateway = await startAgain(toml([entry]));
  expect(await toolNames(gateway.client)).toEqual(['l_echo', 'l_whoami']);
  const command = server('basic', '--tools', 'echo,new');
  replaceFile(gateway.cwd, toml([{ ...entry, command }]));
  await waitFor(async () => (await toolNames(gateway.client)).join() === 'l_echo,l_new');
});

it('starts a sleeping server when it is made eager', async () => {
  const { name, entry } = lazy();
  const gateway = await startAgain(toml([entry]));
  await toolNames(gateway.client);
  expect(runningServers(name)).toEqual([]);
  replaceFile(gateway.cwd, toml([{ ...entry, start: 'eager' }]));
  await waitFor(() => runningServers(name).length === 1);
});
