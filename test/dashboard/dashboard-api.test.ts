/** The API behind the dashboard: every address with what it should answer, what it refuses, and who may use it. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, stringify } from 'smol-toml';
import { beforeAll, describe, expect, it } from 'vitest';
import type * as types from '../../src/dashboard/api-types.ts';
import { ENDPOINTS, type Endpoint } from '../../src/dashboard/endpoints.ts';
import { openAdminStore } from '../../src/store/agents.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const KEY = 'the-key-of-the-operator';
const TOKEN = 'the-token-of-an-agent-0123456789';
const SECRET = 'hunter2-is-the-secret-value';
const CONFIG = `controls = ["equip"]
[agents.ci]
token = "${TOKEN}"
[agent_policies.ci]
allowed_servers = ["a"]
denied_tools = { a = ["whoami"] }
[default_policy]
allow_unknown_tools = true
[security]
dangerous_tools = { a = ["count"] }
${serversToml({ a: server('basic'), desk: server('asking') })}`;

// biome-ignore lint/suspicious/noExplicitAny: what a stream sends is looked at field by field
type Any = any;

let gateway: HttpGateway;
const schemas = new Ajv2020({ strict: false, allErrors: true });

/** The answer of an address, as its type. It is held against the schema of the OpenAPI document. */
async function ask<T>(
  path: string,
  init: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<T> {
  const response = await send(path, init);
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  expect(text).not.toContain(SECRET);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const value = text === '' ? null : (JSON.parse(text) as T);
  const endpoint = endpointAt(path, init.method ?? 'GET');
  if (endpoint?.answer !== undefined && value !== null) {
    const isRight = schemas.validate({ $ref: `api#/components/schemas/${endpoint.answer}` }, value);
    expect(isRight ? [] : schemas.errors, path).toEqual([]);
  }
  return value as T;
}

function send(
  path: string,
  { method = 'GET', body, headers }: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
) {
  return fetch(`${gateway.origin}/admin/${path}`, {
    method,
    headers: {
      ...(headers ?? { authorization: `Bearer ${KEY}` }),
      ...(method !== 'GET' && method !== 'DELETE' && { 'content-type': 'application/json' }),
      ...(method === 'DELETE' && body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined
      ? { body: typeof body === 'string' ? body : JSON.stringify(body) }
      : method === 'POST' || method === 'PUT'
        ? { body: '{}' }
        : {}),
  });
}

function endpointAt(path: string, method: string): Endpoint | undefined {
  const asked = `/${path.split('?')[0]}`.split('/');
  return (ENDPOINTS as readonly Endpoint[]).find((one) => {
    const parts = one.path.split('/');
    return (
      one.method.toUpperCase() === method &&
      parts.length === asked.length &&
      parts.every((part, i) => part === '*' || part === asked[i])
    );
  });
}

async function refusal(
  path: string,
  init: Parameters<typeof send>[1] = {},
): Promise<types.ApiError & { status: number }> {
  const response = await send(path, init);
  const body = (await response.json()) as types.ApiError;
  expect(body).toMatchObject({ success: false, code: expect.any(String), message: expect.any(String) });
  return { ...body, status: response.status };
}

/** The events of a stream, as they come. */
async function* events(response: Response): AsyncGenerator<{ name: string; data: Any }> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body!) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = rest.split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      if (name !== undefined) yield { name, data: JSON.parse(data!) };
    }
  }
}

beforeAll(async () => {
  gateway = await startHttp({
    config: CONFIG,
    files: {
      '.toolgate/tools/orders/tooldock.yaml': 'secrets: [SHOP_TOKEN]\n',
      '.toolgate/tools/orders/good.ts':
        'export default { name: "look", description: "Looks.", inputSchema: { type: "object" }, execute: () => "ok" };\n',
    },
    env: { TOOLGATE_OPERATOR_KEY: KEY, SECRETS_KEY: 'a-key-for-the-secrets-of-this-test' },
  });
  const document = (await (await send('openapi.json')).json()) as object;
  schemas.addSchema({ ...document, $id: 'api' }, 'api');
  await ask('commands/toolsets-equip', { method: 'POST', body: { name: 'all' } });
}, 90_000);

