/**
 * Hot reload of servers: unchanged ones keep running, changed ones are replaced without a gap, removed ones finish
 * their calls.
 */
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { isServerRunning, runningServers } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import {
  call,
  callError,
  callText,
  logged,
  pidOf,
  replaceFile,
  timed,
  toml,
  toolNames,
  toolsToBe,
} from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

const basic = (namespace: string, ...args: (string | number)[]) => ({
  namespace,
  command: server('basic', '--tools', 'echo,whoami', ...args),
});

/** Calls one tool repeatedly until stopped, and counts the outcomes. */
function keepCalling(calling: () => Promise<unknown>) {
  let stopped = false;
  let calls = 0;
  const errors: unknown[] = [];
  const loop = async () => {
    while (!stopped) {
      calls++;
      await calling().catch((error) => errors.push(error));
    }
  };
  const loops = Promise.all([loop(), loop(), loop()]);
  return {
    calls: () => calls,
    async stop() {
      stopped = true;
      await loops;
      return errors;
    },
  };
}

it('keeps the process of every unchanged server, whatever its position in the file', async () => {
  const [a, b, c] = [basic('a', '--name', 'a'), basic('b', '--name', 'b'), basic('c', '--name', 'c')];
  const { client, cwd } = await startStdio({ config: toml([a, b, c]) });
  const pids = [await pidOf(client, 'a'), await pidOf(client, 'b')];
  replaceFile(cwd, toml([basic('new'), b, a]));
  await toolsToBe(client, ['new_echo', 'new_whoami', 'b_echo', 'b_whoami', 'a_echo', 'a_whoami']);
  expect([await pidOf(client, 'a'), await pidOf(client, 'b')]).toEqual(pids);
});

it('renames a server without a restart if only its namespace changed', async () => {
  const { client, cwd, changes } = await startStdio({ config: toml([basic('old'), basic('other', '--name', 'x')]) });
  const pid = await pidOf(client, 'old');
  replaceFile(cwd, toml([basic('new'), basic('other', '--name', 'x')]));
  await toolsToBe(client, ['new_echo', 'new_whoami', 'other_echo', 'other_whoami']);
  expect(await pidOf(client, 'new')).toBe(pid);
  expect(await callError(client, 'old_echo')).toMatchObject({ code: 'item_unknown' });
  expect(changes('tools')).toBe(1);
});

it('swaps the namespaces of two servers without a restart', async () => {
  const [x, y] = [basic('x', '--name', 'x'), basic('y', '--name', 'y')];
  const { client, cwd } = await startStdio({ config: toml([x, y]) });
  const pids = [await pidOf(client, 'x'), await pidOf(client, 'y')];
  replaceFile(
    cwd,
    toml([
      { ...x, namespace: 'y' },
      { ...y, namespace: 'x' },
    ]),
  );
  await waitFor(async () => (await pidOf(client, 'y')) === pids[0]);
  expect(await pidOf(client, 'x')).toBe(pids[1]);
  await toolsToBe(client, ['x_echo', 'x_whoami', 'y_echo', 'y_whoami']);
});

it('distinguishes two servers with the same command', async () => {
  const same = ['a', 'b', 'c'].map((name) => basic(name));
  const { client, cwd } = await startStdio({ config: toml(same) });
  const pids = [await pidOf(client, 'a'), await pidOf(client, 'c')];
  expect(new Set([...pids, await pidOf(client, 'b')]).size).toBe(3);
  replaceFile(cwd, toml([same[2]!, same[0]!]));
  await toolsToBe(client, ['c_echo', 'c_whoami', 'a_echo', 'a_whoami']);
  expect([await pidOf(client, 'a'), await pidOf(client, 'c')]).toEqual(pids);
});

