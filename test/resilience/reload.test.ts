/** Hot reload: however the file is replaced, only the actual changes take effect. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callText, logged, pidOf, replaceFile, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const entry = (namespace: string) => ({
  namespace,
  command: server('basic', '--tools', 'whoami', '--name', namespace),
});
const only = (...namespaces: string[]) => toml(namespaces.map(entry));

describe('a new configuration is applied', () => {
  it('that was written in place', async () => {
    const { client, cwd } = await startStdio({ config: only('a') });
    const pid = await pidOf(client, 'a');
    writeFileSync(join(cwd, 'tools.toml'), only('a', 'b'));
    await toolsToBe(client, ['a_whoami', 'b_whoami']);
    expect(await pidOf(client, 'a')).toBe(pid);
  });

  it('that was written slowly, in pieces', async () => {
    const { client, cwd } = await startStdio({ config: only('a') });
    const text = only('a', 'b');
    const pieces = Array.from({ length: 10 }, (_, n) => text.slice(0, Math.ceil((text.length * (n + 1)) / 10)));
    for (const piece of pieces) {
      writeFileSync(join(cwd, 'tools.toml'), piece);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await toolsToBe(client, ['a_whoami', 'b_whoami']);
  });

  it('that was repeatedly renamed over the old one', async () => {
    const { client, cwd } = await startStdio({ config: only('a') });
    for (const names of [['a', 'b'], ['b'], ['b', 'a']]) {
      replaceFile(cwd, only(...names));
      await toolsToBe(
        client,
        names.map((name) => `${name}_whoami`),
      );
    }
  });

  it('that was deleted and written again, while the old one stays in use', async () => {
    const { client, cwd } = await startStdio({ config: only('a') });
    rmSync(join(cwd, 'tools.toml'));
    expect(await toolNames(client)).toEqual(['a_whoami']);
    writeFileSync(join(cwd, 'tools.toml'), only('b'));
    await toolsToBe(client, ['b_whoami']);
  });

  it('behind a symlink that is swapped as in Kubernetes', async () => {
    const folder = tempFolder({
      '..v1/tools.toml': only('a'),
      '..v2/tools.toml': only('b'),
      '..v3/tools.toml': only('c'),
    });
    symlinkSync('..v1', join(folder, '..data'));
    symlinkSync('..data/tools.toml', join(folder, 'tools.toml'));
    const { client } = await startStdio({ cwd: folder });
    expect(await toolNames(client)).toEqual(['a_whoami']);
    for (const [version, name] of [
      ['..v2', 'b'],
      ['..v3', 'c'],
    ] as const) {
      symlinkSync(version, join(folder, '..next'));
      renameSync(join(folder, '..next'), join(folder, '..data'));
      await toolsToBe(client, [`${name}_whoami`]);
    }
  });

  it('in another folder, named with --config', async () => {
    const folder = tempFolder({ 'conf/mine.toml': only('a') });
    const gateway = await startHttp({ cwd: tempFolder(), args: ['--config', join(folder, 'conf/mine.toml')] });
    const { client } = await gateway.connect();
    expect(await toolNames(client)).toEqual(['a_whoami']);
    replaceFile(join(folder, 'conf'), only('a', 'b'), 'mine.toml');
    await toolsToBe(client, ['a_whoami', 'b_whoami']);
  });

  it('on SIGHUP, without restarting what did not change', async () => {
    const gateway = await startStdio({ config: only('a'), args: ['--log-level', 'info'] });
    const pid = await pidOf(gateway.client, 'a');
    gateway.signal('SIGHUP');
    await logged(gateway, 'configuration: nothing changed');
    expect(await pidOf(gateway.client, 'a')).toBe(pid);
  });
});

describe('an invalid configuration changes nothing and says why', () => {
  it.each([
    ['broken TOML', 'servers = [', 'tools.toml:1'],
    ['an unknown key', '\n\n[[servers]]\nnamspace = "x"\ncommand = "y"\n', 'tools.toml:4'],
    ['a wrong value', 'active_toolsets = ["*"]\nstart_wait = "soon"\n', 'tools.toml:2'],
    [
      'a wrong server and a wrong setting',
      `${only('b')}\n[[servers]]\nnamespace = "c"\n[http]\nport = "x"\n`,
      'tools.toml:',
    ],
    ['a variable that is not set', '[[servers]]\ncommand = "x"\nargs = ["${NOT_SET_AT_ALL}"]\n', 'NOT_SET_AT_ALL'],
    ['bytes', '\u0000\u0001', 'tools.toml'],
  ])('%s', async (_, text, where) => {
    const gateway = await startStdio({ config: only('a') });
    const pid = await pidOf(gateway.client, 'a');
    replaceFile(gateway.cwd, text);
    const line = await logged(gateway, 'kept the configuration in force, the new one is refused');
    expect(line.level).toBe('error');
    expect(line.message).toContain(where);
    expect(await toolNames(gateway.client)).toEqual(['a_whoami']);
    expect(await pidOf(gateway.client, 'a')).toBe(pid);
    expect(gateway.changes('tools')).toBe(0);
    replaceFile(gateway.cwd, only('a', 'b'));
    await toolsToBe(gateway.client, ['a_whoami', 'b_whoami']);
    expect(await pidOf(gateway.client, 'a')).toBe(pid);
  });

  it('a folder instead of the file', async () => {
    const gateway = await startStdio({ config: only('a') });
    rmSync(join(gateway.cwd, 'tools.toml'));
    mkdirSync(join(gateway.cwd, 'tools.toml'));
    gateway.signal('SIGHUP');
    await logged(gateway, 'is a folder. Name the file in it');
    expect(await toolNames(gateway.client)).toEqual(['a_whoami']);
  });
});

describe('a changed setting', () => {
  it('takes effect with the next call and restarts nothing', async () => {
    const hang = { namespace: 'h', command: server('hang'), timeout: '5m', description: 'old' };
    const gateway = await startStdio({ config: toml([hang]), args: ['--log-level', 'info'] });
    const pid = await callText(gateway.client, 'h_ok');
    replaceFile(
      gateway.cwd,
      toml([{ ...hang, timeout: '300ms', description: 'new', required: true, idle_stop: '1h' }]),
    );
    await logged(gateway, 'configuration: applied');
    expect(await gateway.client.callTool({ name: 'h_hang' })).toMatchObject({ isError: true });
    expect(await callText(gateway.client, 'h_ok')).toBe(pid);
    expect(gateway.changes('tools')).toBe(0);
  });

  it('active_toolsets shows at once, with one notification to each affected client', async () => {
    const config = (patterns: string[]) => toml([entry('a'), entry('b')], { active_toolsets: patterns, controls: [] });
    const gateway = await startHttp({ config: config(['a_*']) });
    const [one, two] = [await gateway.connect(), await gateway.connect()];
    expect(await toolNames(one.client)).toEqual(['a_whoami']);
    const pid = await pidOf(one.client, 'a');
    replaceFile(gateway.cwd, config(['*']));
    for (const { client, changes } of [one, two]) {
      await waitFor(() => changes('tools') === 1);
      expect(await toolNames(client)).toEqual(['a_whoami', 'b_whoami']);
    }
    expect(await pidOf(one.client, 'a')).toBe(pid);
    replaceFile(gateway.cwd, config(['b_*']));
    await waitFor(() => one.changes('tools') === 2);
    expect(await toolNames(one.client)).toEqual(['b_whoami']);
  });

  it('active_toolsets keeps what a client has activated or deactivated itself', async () => {
    const config = (patterns: string[]) => toml([entry('a'), entry('b'), entry('c')], { active_toolsets: patterns });
    const { client, cwd } = await startStdio({ config: config(['a_*']) });
    const lists = { tools_on: ['b_whoami'], tools_off: ['a_whoami'], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    expect(await toolNames(client)).toEqual(['b_whoami']);
    replaceFile(cwd, config(['a_*', 'c_*']));
    await toolsToBe(client, ['b_whoami', 'c_whoami']);
  });

  it('controls adds and removes the control tools', async () => {
    const config = (controls: string[]) => toml([entry('a')], { controls });
    const gateway = await startStdio({ config: config(['activate']) });
    const names = async () => (await gateway.client.listTools()).tools.map(({ name }) => name);
    expect(await names()).toEqual(['toolman_activate', 'a_whoami']);
    replaceFile(gateway.cwd, config([]));
    await waitFor(() => gateway.changes('tools') === 1);
    expect(await names()).toEqual(['a_whoami']);
    replaceFile(gateway.cwd, config(['activate']));
    await waitFor(() => gateway.changes('tools') === 2);
    expect(await names()).toEqual(['toolman_activate', 'a_whoami']);
  });
});