describe('reading', () => {
  it('the overview has servers, sessions, totals and what models see', async () => {
    const overview = await ask<types.Overview>('overview');
    expect(overview.servers.map(({ key, state }) => [key, state])).toEqual(
      expect.arrayContaining([
        ['a', 'up'],
        ['desk', 'up'],
      ]),
    );
    const later = await ask<types.Overview>(`overview?since=${Date.now() + 60_000}`);
    expect(later.ticks).toEqual([]);
    const a = overview.servers.find(({ key }) => key === 'a')!;
    expect(a).toMatchObject({ kind: 'stdio', era: 'legacy', restarts: 0 });
    expect(a.tools).toBeGreaterThan(0);
    expect(a.tokens).toBeGreaterThan(0);
    expect(overview.firstLists.map(({ agent }) => agent)).toEqual(['ci', 'default']);
    expect(overview.catalog.tools).toBeGreaterThan(a.tools);
  });

  it('the session says who looks', async () => {
    const session = await ask<types.SessionInfo>('session');
    expect(session).toMatchObject({
      who: 'operator',
      expires: null,
      features: { audit: true, policy: true, secrets: true },
    });
  });

  it('clients are listed in windows', async () => {
    const { client } = await gateway.connect({ headers: { authorization: `Bearer ${TOKEN}` } });
    const all = await ask<types.SessionPage>('sessions');
    expect(all.sessions[0]).toMatchObject({ agent: 'ci', door: 'http' });
    expect((await ask<types.SessionPage>('sessions?q=nobody')).total).toBe(0);
    await client.close();
  });

  it('the catalog is searched, filtered and counted', async () => {
    const all = await ask<types.CatalogWindow>('catalog?kind=tool&limit=2');
    expect(all.items).toHaveLength(2);
    expect(all.total).toBeGreaterThan(2);
    const next = await ask<types.CatalogWindow>('catalog?kind=tool&limit=2&offset=2');
    expect(next.items[0]!.name).not.toBe(all.items[0]!.name);
    const found = await ask<types.CatalogWindow>('catalog?q=echo');
    expect(found.items[0]!.name).toBe('a_echo');
    const ofServer = await ask<types.CatalogWindow>('catalog?server=desk&limit=500');
    expect(new Set(ofServer.items.map((item) => item.server))).toEqual(new Set(['desk']));
    const ofAgent = await ask<types.CatalogWindow>('catalog?agent=ci&kind=tool&limit=500');
    expect(ofAgent.items.map(({ name }) => name)).not.toContain('a_whoami');
    expect((await refusal('catalog?kind=spoon')).code).toBe('params_invalid');
    expect((await refusal('catalog?limit=-1')).code).toBe('params_invalid');
  });

  it('an item has its definition and its schema', async () => {
    const item = await ask<types.ItemDetail>('catalog/tool/a_echo');
    expect(item.inputSchema).toMatchObject({ type: 'object' });
    expect(item.definition.name).toBe('echo');
    expect((await refusal('catalog/tool/nothing')).status).toBe(404);
    expect((await refusal('catalog/spoon/a_echo')).status).toBe(404);
  });

  it('the matrix shows what each agent may use, and explain why', async () => {
    const matrix = await ask<types.AccessMatrix>('access?limit=500');
    const ci = matrix.agents.indexOf('ci');
    const cell = (name: string) => matrix.rows.find((row) => row.name === name)!.cells[ci];
    expect(cell('a_whoami')).toBe('denied');
    expect(cell('a_count')).toBe('asks');
    expect(['seen', 'allowed']).toContain(cell('a_echo'));
    const [why] = await ask<types.ExplainRow[]>('commands/explain', {
      method: 'POST',
      body: { name: 'a_whoami', agent: 'ci' },
    });
    // The page shows these as they are, although a command has no schema of its own in the document.
    expect(schemas.validate({ $ref: 'api#/components/schemas/ExplainRow' }, why) ? [] : schemas.errors).toEqual([]);
    expect(why).toMatchObject({ allowed: false, category: { effect: expect.any(String), domain: expect.any(String) } });
    expect(why!.findings.at(-1)!.rule).toContain('denied_tools');
  });

  it('another policy is tried, and nothing changes', async () => {
    const { text } = await ask<types.PolicyText>('access/policy');
    // In the language of the file, which is TOML here. JSON is understood too.
    const policy: Any = parse(text);
    expect(policy.agent_policies.ci.allowed_servers).toEqual(['a']);
    policy.agent_policies.ci.denied_tools = { a: ['echo'] };
    const report = await ask<types.DryRunReport>('access/dry-run', {
      method: 'POST',
      body: { text: JSON.stringify(policy) },
    });
    const changes = report.changes
      .filter(({ agent }) => agent === 'ci')
      .map(({ name, before, after }) => [name, before, after]);
    expect(changes).toContainEqual(['a_echo', 'allowed', 'denied']);
    expect(changes).toContainEqual(['a_whoami', 'denied', 'allowed']);
    const inToml = await ask<types.DryRunReport>('access/dry-run', {
      method: 'POST',
      body: { text: stringify(policy) },
    });
    expect(inToml).toEqual(report);
    expect((await ask<types.PolicyText>('access/policy')).text).toBe(text);
    const wrongToml = await refusal('access/dry-run', {
      method: 'POST',
      body: { text: '[agent_policies.ci]\nx = = 1\n' },
    });
    expect(wrongToml).toMatchObject({ status: 400, line: 2 });
    const wrong = await refusal('access/dry-run', { method: 'POST', body: { text: '{\n"agent_policies": 3,,}' } });
    expect(wrong).toMatchObject({ status: 400, line: 2 });
    expect((await refusal('access/dry-run', { method: 'POST', body: { text: '{"servers": {}}' } })).message).toContain(
      'no part of a policy',
    );
    expect((await refusal('access/dry-run', { method: 'POST', body: { text: '{"agent_policies": 3}' } })).status).toBe(
      400,
    );
  });
});