describe('a server whose command changed', () => {
  it('is replaced without a failed call, even if the new process starts slowly', async () => {
    const gateway = await startHttp({ config: toml([basic('s', '--name', 'one', '--delay', 30)]) });
    const { client } = await gateway.connect();
    const before = await pidOf(client, 's');
    const load = keepCalling(() => callText(client, 's_echo'));
    replaceFile(gateway.cwd, toml([basic('s', '--name', 'two', '--delay', 30, '--slow-start', 500)]));
    await waitFor(async () => (await pidOf(client, 's')) !== before);
    const calls = load.calls();
    await waitFor(() => load.calls() > calls + 10);
    expect(await load.stop()).toEqual([]);
    expect(JSON.parse(await callText(client, 's_whoami')).name).toBe('two');
    await waitFor(() => !isServerRunning(before));
  });

  it('finishes its calls in the old process', async () => {
    const hang = (name: string) => ({ namespace: 'h', command: server('hang', '--name', name) });
    const { client, cwd } = await startStdio({ config: toml([hang('one')]) });
    const before = Number(await callText(client, 'h_ok'));
    const slow = callText(client, 'h_slow', { ms: 2000, tag: 'old' });
    replaceFile(cwd, toml([hang('two')]));
    await waitFor(async () => Number(await callText(client, 'h_ok')) !== before);
    expect(isServerRunning(before)).toBe(true);
    expect(await slow).toBe('slow old');
    await waitFor(() => !isServerRunning(before));
  });

  it('stays in its old process if the file is changed back in time', async () => {
    const name = `back-${process.pid}`;
    const { client, cwd } = await startStdio({ config: toml([basic('s')]) });
    const before = await pidOf(client, 's');
    replaceFile(cwd, toml([basic('s', '--name', name, '--slow-start', 5000)]));
    await waitFor(() => runningServers(name).length === 1);
    replaceFile(cwd, toml([basic('s')]));
    await waitFor(() => runningServers(name).length === 0);
    expect(await pidOf(client, 's')).toBe(before);
  });

  it('uses the newest of several changes that arrive while it starts', async () => {
    const { client, cwd } = await startStdio({ config: toml([basic('s')]) });
    const names = [1, 2, 3].map((n) => `newest-${process.pid}-${n}`);
    for (const name of names) {
      replaceFile(cwd, toml([basic('s', '--name', name, '--slow-start', 700)]));
      await waitFor(() => runningServers(name).length === 1);
    }
    await waitFor(async () => JSON.parse(await callText(client, 's_whoami')).name === names[2]);
    await waitFor(() => names.slice(0, 2).every((name) => runningServers(name).length === 0));
  });

  it('keeps its activations', async () => {
    const config = (name: string) => toml([basic('s', '--name', name)], { active_toolsets: [] });
    const { client, cwd } = await startStdio({ config: config('one') });
    const lists = { tools_on: ['s_whoami'], tools_off: [], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    replaceFile(cwd, config('two'));
    await waitFor(async () => JSON.parse(await callText(client, 's_whoami')).name === 'two');
    expect(await toolNames(client)).toEqual(['s_whoami']);
  });
});

describe('a server that was removed', () => {
  it('finishes its calls, accepts no new ones, and is stopped', async () => {
    const config = toml([{ namespace: 'h', command: server('hang') }, basic('b')]);
    const gateway = await startStdio({ config });
    const { client } = gateway;
    const pid = Number(await callText(client, 'h_ok'));
    const slow = timed(callText(client, 'h_slow', { ms: 1500, tag: 'last' }));
    await callText(client, 'h_cancelled');
    replaceFile(gateway.cwd, toml([basic('b')]));
    await toolsToBe(client, ['b_echo', 'b_whoami']);
    await waitFor(() => gateway.changes('tools') === 1);
    expect((await call(client, 'h_ok')).isError).toBe(true);
    expect(isServerRunning(pid)).toBe(true);
    expect((await slow).value).toBe('slow last');
    await waitFor(() => !isServerRunning(pid));
  });

  it('is stopped even while it is still starting', async () => {
    const name = `starting-${process.pid}`;
    const config = toml([basic('b')]);
    const { client, cwd } = await startStdio({ config });
    const hung = { namespace: 'h', command: server('hang', '--name', name, '--on', 'initialize') };
    replaceFile(cwd, toml([basic('b'), hung]));
    await waitFor(() => runningServers(name).length === 1);
    replaceFile(cwd, config);
    await waitFor(() => runningServers(name).length === 0);
    expect(await callText(client, 'b_echo')).toBe('{}');
  });

  it('returns with `enabled = true`, and is removed by `enabled = false`', async () => {
    const { client, cwd } = await startStdio({ config: toml([basic('a'), { ...basic('b'), enabled: false }]) });
    expect(await toolNames(client)).toEqual(['a_echo', 'a_whoami']);
    replaceFile(cwd, toml([{ ...basic('a'), enabled: false }, basic('b')]));
    await toolsToBe(client, ['b_echo', 'b_whoami']);
  });
});

it('keeps retrying a changed server that does not start, and applies the next change', async () => {
  const gateway = await startStdio({ config: toml([basic('s')]) });
  await toolNames(gateway.client);
  replaceFile(gateway.cwd, toml([{ namespace: 's', command: server('dead') }]));
  await logged(gateway, 'down: exited with code 3');
  await toolsToBe(gateway.client, []);
  replaceFile(gateway.cwd, toml([basic('s')]));
  await toolsToBe(gateway.client, ['s_echo', 's_whoami']);
});
