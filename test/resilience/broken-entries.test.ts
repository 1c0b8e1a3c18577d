/** One bad entry never stops the rest, at the start and at an edit. */
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { runDoctor, runDoctorIn } from '../support/doctor.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { callText, logged, logOf, pidOf, replaceFile, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { server, serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const good = (namespace: string) => ({ namespace, command: server('basic', '--tools', 'whoami', '--name', namespace) });
/** Its program is reached through a variable that nobody sets. */
const unset = { namespace: 'unset', command: 'x', args: ['${NOT_SET_AT_ALL}'] };
const misspelt = { namespace: 'misspelt', comand: 'x' };

const REASONS = {
  unset: 'servers[1].args[0]: the environment variable NOT_SET_AT_ALL is not set',
  misspelt: 'servers[2].comand: unknown key. Did you mean "command"?',
};

it('serves the rest of tools.toml, and says at the start, in doctor and in the list of servers what is wrong', async () => {
  const config = toml([good('a'), unset, misspelt]);
  const gateway = await startStdio({ config });
  expect(await toolNames(gateway.client)).toEqual(['a_whoami']);
  for (const [source, reason] of Object.entries(REASONS)) {
    const line = await logged(gateway, reason);
    expect(line).toMatchObject({ level: 'warn', source });
    expect(line.message).toMatch(/^left out, because its entry has a mistake: tools\.toml:\d+: /);
  }

  const { code, findings: found } = await runDoctor(config);
  expect(code).toBe(2);
  expect(found.filter(({ level }) => level === 'broken')).toMatchObject([
    { about: 'unset', message: expect.stringContaining(REASONS.unset) },
    { about: 'misspelt', message: expect.stringContaining(REASONS.misspelt) },
  ]);
  expect(found).toContainEqual(expect.objectContaining({ level: 'ok', about: 'a' }));

  const list = await runCli(['list', 'servers', '--json'], { config });
  expect(list.code).toBe(0);
  expect(JSON.parse(list.stdout)).toMatchObject([
    { key: 'a', state: 'up' },
    { key: 'unset', state: 'broken', present: false, detail: expect.stringContaining(REASONS.unset) },
    { key: 'misspelt', state: 'broken', present: false, detail: expect.stringContaining(REASONS.misspelt) },
  ]);
});

it('does the same for .mcp.json, where a client reads it in the state of the servers', async () => {
  const mcpServers = {
    a: serverEntry('basic', '--tools', 'whoami'),
    unset: { command: 'x', env: { A: '${NOT_SET}' } },
  };
  const files = { '.mcp.json': JSON.stringify({ mcpServers }) };
  const { client } = await startStdio({ files });
  const { serverStatus } = JSON.parse(await callText(client, 'get-active-toolset'));
  expect(serverStatus).toMatchObject({
    a: { available: true, state: 'up' },
    unset: { available: false, state: 'broken', detail: expect.stringContaining('NOT_SET is not set') },
  });
  expect(await runDoctorIn(tempFolder(files))).toMatchObject({ code: 2 });
});

it('is not ready if the broken server is required', async () => {
  const config = toml([good('a'), { ...unset, required: true }]);
  const gateway = await startHttp({ config, ready: false });
  const { client } = await gateway.connect();
  expect(await toolNames(client)).toEqual(['a_whoami']);
  expect((await fetch(`${gateway.origin}/ready`)).status).toBe(503);
});

it('keeps a server as it is whose entry is broken by an edit, and applies the rest of the edit', async () => {
  const gateway = await startStdio({ config: toml([good('a'), good('b')]) });
  const { client, cwd } = gateway;
  await toolNames(client);
  const pid = await pidOf(client, 'b');
  replaceFile(cwd, toml([good('c'), { ...good('b'), timout: '5s' }, unset]));
  await toolsToBe(client, ['c_whoami', 'b_whoami']);
  expect(await pidOf(client, 'b')).toBe(pid);
  expect(await logged(gateway, 'servers[1].timout: unknown key')).toMatchObject({
    source: 'b',
    message: expect.stringContaining('its entry has a mistake, so it stays as it is: tools.toml:'),
  });
  await logged(gateway, REASONS.unset.replace('[1]', '[2]'));
  // What is broken does not stand in the way of the next edit, and is not told again.
  const before = logOf(gateway).length;
  replaceFile(cwd, toml([good('c'), { ...good('b'), timout: '5s' }, unset, good('d')]));
  await toolsToBe(client, ['c_whoami', 'b_whoami', 'd_whoami']);
  expect(
    logOf(gateway)
      .slice(before)
      .filter(({ level }) => level === 'warn'),
  ).toEqual([]);
  replaceFile(cwd, toml([good('c'), { ...good('b'), timeout: '5s' }]));
  await toolsToBe(client, ['c_whoami', 'b_whoami']);
  expect(await pidOf(client, 'b')).toBe(pid);
});

it('keeps servers whose entries are broken by an edit in their order, which decides who has a contested name', async () => {
  const bare = (name: string) => ({ ...good(''), command: server('basic', '--tools', 'whoami', '--name', name) });
  const gateway = await startStdio({ config: toml([bare('first'), bare('second')]) });
  await toolsToBe(gateway.client, ['whoami']);
  const who = async () => (JSON.parse(await callText(gateway.client, 'whoami')) as { name: string }).name;
  const wrong = (name: string) => ({ ...bare(name), timout: '5s' });
  replaceFile(gateway.cwd, toml([wrong('first'), wrong('second'), good('c')]));
  await toolsToBe(gateway.client, ['whoami', 'c_whoami']);
  expect(await who()).toBe('first');
});

it('refuses to start if a policy or a credential is written wrongly, whatever else is fine', async () => {
  for (const settings of [
    { agents: { a: { tokn: 'x' } } },
    { agent_policies: { a: { allowed_server: ['a'] } } },
    { http: { jwt: { isuer: 'x' } } },
  ]) {
    const { code, stderr } = await runCli(['list'], { config: toml([good('a')], settings) });
    expect(code).toBe(2);
    expect(stderr).toContain('unknown key');
  }
});