describe('calls as they happen', () => {
  it('a call comes over the stream, and its steps can be read', async () => {
    const ending = new AbortController();
    const response = await fetch(`${gateway.origin}/admin/events?topics=calls,ticks,logs`, {
      headers: { authorization: `Bearer ${KEY}` },
      signal: ending.signal,
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const stream = events(response);
    expect((await stream.next()).value.name).toBe('hello');
    await ask('recording', { method: 'PUT', body: { arguments: true, results: true, minutes: 5 } });
    const { client } = await gateway.connect({ headers: { authorization: `Bearer ${TOKEN}` } });
    await client.callTool({ name: 'a_echo', arguments: { text: 'hello page' } });
    await client.callTool({ name: 'a_whoami', arguments: {} }).catch(() => {});
    // A call that takes long is told twice: while it runs, and when it has ended.
    const ended = new Map<number, types.CallRow>();
    for await (const { name, data } of stream) {
      if (name !== 'calls') continue;
      for (const row of data.calls as types.CallRow[]) if (row.outcome !== 'running') ended.set(row.id, row);
      if (ended.size >= 2) break;
    }
    const [echo, refused] = ended.values();
    expect(echo).toMatchObject({ agent: 'ci', name: 'a_echo', server: 'a', outcome: 'ok', door: 'http' });
    expect(refused).toMatchObject({ agent: 'ci', name: 'a_whoami', outcome: 'refused', error: 'item_unknown' });
    const detail = await ask<types.CallDetail>(`calls/${echo!.id}`);
    expect(detail.steps.map(({ step }) => step).filter((step) => step !== 'wait')).toEqual(['lookup', 'server']);
    expect(detail.arguments).toContain('hello page');
    expect(detail.result).toContain('hello page');
    expect((await ask<types.RecentCalls>('calls')).calls.map(({ id }) => id)).toContain(echo!.id);
    expect((await ask<types.Recording>('recording', { method: 'DELETE' })).by).toBe(null);
    expect((await ask<types.CallDetail>(`calls/${echo!.id}`)).arguments).toBe(null);
    ending.abort();
    await client.close();
    expect((await refusal('calls/999999')).status).toBe(404);
    expect((await refusal('events?topics=spoons')).code).toBe('params_invalid');
    expect(
      (await refusal('recording', { method: 'PUT', body: { arguments: true, results: true, minutes: 9_999 } })).status,
    ).toBe(400);
  });

  it('nothing is looked at while no page is open', async () => {
    const before = (await ask<types.RecentCalls>('calls')).calls[0]?.id ?? 0;
    await waitFor(async () => {
      const { client } = await gateway.connect({ headers: { authorization: `Bearer ${TOKEN}` } });
      await client.callTool({ name: 'a_echo', arguments: { text: 'nobody looks' } });
      await client.close();
      return true;
    });
    expect((await ask<types.RecentCalls>('calls')).calls[0]?.id ?? 0).toBe(before);
  });
});

describe('trying a tool', () => {
  const start = (body: object) => send('tries', { method: 'POST', body });

  async function outcome(body: object) {
    const all = [];
    for await (const event of events(await start(body))) all.push(event);
    return all;
  }

  it('as the operator', async () => {
    const all = await outcome({ kind: 'tool', name: 'a_echo', arguments: { text: 'tried' }, agent: null });
    expect(all.map(({ name }) => name)).toEqual(['started', 'result']);
    expect(JSON.stringify(all.at(-1)!.data.result)).toContain('tried');
  });

  it('as an agent, whose policy decides, and the audit has it', async () => {
    const all = await outcome({ kind: 'tool', name: 'a_whoami', arguments: {}, agent: 'ci' });
    expect(all.at(-1)).toMatchObject({ name: 'failed', data: { code: 'item_unknown' } });
    await waitFor(async () => {
      const { records } = await ask<types.AuditPage>('audit?agent=ci&status=item_unknown');
      return records.some(({ tool }) => tool === 'a_whoami');
    });
  });

  it('a call that a person has to approve waits, is listed, and is denied with a reason', async () => {
    const trying = outcome({ kind: 'tool', name: 'a_count', arguments: {}, agent: 'ci' });
    let id = '';
    await waitFor(async () => {
      const { approvals } = await ask<types.ApprovalsReport>('approvals');
      id = approvals[0]?.id ?? '';
      return id !== '';
    });
    await ask(`approvals/${id}`, { method: 'POST', body: { decision: 'deny', reason: 'not today' } });
    expect((await trying).at(-1)).toMatchObject({
      name: 'failed',
      data: { code: 'not_approved', message: expect.stringContaining('not today') },
    });
  });

  it('a question of the server is answered, and a call is cancelled', async () => {
    const response = await start({ kind: 'tool', name: 'desk_ask', arguments: {}, agent: null });
    let id = '';
    for await (const { name, data } of events(response)) {
      if (name === 'started') id = data.id;
      if (name === 'question') {
        expect(data.params.message).toEqual(expect.any(String));
        await ask(`tries/${id}/answers/${data.question}`, { method: 'POST', body: { action: 'decline' } });
        expect(
          (await refusal(`tries/${id}/answers/${data.question}`, { method: 'POST', body: { action: 'decline' } }))
            .status,
        ).toBe(404);
      }
      if (name === 'result' || name === 'failed') expect(name).toBe('result');
    }
    expect((await refusal(`tries/${id}`, { method: 'DELETE' })).status).toBe(404);
  });

  it('wrong input is refused before anything is called', async () => {
    expect((await refusal('tries', { method: 'POST', body: { kind: 'spoon', name: 'x', agent: null } })).code).toBe(
      'params_invalid',
    );
    expect(
      (await refusal('tries', { method: 'POST', body: { kind: 'tool', name: 'a_echo', agent: 'not a name' } })).code,
    ).toBe('params_invalid');
    expect((await refusal('tries', { method: 'POST', body: 'no json' })).code).toBe('parse');
  });
});

describe('changing', () => {
  it('toolsets are made, equipped for a session, and deleted', async () => {
    const make = { name: 'reading', description: 'Reads', tools: ['a.echo'], place: 'project' };
    await ask('commands/toolsets-create', { method: 'POST', body: make });
    const { client } = await gateway.connect({ headers: { authorization: `Bearer ${TOKEN}` } });
    const [session] = (await ask<types.SessionPage>('sessions')).sessions;
    await ask('commands/toolsets-equip', { method: 'POST', body: { name: 'reading', who: { session: session!.id } } });
    const { toolsets } = await ask<types.ToolsetsReport>('toolsets');
    const row = toolsets.find(({ name }) => name === 'reading')!;
    expect(row).toMatchObject({ editable: true, size: 1, sessions: [{ id: session!.id, agent: 'ci' }] });
    const detail = await ask<types.ToolsetDetail>('toolsets/reading');
    expect(detail.members).toMatchObject([{ name: 'a.echo', exposed: 'a_echo' }]);
    await client.close();
    await ask('commands/toolsets-delete', { method: 'POST', body: { name: 'reading' } });
    expect((await refusal('toolsets/reading')).status).toBe(400);
  });

  it('a token is shown once, works, and ends when it is revoked', async () => {
    const made = await ask<types.NewAgentToken>('agents', {
      method: 'POST',
      body: { name: 'visitor', lifetime: 60_000 },
    });
    const tools = (token: string) =>
      fetch(`${gateway.origin}/tools`, { headers: { authorization: `Bearer ${token}` } });
    expect((await tools(made.token)).status).toBe(200);
    const listed = JSON.stringify(await ask<types.AgentsReport>('agents'));
    expect(listed).toContain('visitor');
    expect(listed).not.toContain(made.token);
    const next = await ask<types.NewAgentToken>('agents/visitor/rotate', { method: 'POST', body: {} });
    expect((await tools(made.token)).status).toBe(401);
    expect((await tools(next.token)).status).toBe(200);
    await ask('agents/visitor', { method: 'DELETE' });
    expect((await tools(next.token)).status).toBe(401);
    expect((await refusal('agents', { method: 'POST', body: { name: 'no name' } })).status).toBe(400);
    expect((await refusal('agents/visitor', { method: 'DELETE' })).status).toBe(400);
    expect((await refusal('agents/ci', { method: 'DELETE' })).message).toContain('configuration');
  });

  it('a secret is set and never shown', async () => {
    const before = await ask<types.SecretsReport>('secrets');
    expect(before.secrets.map(({ name, status }) => [name, status])).toContainEqual(['SHOP_TOKEN', 'missing']);
    await ask('secrets', { method: 'PUT', body: { name: 'SHOP_TOKEN', scope: 'orders', value: SECRET } });
    const after = await ask<types.SecretsReport>('secrets');
    expect(after.secrets.map(({ name, scope, status }) => [name, scope, status])).toContainEqual([
      'SHOP_TOKEN',
      'orders',
      'set',
    ]);
    const detail = await ask<types.NamespaceDetail>('namespaces/orders');
    expect(detail).toMatchObject({ managed: true, languages: ['typescript'], missingSecrets: [] });
    expect(detail.sources.map(({ file }) => file)).toContain('good.ts');
    expect((await ask<types.NamespacesReport>('namespaces')).namespaces.map(({ name }) => name)).toEqual(['orders']);
    await ask('secrets', { method: 'DELETE', body: { name: 'SHOP_TOKEN', scope: 'orders' } });
    expect(
      (await refusal('secrets', { method: 'PUT', body: { name: 'no name', scope: 'global', value: 'x' } })).status,
    ).toBe(400);
    expect((await refusal('namespaces/nobody')).status).toBe(404);
  });

  it('a server is restarted, and everything is read again', async () => {
    const before = (await ask<types.Overview>('overview')).servers.find(({ key }) => key === 'a')!;
    const card = await ask<types.ServerCard>('servers/a/restart', { method: 'POST' });
    expect(card).toMatchObject({ key: 'a', state: 'up' });
    expect(card.since >= before.since).toBe(true);
    expect((await ask<types.ReloadReport>('reload', { method: 'POST' })).reloaded).toBe(true);
    expect((await refusal('servers/nobody/restart', { method: 'POST' })).status).toBe(404);
  });

  it('the audit is searched, summed up and verified', async () => {
    await waitFor(async () => (await ask<types.AuditPage>('audit?kind=call')).records.length > 2);
    const first = await ask<types.AuditPage>('audit?limit=2');
    expect(first.records).toHaveLength(2);
    const second = await ask<types.AuditPage>(`audit?limit=2&before=${encodeURIComponent(first.cursor!)}`);
    expect(second.records[0]!.time <= first.records[1]!.time).toBe(true);
    expect(second.records.map(({ id }) => id)).not.toContain(first.records[1]!.id);
    // Until the newest line that was read, because the gateway goes on to write, and writes what happened a moment later.
    const before = Date.parse(first.records[0]!.time) - 1;
    const until = `until=${encodeURIComponent(new Date(before).toISOString())}`;
    const all = (await ask<types.AuditPage>(`audit?${until}`)).records.map(({ id }) => id);
    const newest = await ask<types.AuditPage>(`audit?${until}&limit=${all.length - 1}`);
    const oldest = await ask<types.AuditPage>(`audit?${until}&before=${encodeURIComponent(newest.cursor!)}`);
    expect([...newest.records, ...oldest.records].map(({ id }) => id)).toEqual(all);
    expect(oldest.cursor).toBe(null);
    expect((await ask<types.AuditPage>('audit?q=agent_added')).records[0]).toMatchObject({
      kind: 'admin',
      act: 'agent_added',
    });
    const usage = await ask<types.UsageReport>('audit/usage?since=1d');
    expect(usage.rows.some(({ name }) => name === 'a_echo')).toBe(true);
    expect(usage.days.some(({ agent, calls }) => agent === 'ci' && calls > 0)).toBe(true);
    expect((await ask<types.VerifyReport>('audit/verify', { method: 'POST' })).problems).toEqual([]);
    expect((await refusal('audit?since=yesterday')).code).toBe('params_invalid');
    expect((await refusal('audit?kind=spoon')).code).toBe('params_invalid');
  });

  it('logins and logs answer', async () => {
    expect((await ask<types.LoginsReport>('logins')).servers).toEqual([]);
    expect((await refusal('logins/a', { method: 'POST' })).status).toBe(404);
    expect((await ask<types.LogsReport>('logs')).lines).toBeInstanceOf(Array);
  });
});

it('no address can be used with the token of an agent, or without one', async () => {
  for (const { method, path } of ENDPOINTS as readonly Endpoint[]) {
    const at = path.slice(1).replace(/\*/g, 'x');
    const asAgent = await send(at, { method: method.toUpperCase(), headers: { authorization: `Bearer ${TOKEN}` } });
    expect([at, asAgent.status]).toEqual([at, 403]);
    const asNobody = await send(at, { method: method.toUpperCase(), headers: {} });
    expect([at, asNobody.status]).toEqual([at, 401]);
    await asAgent.body?.cancel();
    await asNobody.body?.cancel();
  }
});

/** Every address for those who manage the gateway, with the methods that it takes. */
const ADDRESSES: readonly (readonly [method: string, path: string, keyOnly: boolean])[] = [
  ...(ENDPOINTS as readonly Endpoint[]).map(
    ({ method, path, keyOnly }) =>
      [method.toUpperCase(), path.slice(1).replace(/\*/g, 'no-such-thing'), keyOnly === true] as const,
  ),
  ['GET', 'status', false],
  ['GET', 'tools/a_echo', false],
  ['POST', 'tools/a_echo', false],
  ['POST', 'commands/list', false],
  ['GET', 'approvals', false],
  ['POST', 'approvals/no-such-thing', false],
];

const REFUSED = expect.toBeOneOf([401, 403]);

it('each role has exactly its addresses, and a cookie changes things only from the page', async () => {
  const own = await startHttp({
    config: `${CONFIG}
[security.people.ann]
key_sha256 = ["${createHash('sha256').update('the-key-of-ann-0123456789').digest('hex')}"]
[agents.boss]
token = "the-token-of-an-admin-among-agents"
[http]
admins = ["boss"]
`,
    env: { TOOLGATE_OPERATOR_KEY: KEY },
  });
  const admins = openAdminStore(join(own.cwd, '.toolgate'));
  const { token } = await admins.add('eve', '', null);
  const revoked = await admins.add('gone', '', null);
  const enter = async (key: string) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ key }) };
    const entered = await fetch(`${own.origin}/admin/session`, init);
    return entered.headers.get('set-cookie')!.split(';')[0]!;
  };
  const [cookie, over] = [await enter(KEY), await enter(revoked.token)];
  await admins.revoke('gone');
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const statusOf = async (method: string, path: string, headers: Record<string, string>) => {
    const gone = new AbortController();
    const { status } = await fetch(`${own.origin}/admin/${path}`, { method, headers, signal: gone.signal });
    gone.abort();
    return status;
  };
  const outsiders = {
    agent: bearer(TOKEN),
    'an admin among agents': bearer('the-token-of-an-admin-among-agents'),
    'a revoked admin': bearer(revoked.token),
    'a session of a revoked admin': { cookie: over, 'x-toolgate-page': '1' },
    'an invented session': { cookie: `${cookie.split('=')[0]}=x`, 'x-toolgate-page': '1' },
    'an agent that sends the header of the page': { ...bearer(TOKEN), 'x-toolgate-page': '1' },
    'a page of another site': { cookie, 'x-toolgate-page': '1', origin: 'https://evil.example' },
    'a page of another port': { cookie, 'x-toolgate-page': '1', 'sec-fetch-site': 'same-site' },
    'a sandboxed page': { cookie, 'x-toolgate-page': '1', origin: 'null' },
  };
  for (const [method, path, keyOnly] of ADDRESSES) {
    for (const [who, headers] of Object.entries(outsiders))
      expect([who, method, path, await statusOf(method, path, headers)]).toEqual([who, method, path, REFUSED]);
    const isPersons = path.startsWith('approvals');
    const asPerson = await statusOf(method, path, bearer('the-key-of-ann-0123456789'));
    expect(['ann', method, path, [401, 403].includes(asPerson)]).toEqual(['ann', method, path, !isPersons]);
    if (keyOnly)
      for (const headers of [bearer(token), { cookie, 'x-toolgate-page': '1' }])
        expect([path, await statusOf(method, path, headers)]).toEqual([path, REFUSED]);
    if (method !== 'GET')
      expect([method, path, await statusOf(method, path, { cookie })]).toEqual([method, path, REFUSED]);
  }
});

