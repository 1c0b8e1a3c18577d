/** Servers that are known from an earlier run are listed while they start; servers that are not are told as starting. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type GatewayOptions, startHttp, startStdio } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, replaceFile, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** A server that is up as soon as `file` exists. What it offers is in `tools`, a file too. */
function held(file: string, settings: Record<string, unknown> = {}) {
  return {
    namespace: 'slow',
    command: server('basic', '--tools', 'echo,old,new', '--raw-tools', `${file}.tools`, '--start-when', file),
    ...settings,
  };
}

const quick = { namespace: 'quick', command: server('basic', '--tools', 'echo') };

function offer(file: string, names: readonly string[]): void {
  const tools = names.map((name) => ({ name, description: `Tool ${name}`, inputSchema: { type: 'object' } }));
  writeFileSync(`${file}.tools`, JSON.stringify(tools));
}

/** Runs a gateway once, so that what its servers offer is known. Then the slow server waits again. */
async function knownFrom(config: string, file: string, servers: number): Promise<string> {
  writeFileSync(file, '');
  const first = await startStdio({ config });
  await toolNames(first.client);
  const offers = join(first.cwd, '.toolgate', 'offers');
  await waitFor(
    () => existsSync(offers) && readdirSync(offers).filter((name) => name.endsWith('.json')).length === servers,
  );
  await first.stop();
  rmSync(file);
  rmSync(`${file}.waiting`);
  return first.cwd;
}

it('lists a known server at once, lets calls wait for it, and tells what has changed', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo', 'old']);
  const cwd = await knownFrom(toml([held(file), quick]), file, 2);
  offer(file, ['echo', 'new']);

  const gateway = await startStdio({ cwd });
  const { client } = gateway;
  expect(await toolNames(client)).toEqual(['slow_echo', 'slow_old', 'quick_echo']);
  expect(await callText(client, 'quick_echo', { a: 1 })).toBe('{"a":1}');
  const kept = callText(client, 'slow_echo', { b: 2 });
  const gone = callError(client, 'slow_old');
  const added = callText(client, 'slow_new', { c: 3 });
  await arrived(`${file}.waiting`, '\n', 1);
  writeFileSync(file, '');
  expect(await kept).toBe('{"b":2}');
  expect(JSON.parse(await added)).toMatchObject({ tool: 'new', arguments: { c: 3 } });
  expect(await gone).toMatchObject({
    code: 'item_unknown',
    message: expect.stringContaining('Server "slow" no longer has the tool "old"'),
  });
  await waitFor(() => gateway.changes('tools') === 1);
  expect(await toolNames(client)).toEqual(['slow_echo', 'quick_echo', 'slow_new']);
});

it('lets a call of a new name wait for a server without a namespace, which may have it', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['old']);
  const bare = held(file, { namespace: '' });
  const cwd = await knownFrom(toml([bare, quick], { controls: ['activate'], call_through: 'always' }), file, 2);
  offer(file, ['new']);

  const { client } = await startStdio({ cwd });
  expect(await toolNames(client)).toContain('old');
  const added = callText(client, 'new', { a: 1 });
  const through = callText(client, 'toolman_call', { name: 'new', arguments: { b: 2 } });
  const wrong = callError(client, 'never');
  const given = { signal: AbortSignal.timeout(50) };
  await expect(client.callTool({ name: 'given_up', arguments: {} }, undefined, given)).rejects.toThrow();
  await arrived(`${file}.waiting`, '\n', 1);
  writeFileSync(file, '');
  expect(JSON.parse(await added)).toMatchObject({ tool: 'new', arguments: { a: 1 } });
  expect(JSON.parse(await through)).toMatchObject({ tool: 'new', arguments: { b: 2 } });
  expect((await wrong).message).toMatch(/^There is no tool "never"\. /);
});

it('says which known server did not start, and why, to a call that waited for it', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const cwd = await knownFrom(toml([held(file, { start_timeout: '5s' })]), file, 1);
  replaceFile(cwd, toml([held(file, { start_timeout: '500ms' })]));
  const { client } = await startStdio({ cwd });
  expect(await toolNames(client)).toEqual(['slow_echo']);
  expect(await callError(client, 'slow_echo')).toMatchObject({
    code: 'source_unavailable',
    message: expect.stringMatching(/^Server "slow" is not available: did not start and list its tools within 0\.5 s/),
  });
  await waitFor(async () => (await toolNames(client)).length === 0);
});

