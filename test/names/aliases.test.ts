/** Aliases of tools and prompts in calls, and their limits: an alias gives no access to an inactive item. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import {
  activated,
  call,
  callText,
  type Door,
  doorsOf,
  enter,
  ownError,
  received,
  refusal,
  toolNames,
  useGateway,
} from '../support/doors.ts';
import { startHttp } from '../support/gateway.ts';
import { enveloped, mirrored } from '../support/modern.ts';
import { modernMethods, startServer, tool } from '../support/plain-http-server.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

const doors = doorsOf('aliases');

const servers = serversToml({
  git: server('basic', '--name', 'git', '--tools', 'status,commit,log.all', '--prompts', 'sum'),
  'my.hub': server('basic', '--name', 'hub', '--tools', 'status,merge,git_status,git:commit', '--prompts', 'sum,only'),
});

type Client = Parameters<typeof callText>[0];

async function reached(client: Client, name: string): Promise<string> {
  const { server, tool } = JSON.parse(await callText(client, name)) as { server: string; tool: string };
  return `${tool} of ${server}`;
}

describe.each(doors)('aliases over %s', (door) => {
  const arrive = useGateway(door, () => ({ config: `active_toolsets = ["*"]\n${servers}` }));

  it('resolve by server and tool, or by tool alone if only one server has it', async () => {
    const { client } = await arrive();
    for (const [alias, expected] of [
      ['git:status', 'status of git'],
      ['git.status', 'status of git'],
      ['git.log.all', 'log.all of git'],
      ['log.all', 'log.all of git'],
      ['my.hub:status', 'status of hub'],
      ['my.hub.merge', 'merge of hub'],
      ['merge', 'merge of hub'],
      ['git:commit', 'commit of git'],
      ['my.hub:git:commit', 'git:commit of hub'],
      ['git_status', 'status of git'],
    ] as const) {
      expect(await reached(client, alias), alias).toBe(expected);
    }
    for (const alias of ['only', 'my.hub:only', 'my.hub.only']) {
      expect(JSON.stringify(await client.getPrompt({ name: alias }))).toContain('only from hub');
    }
  });

  it('pass arguments through unchanged', async () => {
    const { client } = await arrive();
    const answer = JSON.parse(await callText(client, 'git:commit', { name: 'x', n: [1] })) as object;
    expect(answer).toEqual({ server: 'git', tool: 'commit', arguments: { name: 'x', n: [1] } });
  });

  it('that match several tools are refused with the names of all of them', async () => {
    const { client } = await arrive();
    expect(ownError(await call(client, 'status'))).toMatchObject({
      code: 'item_unknown',
      message: 'Several tools are called "status". Use one of these names: "git_status", "my.hub_status".',
    });
    expect((await refusal(client.getPrompt({ name: 'sum' }))).message).toContain('"git_sum", "my.hub_sum"');
  });

  it('that match nothing are refused as unknown', async () => {
    const { client } = await arrive();
    for (const alias of ['git:merge', 'hub:merge', 'git:', ':merge', 'GIT:status', 'git::status', 'only']) {
      expect(ownError(await call(client, alias)).code, alias).toBe('item_unknown');
    }
  });
});

describe.each(doors)('an inactive tool over %s', (door) => {
  const arrive = useGateway(door, () => ({ config: `active_toolsets = ["git_s*", "my.hub_g*"]\n${servers}` }));

  it('is refused under every alias, with the same advice', async () => {
    const { client } = await arrive();
    expect(await toolNames(client)).toEqual(['git_status', 'my.hub_git_status', 'my.hub_git:commit']);
    for (const alias of ['git_commit', 'git:commit', 'git.commit', 'commit']) {
      expect(ownError(await call(client, alias)), alias).toMatchObject({
        code: 'item_inactive',
        message: `The tool "${alias}" is not active. Activate it first: call toolman_activate with "git_commit" in tools_on.`,
      });
    }
    expect(await reached(client, 'status')).toBe('status of git');
    expect(ownError(await call(client, 'my.hub:status')).code).toBe('item_inactive');
  });

  it('is callable once activated, and makes a bare name ambiguous', async () => {
    const { client } = await arrive();
    await activated(client, { tools_on: ['my.hub_status', 'git_commit'] });
    expect(await reached(client, 'my.hub:status')).toBe('status of hub');
    expect(await reached(client, 'git:commit')).toBe('commit of git');
    expect(ownError(await call(client, 'status')).message).toContain('Several tools');
    await activated(client, { tools_off: ['git_status'] });
    expect(await reached(client, 'status')).toBe('status of hub');
    for (const alias of ['git_status', 'git:status']) {
      expect(ownError(await call(client, alias)).code, alias).toBe('item_inactive');
    }
  });

  it('cannot be activated by an alias, only by its full name', async () => {
    const { client } = await arrive();
    const lists = { tools_on: ['git:commit'], tools_off: [], resources_on: [], resources_off: [] };
    expect(ownError(await call(client, 'toolman_activate', lists))).toMatchObject({ code: 'item_unknown' });
  });
});

describe.each(doors)('the aliases of a server that is down over %s', (door) => {
  it('are not taken over by another server', async () => {
    const config = `active_toolsets = ["*"]\n${serversToml({
      git: server('crash', '--name', 'git'),
      other: server('basic', '--tools', 'git_ok,git:ok,git.ok,ok'),
    })}`;
    const guest = await enter(door, { config });
    const { client } = guest;
    expect(await toolNames(client)).toContain('git_ok');
    // The server crashes when this tool is called, and is restarted after a pause.
    await call(client, 'git:crash');
    for (const alias of ['git_ok', 'git:ok', 'git.ok']) {
      const { content } = await call(client, alias);
      expect(content[0]?.text, alias).not.toContain('"server"');
    }
  });
});

describe.each(doors)('a call by alias while servers are still starting over %s', (door) => {
  it('waits for all servers, because they may have the same name', async () => {
    const config = `active_toolsets = ["*"]\n${serversToml({
      quick: server('basic', '--name', 'quick', '--tools', 'run'),
      slow: server('basic', '--name', 'slow', '--tools', 'run,walk', '--slow-start', 800),
    })}`;
    const { client } = await enter(door, { config, ready: false });
    const [bare, named, late] = await Promise.all([
      call(client, 'run'),
      reached(client, 'quick:run'),
      reached(client, 'walk'),
    ]);
    expect(ownError(bare).message).toContain('"quick_run", "slow_run"');
    expect([named, late]).toEqual(['run of quick', 'walk of slow']);
  });
});

describe('a server called by an alias', () => {
  it.each(some<Door>(['http', 'modern http'], ['modern http']))(
    'over HTTP gets its own tool name in body and headers (%s)',
    async (door) => {
      const kept = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };
      const upstream = await startServer(modernMethods({ 'tools/list': () => ({ ...kept, tools: [tool('do-it')] }) }));
      const config = `names = "flat"\ncontrols = []\n[[servers]]\nnamespace = "up-1"\nurl = "${upstream.url}"\n`;
      const { client } = await enter(door, { config });
      for (const name of ['up_1_do_it', 'up-1:do-it', 'up-1.do-it', 'do-it']) {
        await client.callTool({ name, arguments: {} });
        const { headers, message } = upstream.of('tools/call').at(-1)!;
        expect(headers['mcp-name'], name).toBe('do-it');
        expect(message).toMatchObject({ params: { name: 'do-it' } });
      }
      expect(upstream.of('tools/call')).toHaveLength(4);
    },
  );

  it('over stdio gets its own tool name', async () => {
    const log = `${tempFolder()}/log`;
    const config = `controls = []\n${serversToml({ up: server('basic', '--tools', 'x', '--log', log) })}`;
    const { client } = await enter('stdio', { config });
    for (const name of ['up_x', 'up:x', 'up.x', 'x']) await client.callTool({ name, arguments: {} });
    expect(received(log, 'tools/call').map(({ params }) => params?.name)).toEqual(['x', 'x', 'x', 'x']);
  });
});

it('an alias in a request over HTTP without a session must be the same in header and body', async () => {
  const gateway = await startHttp({ config: `controls = []\n${servers}` });
  const post = (inBody: string, inHeader: string) => {
    const params = JSON.stringify({ name: inBody, arguments: {} });
    const headers = { ...mirrored('tools/call', params), 'mcp-name': inHeader };
    return gateway.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${enveloped(params)}}`, headers);
  };
  expect((await post('git:commit', 'git:commit')).status).toBe(200);
  const mixed = await post('git:commit', 'git_commit');
  expect(mixed.status).toBe(400);
  expect(await mixed.text()).toContain('-32020');
});

it('toolgate call accepts aliases, and converts arguments to the types the tool declares', async () => {
  const tools = [{ name: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }];
  const cwd = tempFolder({ 'tools.json': JSON.stringify(tools) });
  const config = serversToml({ up: server('basic', '--raw-tools', `${cwd}/tools.json`) });
  for (const name of ['up:echo', 'echo']) {
    const { code, stdout } = await runCli(['call', name, 'text=5'], { cwd, config });
    expect([code, JSON.parse(stdout)]).toEqual([0, { text: '5' }]);
  }
});