it('a result that is nested more deeply than a stack reaches is shown as far as it goes', async () => {
  const deep = `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`;
  const body = { kind: 'tool', name: 'a_raw', arguments: { json: `{"content":[],"more":${deep}}` }, agent: null };
  const seen: Any[] = [];
  for await (const event of events(await send('tries', { method: 'POST', body }))) seen.push(event);
  expect(seen.at(-1).name).toBe('result');
  expect(JSON.stringify(seen.at(-1).data)).toContain('nested too deeply to be shown');
  expect((await ask<types.SessionInfo>('session')).who).toBe('operator');
});

it('no body makes an address fail unexpectedly', async () => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
  const call = '"kind":"tool","name":"a_echo","agent":null';
  const hostile = [
    '{x',
    '{"ticket":{"toString":1}}',
    '{"__proto__":{"a":1}}',
    'null',
    '[]',
    '1',
    '"x"',
    '"\\ud800"',
    '\0',
  ];
  const bodies = [...hostile, deep, `{"arguments":${deep}}`, `{${call},"arguments":${deep}}`, `{"decision":${deep}}`];
  const own = await startHttp({ config: CONFIG, env: { TOOLGATE_OPERATOR_KEY: KEY } });
  const types = ['application/json', 'application/x-www-form-urlencoded'];
  const open = [
    ['POST', '/login'],
    ['POST', '/admin/session'],
  ] as const;
  const guarded = ADDRESSES.filter(([method, path]) => method !== 'GET' && !path.startsWith('registry')).map(
    ([method, path]) => [method, `/admin/${path}`] as const,
  );
  const more = ['tools/a_echo', 'commands/explain', 'commands/list'].map((path) => ['POST', `/admin/${path}`] as const);
  const wrong: unknown[] = [];
  const requests = [...open, ...guarded, ...more].flatMap(([method, path]) =>
    types.flatMap((type) => bodies.map((body) => ({ method, path, type, body }))),
  );
  // Every address and every body is among a third of them, with other partners after the next commit.
  for (const { method, path, type, body } of onePart(3, requests)) {
    const response = await fetch(own.origin + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': type },
      body,
    });
    const text = await response.text();
    if (response.status === 500 || text.includes('failed unexpectedly'))
      wrong.push([method, path, type, body.slice(0, 60), response.status, text.slice(0, 200)]);
  }
  expect(wrong).toEqual([]);
});