it('does not let a call wait for a server longer than the call may take', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const cwd = await knownFrom(toml([held(file, { total_timeout: '300ms' })]), file, 1);
  const { client } = await startStdio({ cwd });
  expect(await callError(client, 'slow_echo')).toMatchObject({
    code: 'source_unavailable',
    message: expect.stringContaining('it is still starting after 0.3 s'),
  });
});

it('is not ready while a required server that is known is starting', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const cwd = await knownFrom(toml([held(file, { required: true })]), file, 1);
  const gateway = await startHttp({ cwd, ready: false });
  const { client } = await gateway.connect();
  expect(await toolNames(client)).toEqual(['slow_echo']);
  expect((await fetch(`${gateway.origin}/ready`)).status).toBe(503);
  writeFileSync(file, '');
  await waitFor(async () => (await fetch(`${gateway.origin}/ready`)).ok);
});

it('does not show what another command of the same name offered', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const cwd = await knownFrom(toml([held(file)]), file, 1);
  const changed = { namespace: 'slow', command: `${held(file).command} --name other` };
  replaceFile(cwd, toml([changed], { start_wait: '100ms' }));
  const { client } = await startStdio({ cwd });
  expect(await toolNames(client)).toEqual([]);
});

/** Connected when `start_wait` is over, so that calls no longer wait for every server. */
async function firstStart(config: string, options: GatewayOptions = {}) {
  const gateway = await startStdio({ ...options, files: { 'tools.toml': config } });
  await toolNames(gateway.client);
  return gateway;
}

const activation = (names: string[]) => ({ tools_on: names, tools_off: [], resources_on: [], resources_off: [] });

it('names a server that was never seen as starting, and suggests no tool of another', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const config = toml([held(file), quick], { start_wait: '1s', controls: ['activate'], active_toolsets: [] });
  const { client } = await firstStart(config);
  const starting = /slow is still starting \(\d+ s\); try again in a moment/;
  const [call, byAlias] = await Promise.all([callError(client, 'slow_echo'), callError(client, 'slow:echo')]);
  expect(call).toMatchObject({ code: 'source_unavailable', message: expect.stringMatching(starting) });
  expect(call.message).toMatch(/^The tool "slow_echo" cannot be used now: /);
  expect(call.message).not.toContain('quick_echo');
  expect(byAlias.message).toMatch(starting);
  // A name that cannot be one of the starting server is just wrong.
  expect((await callError(client, 'quik_echo')).message).toContain('Did you mean "quick_echo"?');
  const activate = await callError(client, 'toolman_activate', activation(['slow_*', 'quick_echo']));
  expect(activate.message).toMatch(starting);
  expect(activate.message).not.toContain('quick_echo');
  // An activation waits a moment for the server that it names.
  const waiting = callText(client, 'toolman_activate', activation(['slow_*']));
  writeFileSync(file, '');
  expect(await waiting).toContain('ctivated');
  expect(await callText(client, 'slow_echo', { a: 1 })).toBe('{"a":1}');
});

it('does not tell an agent of a starting server that its policy hides', async () => {
  const file = join(tempFolder(), 'go');
  offer(file, ['echo']);
  const policy = {
    agent_policies: { shut: { allowed_servers: ['quick'] }, open: { allowed_servers: ['slow', 'quick'] } },
    default_policy: { allow_unknown_tools: true },
  };
  const config = toml([held(file), quick], { start_wait: '200ms', controls: [], ...policy });
  const shut = await firstStart(config, { args: ['--agent', 'shut'] });
  const open = await firstStart(config, { args: ['--agent', 'open'] });
  expect((await callError(open.client, 'slow_echo')).message).toContain('slow is still starting');
  expect((await callError(shut.client, 'slow_echo')).message).toMatch(/^There is no tool "slow_echo"\. /);
});
