/** A single namespace: `X-Namespace` and `/ns/NAMESPACE/mcp`, for any source, at every HTTP door, in both eras. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { isCall, isDenial, waitForLines } from '../support/audit-records.ts';
import { connectSse } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { connectModernHttp, enveloped, mirrored } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { INITIALIZED, initialize, PING, readMessages, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { writeFiles } from '../support/temp.ts';
import { some } from '../support/wide.ts';

const flags = (name: string, tools: string) => [
  ...['--name', name, '--tools', tools, '--resources', `${name}://a,shared://x`, '--templates', `${name}://{id}`],
  ...['--prompts', 'greet', '--instructions', `How to use ${name}.`],
];
const SERVERS = serversToml({
  git: server('basic', ...flags('git', 'status,git_status,echo')),
  'hub.two': server('basic', ...flags('hub', 'status,search')),
  '': server('basic', '--tools', 'bare'),
});

const NAMES = ['status', 'git_status', 'echo'];
const WAYS: [string, Record<string, string>][] = [
  ['/ns/git/mcp', {}],
  ['/mcp', { 'x-namespace': 'git' }],
  ['/ns/git/mcp', { 'x-namespace': 'git' }],
];

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({
    config: `[audit]\nenabled = true\n[toolsets.some]\ntools = ["git.status", "git.echo", "hub.two.*"]\n${SERVERS}`,
  });
});

type Client = Awaited<ReturnType<HttpGateway['connect']>>['client'];

async function names(client: Pick<Client, 'listTools'>): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

async function eachClient(path: string, headers: Record<string, string>) {
  const legacy = await gateway.connect({ path, headers });
  const modern = await connectModernHttp(gateway.origin + path, headers);
  return [legacy.client, modern.client as unknown as Client];
}

const textOf = (result: unknown) => JSON.stringify(result);

// The third way says the same twice.
describe.each(some(WAYS, WAYS.slice(0, 2)))('a single namespace at %s %j', (path, headers) => {
  it('lists everything in the namespace by its own names, without control tools', async () => {
    for (const client of await eachClient(path, headers)) {
      expect(await names(client)).toEqual(NAMES);
      expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['git://a', 'shared://x']);
      expect((await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate)).toEqual([
        'git://{id}',
      ]);
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['greet']);
    }
  });

  it('calls, reads, gets and completes by those names, at the right server', async () => {
    for (const client of await eachClient(path, headers)) {
      for (const name of ['status', 'git_status'])
        expect(textOf(await client.callTool({ name, arguments: { a: 1 } }))).toContain(`\\"tool\\":\\"${name}\\"`);
      for (const uri of ['git://a', 'shared://x', 'git://77'])
        expect(textOf(await client.readResource({ uri }))).toContain(uri);
      expect(textOf(await client.getPrompt({ name: 'greet' }))).toContain('git');
    }
  });

  it('rejects exposed names, names of other namespaces and control tools', async () => {
    for (const client of await eachClient(path, headers)) {
      for (const name of ['git_echo', 'git:echo', 'git.echo', 'hub.two_search', 'search', 'bare', 'toolman_activate']) {
        const answer = client.callTool({ name, arguments: {} });
        expect(await answer.then(textOf, textOf), name).toContain('item_unknown');
      }
      for (const uri of ['git_git://a', 'hub://a', 'hub.two_hub://a', 'git_git://{id}'])
        await expect(client.readResource({ uri }), uri).rejects.toThrow(/There is no resource/);
    }
  });

  it('gives the instructions of its own servers only, and mentions no prefix', async () => {
    const [legacy] = await eachClient(path, headers);
    expect(legacy!.getInstructions()).toBe('# Server "git"\n\nHow to use git.');
  });
});

it('a single namespace works over HTTP+SSE too, and its message endpoint refuses another namespace', async () => {
  const { client } = await connectSse(`${gateway.origin}/ns/hub.two/sse`);
  expect(await names(client)).toEqual(['status', 'search']);
  expect(textOf(await client.callTool({ name: 'search', arguments: {} }))).toContain('search');
  const response = await fetch(`${gateway.origin}/sse`, { headers: { 'x-namespace': 'git' } });
  const { value } = await response.body!.getReader().read();
  expect(Buffer.from(value!).toString()).toMatch(/data: \/messages\?session_id=/);
  const path = /data: (\S+)/.exec(Buffer.from(value!).toString())![1]!;
  expect((await gateway.post(PING, { 'x-namespace': 'hub.two' }, path)).status).toBe(400);
  expect((await gateway.post(PING, { 'x-namespace': 'git' }, path)).status).toBe(202);
  expect((await gateway.post(PING, {}, path)).status).toBe(202);
});

it('a single namespace combined with a toolset exposes what is in both', async () => {
  const { client } = await gateway.connect({ path: '/ns/git/mcp?toolset=some' });
  expect(await names(client)).toEqual(['status', 'echo']);
  const closed = await client.callTool({ name: 'git_status', arguments: {} }).then(textOf, textOf);
  expect(closed).toContain('is not active. It is not in the toolset');
  const modern = await connectModernHttp(`${gateway.origin}/ns/hub.two/mcp?toolset=some`);
  expect(await names(modern.client as unknown as Client)).toEqual(['status', 'search']);
});

it('a client of a single namespace does not affect clients at other addresses', async () => {
  const plain = await gateway.connect();
  const inside = await gateway.connect({ path: '/ns/git/mcp' });
  expect(await names(plain.client)).toEqual(['toolman_activate']);
  expect(await names(inside.client)).toEqual(NAMES);
  const modern = await gateway.connectModern();
  expect(await names(modern.client as unknown as Client)).toEqual(['toolman_activate']);
});

describe('invalid namespace requests', () => {
  const unknown = ['none', 'Git', 'git ', 'hub', 'server-3', 'git, hub.two', '../git', '__proto__'];

  it.each(unknown)('unknown namespace %j: 404', async (name) => {
    for (const [path, headers] of [
      ['/mcp', { 'x-namespace': name }],
      [`/ns/${encodeURIComponent(name)}/mcp`, {}],
    ] as const) {
      // HTTP strips trailing space from a header value.
      if (name.trim() !== name && path === '/mcp') continue;
      const response = await gateway.post(initialize(), headers, path);
      const { error } = (await response.json()) as { error: { message: string } };
      expect([response.status, error.message]).toEqual([404, expect.stringContaining('There is no namespace')]);
      const params = enveloped('{}');
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`;
      expect((await gateway.post(body, { ...headers, ...mirrored('tools/list', '{}') }, path)).status).toBe(404);
    }
    expect(
      (await fetch(`${gateway.origin}/sse`, { headers: { 'x-namespace': name.trim() === name ? name : 'none' } }))
        .status,
    ).toBe(404);
  });

  it.each([
    '/ns//mcp',
    '/ns/%/mcp',
    '/ns/a/b/mcp',
    '/ns/git',
    '/ns/git/',
    '/ns/mcp',
    '/ns/git/metrics',
    '/ns/git/mcp/t/some',
  ])('invalid path %s: 404', async (path) => {
    expect((await gateway.post(initialize(), {}, path)).status).toBe(404);
  });

  it('different namespaces in path and header: 400', async () => {
    const response = await gateway.post(initialize(), { 'x-namespace': 'hub.two' }, '/ns/git/mcp');
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('X-Namespace another')]);
  });

  it('a session opened in one namespace and used in another, by path or header: 400', async () => {
    const session = await startSession(gateway, { headers: { 'x-namespace': 'git' } });
    const list = '{"jsonrpc":"2.0","id":9,"method":"tools/list"}';
    expect((await session.post(list, { 'x-namespace': 'hub.two' })).status).toBe(400);
    expect((await session.post(list, { 'x-namespace': 'none' })).status).toBe(400);
    const elsewhere = await gateway.post(list, { 'mcp-session-id': session.id }, '/ns/hub.two/mcp');
    expect([elsewhere.status, await elsewhere.text()]).toEqual([400, expect.stringContaining('another namespace')]);
    const get = await fetch(`${gateway.origin}/ns/hub.two/mcp`, {
      headers: { 'mcp-session-id': session.id, accept: 'text/event-stream' },
    });
    expect(get.status).toBe(400);
    // The session's own namespace may be repeated in the header, in the path, or omitted.
    for (const [path, headers] of [
      ['/mcp', { 'x-namespace': 'git' }],
      ['/ns/git/mcp', {}],
      ['/mcp', {}],
    ] as const) {
      const [reply] = (await readMessages(
        await gateway.post(list, { ...headers, 'mcp-session-id': session.id }, path),
      )) as [{ result: { tools: { name: string }[] } }];
      expect(reply.result.tools.map(({ name }) => name)).toEqual(NAMES);
    }
  });

  it('a session opened without a namespace and used with one: 400', async () => {
    const session = await startSession(gateway);
    expect((await session.post(PING, { 'x-namespace': 'git' })).status).toBe(400);
    expect((await session.post(PING)).status).toBe(200);
  });
});

it('the audit log records the namespace of a call and of a denial', async () => {
  const { client } = await gateway.connect({ path: '/ns/git/mcp' });
  await client.callTool({ name: 'echo', arguments: { audited: true } });
  await client.callTool({ name: 'audited_nothing', arguments: {} }).catch(() => {});
  const [call] = await waitForLines(gateway.cwd, 1, (line) => isCall(line) && line.tool === 'echo');
  expect(call).toMatchObject({ server: 'git', namespace: 'git', tool: 'echo', name: 'git_echo' });
  const [denial] = await waitForLines(gateway.cwd, 1, (line) => isDenial(line) && line.tool === 'audited_nothing');
  expect(denial).toMatchObject({ namespace: 'git', status: 'item_unknown' });
});

it('a single namespace gets list changes of its own servers only, and resource updates with bare URIs', async () => {
  const config = serversToml({ one: server('changing'), two: server('changing') });
  const own = await startHttp({ config });
  const [one, two] = [await own.connect({ path: '/ns/one/mcp' }), await own.connect({ path: '/ns/two/mcp' })];
  const modern = await connectModernHttp(`${own.origin}/ns/one/mcp`);
  for (const { client } of [one, two, modern]) await client.listTools();
  await one.client.subscribeResource({ uri: 'changing://first' });
  await one.client.callTool({ name: 'add_tool', arguments: { name: 'fresh' } });
  await waitFor(() => one.changes('tools') === 1 && modern.changes('tools') === 1);
  await one.client.callTool({ name: 'touch_resource', arguments: { uri: 'changing://first' } });
  const updated = await waitFor(() => one.notifications.find(({ method }) => method.endsWith('/updated')));
  expect(updated).toMatchObject({ params: { uri: 'changing://first' } });
  // The first notification of the other namespace is the one of its own change.
  await two.client.callTool({ name: 'add_tool', arguments: { name: 'fresh' } });
  await waitFor(() => two.notifications.length > 0);
  expect(two.notifications.map(({ method }) => method)).toEqual(['notifications/tools/list_changed']);
});

it('a reloaded configuration adds new namespaces and makes removed ones unknown', async () => {
  const own = await startHttp({ config: serversToml({ old: server('basic') }) });
  const session = await startSession(own, { headers: { 'x-namespace': 'old' } });
  writeFiles(own.cwd, { 'tools.toml': serversToml({ fresh: server('basic') }) });
  await waitFor(async () => (await own.post(initialize(), { 'x-namespace': 'fresh' })).status === 200);
  expect((await own.post(initialize(), { 'x-namespace': 'old' })).status).toBe(404);
  expect((await session.ask('tools/list')).result).toEqual({ tools: [] });
});

it('a request for a namespace waits for servers that are still starting before it answers 200 or 404', async () => {
  const own = await startHttp({ config: serversToml({ slow: server('basic', '--slow-start', 800) }), ready: false });
  const [known, unknown] = await Promise.all([
    own.post(initialize(), { 'x-namespace': 'slow' }),
    own.post(initialize(), { 'x-namespace': 'none' }),
  ]);
  expect([known.status, unknown.status]).toEqual([200, 404]);
});

it('a single namespace applies flat names and the name limit, and also accepts the servers’ own names', async () => {
  const long = 'a-very-long-name-of-a-tool';
  const flat = await startHttp({
    config: `names = "flat"\nname_limit = 20\ncontrols = []\n${serversToml({
      'a-b': server('basic', '--tools', `get-sum,a_b_get_sum,a.b,${long}`),
    })}`,
  });
  const { client } = await flat.connect({ path: '/ns/a-b/mcp' });
  const shown = await names(client);
  expect(shown).toEqual(['get_sum', 'a_b_get_sum', 'a_b', expect.stringMatching(/^a_very_long_[0-9a-f]{8}$/)]);
  const meant = ['get-sum', 'a_b_get_sum', 'a.b', long];
  for (const [i, name] of [...shown, ...meant].entries()) {
    const answer = textOf(await client.callTool({ name, arguments: {} }));
    expect(answer, name).toContain(`\\"tool\\":\\"${meant[i % 4]}\\"`);
  }
});

it('two servers that share a namespace are both served, and the first one wins a name conflict', async () => {
  const config = [
    'controls = []',
    ...['one', 'two'].map((name) => {
      const command = JSON.stringify(server('basic', '--name', name, '--tools', `both,${name}`));
      return `[[servers]]\nnamespace = "same"\ncommand = ${command}`;
    }),
  ];
  const own = await startHttp({ config: config.join('\n') });
  const { client } = await own.connect({ path: '/ns/same/mcp' });
  expect(await names(client)).toEqual(['both', 'one', 'two']);
  for (const [name, server] of [
    ['both', 'one'],
    ['two', 'two'],
  ] as const)
    expect(textOf(await client.callTool({ name, arguments: {} }))).toContain(`\\"server\\":\\"${server}\\"`);
});

describe('http.require_namespace', () => {
  let own: HttpGateway;
  beforeAll(async () => {
    own = await startHttp({ config: `[http]\nrequire_namespace = true\n${SERVERS}` });
  });

  it('rejects requests without a namespace with 400, in both eras and over HTTP+SSE', async () => {
    const refused = await own.post(initialize());
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('A namespace is needed here'),
    ]);
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${enveloped('{}')}}`;
    const modern = await own.post(body, mirrored('tools/list', '{}'));
    expect([modern.status, await modern.text()]).toEqual([400, expect.stringContaining('A namespace is needed here')]);
    expect((await fetch(`${own.origin}/sse`)).status).toBe(400);
    expect((await own.post(initialize(), { 'x-namespace': '' })).status).toBe(400);
  });

  it('accepts requests with a namespace, and a session need not repeat it', async () => {
    const opened = await own.post(initialize(), { 'x-namespace': 'git' });
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id')! };
    await own.post(INITIALIZED, session);
    expect([opened.status, (await own.post(PING, session)).status]).toEqual([200, 200]);
    const modern = await connectModernHttp(`${own.origin}/ns/git/mcp`);
    expect(await names(modern.client as unknown as Client)).toEqual(NAMES);
    expect((await fetch(`${own.origin}/health`)).status).toBe(200);
    expect((await own.post(PING, {}, join('/ns/git', 'messages'))).status).toBe(400);
  });
});