it('the audit says whose admin token it was, and nobody can name somebody else', async () => {
  const own = await startHttp({ config: CONFIG, env: { TOOLGATE_OPERATOR_KEY: KEY } });
  const { token } = await openAdminStore(join(own.cwd, '.toolgate')).add('eve', '', null);
  const send = (path: string, body: object, key: string) =>
    fetch(`${own.origin}/admin/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await send('agents', { name: 'one', lifetime: null }, token);
  await send('agents', { name: 'two', lifetime: null }, KEY);
  const calling = send('tries', { kind: 'tool', name: 'a_count', arguments: {}, agent: 'ci' }, KEY);
  const { id } = await waitFor(async () => {
    const asked = await fetch(`${own.origin}/admin/approvals`, { headers: { authorization: `Bearer ${KEY}` } });
    return ((await asked.json()) as { approvals: { id: string }[] }).approvals[0] ?? null;
  });
  expect((await send(`approvals/${id}`, { decision: 'approve', by: 'ann' }, token)).status).toBe(200);
  expect(await (await calling).text()).toContain('event: result');
  const recorded = async (words: string) => {
    const headers = { authorization: `Bearer ${KEY}` };
    const page = await fetch(`${own.origin}/admin/audit?kind=admin&q=${words}`, { headers });
    return ((await page.json()) as types.AuditPage).records.map(({ act, detail, by }: Any) => ({ act, detail, by }));
  };
  await waitFor(async () => (await recorded('approval_approved')).length === 1);
  // Those without a name are of the file, which does not say who changed it.
  expect((await recorded('agent_added')).filter(({ by }) => by !== undefined)).toEqual([
    { act: 'agent_added', detail: 'one', by: 'eve' },
  ]);
  expect((await recorded('approval_approved'))[0]!.detail).toMatch(/by eve$/);
});
