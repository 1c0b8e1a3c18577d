/**
 * Servers that are not there: down, never up, waiting for a secret, starting, written wrongly. Their items are known to
 * exist on every surface, with the server, its state, the reason and what to do. Policy still hides them.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** A server that starts only while the file exists. Otherwise it exits with code 3. */
function gated(file: string, ...args: string[]) {
  return `test -e "${file}" || exit 3; exec ${server('basic', ...args)}`;
}

interface Setting {
  /** Of the configuration. */
  readonly [key: string]: unknown;
}

const GIT = [
  '--name',
  'git',
  '--tools',
  'status,push',
  '--resources',
  'repo://head',
  '--templates',
  'repo://{rev}',
  '--prompts',
  'review',
];

/** `git` is known from an earlier run and down; the others were never up. `up` is. */
async function startAway(settings: Setting = {}, env: Record<string, string> = {}) {
  const folder = tempFolder();
  const gate = join(folder, 'gate');
  const config = toml(
    [
      { namespace: 'up', command: server('basic', '--name', 'up', '--tools', 'echo') },
      { namespace: 'git', command: gated(gate, ...GIT) },
      { namespace: 'never', command: 'no-such-program-anywhere' },
      { namespace: 'weather', command: server('basic'), env: { KEY: '${secret:WEATHER_KEY}' } },
      { namespace: 'slow', command: server('basic', '--start-when', join(folder, 'never-there')) },
      { namespace: 'wrong', command: server('basic'), timout: '5s' },
    ],
    { start_wait: '200ms', controls: [], ...settings },
  );
  const cwd = tempFolder({ 'tools.toml': config });
  writeFileSync(gate, '');
  const first = await startHttp({ cwd, env, ready: false });
  await waitFor(
    async () => (await fetch(`${first.origin}/ns/git/tools`, { headers: agent('insider') })).status === 200,
  );
  await first.stop();
  rmSync(gate);
  const gateway = await startHttp({ cwd, env, ready: false });
  await waitFor(async () => {
    const headers = agent('insider');
    const names = (await (await fetch(`${gateway.origin}/namespaces`, { headers })).json()) as {
      name: string;
      state: string;
    }[];
    const count = (wanted: string) => names.filter(({ state }) => state === wanted).length;
    return count('up') === 1 && count('down') === 2 && count('locked') === 1;
  });
  return { gateway, cwd, bringBack: () => writeFileSync(gate, '') };
}

const agent = (name: string) => ({ 'x-agent-id': name });

/** For each namespace: what every answer about it says. */
const REASONS: readonly (readonly [string, string, RegExp])[] = [
  [
    'git',
    'git_status',
    /server "git" is down \(exited with code 3.*\); it is started again by itself, try again in a moment/,
  ],
  ['never', 'never_x', /server "never" is down \(could not be started.*no-such-program-anywhere/],
  ['weather', 'weather_x', /server "weather" is locked: it waits for the secret WEATHER_KEY: .*toolgate secrets/],
  ['slow', 'slow_x', /slow is still starting \(\d+ s\); try again in a moment/],
  [
    'wrong',
    'wrong_x',
    /server "wrong" is left out, because its entry in the configuration has a mistake \(.*timout.*\); correct it/,
  ],
];

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly servers: { server: string; state: string }[];
}

async function refused(response: Response): Promise<Refusal> {
  expect(response.status).toBe(503);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  const body = (await response.json()) as Refusal;
  expect(body.code).toBe('source_unavailable');
  return body;
}

