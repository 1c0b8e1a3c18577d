/** Startup: all servers start at once, and none of them delays another. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, logged, logOf, timed, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { fixture, server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const slow = (namespace: string, ms: number) => ({
  namespace,
  command: server('basic', '--tools', 'echo', '--slow-start', ms),
});

/** A server that is up as soon as the file exists. */
const held = (namespace: string, file: string) => ({
  namespace,
  command: server('basic', '--tools', 'echo', '--name', namespace, '--start-when', file),
});

it('starts all servers concurrently', async () => {
  const file = join(tempFolder(), 'go');
  const { client } = await startStdio({ config: toml(['a', 'b', 'c'].map((name) => held(name, file))) });
  const names = toolNames(client);
  // All of them have been started, and none of them is up.
  await arrived(`${file}.waiting`, '\n', 3);
  writeFileSync(file, '');
  expect(await names).toEqual(['a_echo', 'b_echo', 'c_echo']);
});

it('calls a server as soon as it is up while another hangs, even before the name is known', async () => {
  const config = toml(
    [
      { namespace: 'hung', command: server('hang', '--on', 'initialize') },
      { namespace: 'dead', command: server('dead') },
      slow('late', 300),
    ],
    { start_wait: '20s' },
  );
  const { client } = await startStdio({ config });
  const { value, ms } = await timed(callText(client, 'late_echo', { a: 1 }));
  expect(value).toBe('{"a":1}');
  // A call that waits for every server takes the 20 s of start_wait.
  expect(ms).toBeLessThan(10_000);
});

it('refuses an unknown name only after every server has been tried', async () => {
  const { client } = await startStdio({ config: toml([slow('a', 1500)], { start_wait: '20s' }) });
  const { value, ms } = await timed(callError(client, 'a_nothing'));
  expect(value).toMatchObject({ code: 'item_unknown' });
  expect(ms).toBeGreaterThan(200);
  // It does not wait for the end of start_wait.
  expect(ms).toBeLessThan(10_000);
});

it('makes a list wait for servers that are starting, and then sends no change notification', async () => {
  const gateway = await startStdio({ config: toml([slow('a', 0), slow('b', 600)]) });
  expect(await toolNames(gateway.client)).toEqual(['a_echo', 'b_echo']);
  await gateway.client.ping();
  expect(gateway.changes('tools')).toBe(0);
});

it('lists the available items after start_wait, and notifies once when the rest is available', async () => {
  const file = join(tempFolder(), 'go');
  const config = toml([slow('a', 0), held('b', file)], { start_wait: '2s' });
  const gateway = await startStdio({ config });
  expect(await toolNames(gateway.client)).toEqual(['a_echo']);
  writeFileSync(file, '');
  await waitFor(() => gateway.changes('tools') > 0);
  expect(await toolNames(gateway.client)).toEqual(['a_echo', 'b_echo']);
  expect(gateway.changes('tools')).toBe(1);
});

it('does the same over HTTP: healthy at once, ready when every server has been tried', async () => {
  const file = join(tempFolder(), 'go');
  const config = toml([slow('a', 0), held('b', file)], { start_wait: '1s' });
  const gateway = await startHttp({ config, ready: false });
  expect((await fetch(`${gateway.origin}/health`)).status).toBe(200);
  expect((await fetch(`${gateway.origin}/ready`)).status).toBe(503);
  const { client, changes } = await gateway.connect();
  await waitFor(async () => (await toolNames(client)).join() === 'a_echo');
  expect((await fetch(`${gateway.origin}/ready`)).status).toBe(503);
  const before = changes('tools');
  writeFileSync(file, '');
  await waitFor(() => changes('tools') > before);
  expect(await toolNames(client)).toEqual(['a_echo', 'b_echo']);
  await waitFor(async () => (await fetch(`${gateway.origin}/ready`)).ok);
  expect(changes('tools')).toBe(before + 1);
});

it('is ready with a dead server unless it is required', async () => {
  const dead = { namespace: 'dead', command: server('dead') };
  const lenient = await startHttp({ config: toml([dead]) });
  expect(await (await fetch(`${lenient.origin}/ready`)).json()).toEqual({ status: 'ready' });
  const strict = await startHttp({ config: toml([{ ...dead, required: true }]), ready: false });
  await logged(strict, 'dead: cannot find the configuration file dead.conf');
  expect((await fetch(`${strict.origin}/ready`)).status).toBe(503);
  expect((await fetch(`${strict.origin}/health`)).status).toBe(200);
});

it('becomes ready when a required server comes up later', async () => {
  const counter = join(tempFolder(), 'starts');
  const command = `${process.execPath} ${fixture('crash')} --crash-times ${counter} 2`;
  const gateway = await startHttp({ config: toml([{ namespace: 'a', command, required: true }]), ready: false });
  expect((await fetch(`${gateway.origin}/ready`)).status).toBe(503);
  await waitFor(async () => (await fetch(`${gateway.origin}/ready`)).ok);
});

it('gives up on a server that never finishes its handshake or its lists, and logs it', async () => {
  const hung = (method: string) => ({
    namespace: method.replace('/', '-'),
    command: server('hang', '--on', method),
    start_timeout: '500ms',
  });
  const config = toml([hung('initialize'), hung('tools/list'), slow('a', 0)]);
  const gateway = await startStdio({ config });
  await toolsToBe(gateway.client, ['a_echo']);
  const line = await logged(gateway, 'did not start and list its tools within 0.5 s; raise start_timeout');
  await waitFor(() => logOf(gateway).some(({ message, source }) => message === line.message && source !== line.source));
});