describe('a server that is not there', () => {
  let plain: HttpGateway;
  beforeAll(async () => {
    ({ gateway: plain } = await startAway());
  });

  it('is told over REST with 503, the reason and a time to try again', async () => {
    const { origin } = plain;
    const own = (name: string) => name.slice(name.indexOf('_') + 1);
    for (const [namespace, name, why] of REASONS) {
      const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
      const answers = [
        await fetch(`${origin}/tools/${name}`),
        await fetch(`${origin}/tools/${name}`, post),
        await fetch(`${origin}/tools/${name}/schema`),
        await fetch(`${origin}/ns/${namespace}/tools`),
        await fetch(`${origin}/ns/${namespace}/openapi.json`),
        await fetch(`${origin}/ns/${namespace}/tools/${own(name)}`),
        await fetch(`${origin}/ns/${namespace}/tools/${own(name)}`, post),
      ];
      for (const answer of answers) {
        const { message, servers } = await refused(answer);
        expect(message).toMatch(why);
        expect(servers.map((one) => one.server)).toEqual([namespace]);
      }
    }
    // A name that a known server did not have is just wrong.
    expect((await fetch(`${origin}/tools/git_nope`)).status).toBe(404);
    expect((await fetch(`${origin}/tools/up_nope`)).status).toBe(404);
  });

  it('has its state and the reason in /namespaces, and is named with the tools of the others in /tools', async () => {
    const states = (await (await fetch(`${plain.origin}/namespaces`)).json()) as object[];
    expect(states).toEqual([
      { name: 'up', tool_count: 1, state: 'up' },
      { name: 'git', tool_count: 0, state: 'down', reason: expect.stringContaining('exited with code 3') },
      { name: 'never', tool_count: 0, state: 'down', reason: expect.stringContaining('no-such-program-anywhere') },
      { name: 'weather', tool_count: 0, state: 'locked', reason: expect.stringContaining('WEATHER_KEY') },
      { name: 'slow', tool_count: 0, state: 'starting', reason: '' },
      { name: 'wrong', tool_count: 0, state: 'broken', reason: expect.stringContaining('timout') },
    ]);
    const { tools, unavailable } = (await (await fetch(`${plain.origin}/tools`)).json()) as {
      tools: unknown[];
      unavailable: { server: string; state: string }[];
    };
    expect(tools).toHaveLength(1);
    expect(unavailable.map(({ server: key, state }) => [key, state])).toEqual([
      ['git', 'down'],
      ['never', 'down'],
      ['weather', 'locked'],
      ['slow', 'starting'],
      ['wrong', 'broken'],
    ]);
  });

  it('is told to MCP clients that call, read, get, activate or look, also inside its namespace', async () => {
    const { gateway } = await startAway({ controls: ['activate'], active_toolsets: ['up_*'] });
    const { client } = await gateway.connect();
    const lists = { tools_on: [], tools_off: [], resources_on: [], resources_off: [] };
    for (const [namespace, name, why] of REASONS) {
      const called = await callError(client, name);
      expect(called).toMatchObject({ code: 'source_unavailable', message: expect.stringMatching(why) });
      const activated = await callError(client, 'toolman_activate', { ...lists, tools_on: [name, 'up_echo'] });
      expect(activated.message).toMatch(/^Nothing was changed\. Not available now: /);
      expect(activated.message).toMatch(why);
      expect((await callError(client, 'toolman_activate', { ...lists, tools_on: [`${namespace}_*`] })).message).toMatch(
        why,
      );
      expect((await callError(client, 'toolman_activate', { show: [`${namespace}_*`] })).message).toMatch(why);
      const inside = await gateway.connect({ path: `/ns/${namespace}/mcp` });
      const own = name.slice(name.indexOf('_') + 1);
      expect((await callError(inside.client, own)).message).toMatch(why);
    }
    const [, , down] = REASONS[0]!;
    await expect(client.readResource({ uri: 'git_repo://head' })).rejects.toThrow(down);
    await expect(client.readResource({ uri: 'git_repo://1a2b' })).rejects.toThrow(down);
    await expect(client.getPrompt({ name: 'git_review' })).rejects.toThrow(down);
    expect((await callError(client, 'git:status')).message).toMatch(down);
    expect((await callError(client, 'git.push')).message).toMatch(down);
  });

  it('is missing in the catalog with its reason, and clients are told once when it is back', async () => {
    const { gateway, bringBack } = await startAway({ controls: ['activate'], active_toolsets: ['*'] });
    const { client, changes } = await gateway.connect();
    const description = async () => (await client.listTools()).tools[0]!.description!;
    const text = await description();
    expect(text).toContain('Missing for now, because the server is not up: git_* (down: exited with code 3');
    expect(text).toContain('weather_* (locked: waits for the secret WEATHER_KEY');
    expect(text).toContain('slow_* (starting)');
    const told = changes('tools');
    bringBack();
    await waitFor(() => changes('tools') > told);
    expect(await description()).not.toContain('git_* (down');
    expect(await toolNames(client)).toEqual(['up_echo', 'git_status', 'git_push']);
    expect(changes('tools')).toBe(told + 1);
  });

  it('can be part of a toolset if its tools are known, with a warning, and is named by discover-all-tools', async () => {
    const { gateway } = await startAway({ controls: ['equip'] });
    const { client } = await gateway.connect();
    const found = JSON.parse(await callText(client, 'discover-all-tools')) as {
      unavailableServers: { serverName: string; state: string }[];
      warnings: string[];
    };
    expect(found.unavailableServers.map(({ serverName }) => serverName)).toEqual([
      'git',
      'never',
      'weather',
      'slow',
      'wrong',
    ]);
    expect(found.warnings[0]).toMatch(/^The tools of "git" are missing: server "git" is down \(exited with code 3/);
    const build = (name: string, tool: string) => ({
      name,
      detail: 'full',
      tools: [{ namespacedName: tool }, { namespacedName: 'up.echo' }],
    });
    const built = JSON.parse(await callText(client, 'build-toolset', build('mine', 'git.status'))) as {
      toolset: { tools: { namespacedName: string; refId: string }[] };
      warnings: string[];
    };
    expect(built.toolset.tools).toMatchObject([{ namespacedName: 'git.status' }, { namespacedName: 'up.echo' }]);
    expect(built.warnings.join()).toMatch(/Server "git" is not available \(down: exited with code 3/);
    for (const [namespace, , why] of REASONS.slice(1)) {
      const refusal = await callError(client, 'build-toolset', build(`with-${namespace}`, `${namespace}.x`));
      expect(refusal.message).toMatch(/^Nothing was saved\. Not available now: /);
      expect(refusal.message).toMatch(why);
    }
  });
});

describe('a policy', () => {
  const http = { trust_agent_header: true };
  const policy = {
    http,
    agent_policies: {
      insider: { tool_overrides: { '*': ['*'] } },
      half: { allowed_servers: ['up', 'git'], tool_overrides: { up: ['*'], git: ['status'] } },
      outsider: { allowed_servers: ['up'], tool_overrides: { up: ['*'] } },
    },
  };
  let gateway: HttpGateway;
  beforeAll(async () => {
    ({ gateway } = await startAway(policy));
  });

  /** Every answer about a tool of a namespace, without the names that were asked for. */
  async function answersAbout({ origin, connect }: HttpGateway, name: string, namespace: string, who: string) {
    const headers = agent(who);
    const { client } = await connect({ headers });
    const blank = (text: string) => text.replaceAll(name, 'NAME').replaceAll(namespace, 'SPACE');
    const rest = async (path: string) => {
      const response = await fetch(origin + path, { headers });
      return blank(`${response.status} ${response.headers.get('retry-after')} ${await response.text()}`);
    };
    const own = name.slice(name.indexOf('_') + 1);
    return [
      blank(JSON.stringify(await callError(client as Client, name))),
      await rest(`/tools/${name}`),
      await rest(`/ns/${namespace}/tools`),
      (await rest(`/ns/${namespace}/tools/${own}`)).replaceAll(own, 'OWN'),
    ];
  }

  it('hides a server that is not there from an agent that may not use it, in the words for one that does not exist', async () => {
    const absent = await answersAbout(gateway, 'zzz_thing', 'zzz', 'outsider');
    for (const namespace of ['git', 'never', 'weather', 'slow', 'wrong'])
      expect(await answersAbout(gateway, `${namespace}_thing`, namespace, 'outsider')).toEqual(absent);
    const seen = await fetch(`${gateway.origin}/namespaces`, { headers: agent('outsider') });
    expect(await seen.json()).toEqual([{ name: 'up', tool_count: 1, state: 'up' }]);
    expect(await (await fetch(`${gateway.origin}/tools`, { headers: agent('outsider') })).json()).not.toHaveProperty(
      'unavailable',
    );
  });

  it('hides an item of a server that is not there, in the words for one that does not exist', async () => {
    const headers = agent('half');
    const { client } = await gateway.connect({ headers });
    expect((await callError(client, 'git_status')).code).toBe('source_unavailable');
    const hidden = await callError(client, 'git_push');
    const unknown = await callError(client, 'git_pusx');
    expect(hidden.code).toBe('item_unknown');
    expect(hidden.message.replace('git_push', 'git_pusx')).toBe(unknown.message);
    const rest = async (name: string) => {
      const response = await fetch(`${gateway.origin}/ns/git/tools/${name}`, { headers });
      return `${response.status} ${(await response.text()).replaceAll(name, 'NAME')}`;
    };
    expect(await rest('push')).toBe(await rest('pusx'));
  });
});

describe('the command line', () => {
  it('names a server that is not there, its state and the reason', async () => {
    const { gateway, cwd } = await startAway({}, {});
    await gateway.stop();
    const run = (...args: string[]) => runCli(args, { cwd });
    for (const [namespace, name, why] of REASONS) {
      if (namespace === 'slow') continue;
      const called = await run('call', name);
      expect(called.code).toBe(2);
      // The server of a known tool is started for the call.
      expect(called.stderr).toMatch(namespace === 'git' ? /Server "git" is not available: exited with code 3/ : why);
    }
  });

  it('saves and shows toolsets with tools of such a server, and lists what is missing', async () => {
    const folder = tempFolder();
    const gate = join(folder, 'gate');
    const config = toml([
      { namespace: 'git', command: gated(gate, ...GIT) },
      { namespace: 'never', command: 'no-such-program-anywhere' },
    ]);
    const cwd = tempFolder({ 'tools.toml': config });
    writeFileSync(gate, '');
    expect((await runCli(['list'], { cwd })).code).toBe(0);
    rmSync(gate);
    const created = await runCli(['toolsets', 'create', 'mine', 'git.status'], { cwd });
    expect(created).toMatchObject({ code: 0, stdout: 'Saved "mine" with 1 tool.\n' });
    const shown = await runCli(['toolsets', 'show', 'mine'], { cwd });
    expect(shown.stdout).toMatch(/✗ git\.status +server "git" is down \(exited with code 3/);
    const refusal = await runCli(['toolsets', 'create', 'other', 'never.x'], { cwd });
    expect(refusal.code).toBe(2);
    expect(refusal.stderr).toMatch(/Nothing was saved: the tool "never\.x" is not known now: server "never" is down/);
    const listed = await runCli(['list'], { cwd });
    // Nothing can be listed at all.
    expect(listed.code).toBe(1);
    expect(listed.stderr).toMatch(/something is missing: server "git" is down \(exited with code 3/);
    const known = await runCli(['explain', 'git_status', '--agent', 'ci'], { cwd });
    expect(known.code).toBe(0);
    expect(known.stdout).toMatch(/It cannot be used now: server "git" is down \(exited with code 3/);
    const explained = await runCli(['explain', 'never_x', '--agent', 'ci'], { cwd });
    expect(explained.code).toBe(2);
    expect(explained.stderr).toMatch(/Whether anything is called "never_x" is not known now: server "never" is down/);
  });
});
