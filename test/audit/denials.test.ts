/** Every denial at every door is a line of the audit that says which rule denied it. A misspelt name has no rule. */
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { type Ask, DOORS, openAsk, TOOLS_ONLY } from '../support/asking.ts';
import { auditOf, isDenial, type Line, readLines } from '../support/audit-records.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const cwd = tempFolder();
const items = ['--tools', 'find,drop', '--resources', 'doc://a,doc://b', '--templates', 'doc://by/{id}'];
const config = configFromValue(
  {
    mcpServers: {
      open: serverEntry('basic', '--name', 'open', ...items, '--prompts', 'p,q'),
      shut: serverEntry('basic', '--name', 'shut', ...items, '--prompts', 'p,q'),
    },
    macros: { both: { description: 'x', steps: [{ id: 'one', tool: 'shut.find', arguments: {} }] } },
    http: { trust_agent_header: true, mcpo: true },
    controls: [],
    exposed_tools: { open: ['*'], macros: ['*'] },
    denied_tools: { open: ['drop'] },
    denied_resources: { open: ['doc://b', 'doc://by/secret'] },
    denied_prompts: { open: ['q'] },
    agent_policies: {
      ann: {
        allowed_servers: ['open', 'macros'],
        conditions: [{ tools: ['open.find'], arguments: { place: '/srv/*' } }],
      },
    },
  },
  { cwd, env: {} },
);

let gateway: Gateway;
let origin: string;

beforeAll(async () => {
  gateway = createGateway(config, { audit: true });
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
});

/** The lines about denials that the action leads to. The last request is a mark, so that all earlier lines are there. */
async function denialsOf(action: () => Promise<unknown>): Promise<Line[]> {
  const before = readLines(auditOf(cwd)).filter(isDenial).length;
  await action();
  const mark = `mark_${before}`;
  await fetch(`${origin}/tools/${mark}`, { method: 'POST', headers: { 'x-agent-id': 'marker' } });
  const lines = await waitFor(() => {
    const found = readLines(auditOf(cwd)).filter(isDenial);
    return found.some(({ tool }) => tool === mark) && found;
  });
  return lines.slice(before).filter(({ tool }) => tool !== mark);
}

const brief = ({ agent, door, method, server, namespace, tool, status, rule }: Line) =>
  JSON.parse(JSON.stringify({ agent, door, method, server, namespace, tool, status, rule })) as Line;

const SERVERS = 'agent_policies.ann.allowed_servers';
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
});

function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'x-agent-id': 'ann',
    ...(init.headers as Record<string, string>),
  };
  return fetch(`${origin}${path}`, { ...init, headers });
}

const post = (path: string, body = '{}') => send(path, { method: 'POST', body });

/** What is asked for, and what the audit says. */
const CALLS: readonly (readonly [string, object, Line])[] = [
  ['tools/call', { name: 'open_drop' }, { server: 'open', tool: 'open_drop', rule: 'denied_tools.open' }],
  ['tools/call', { name: 'shut_find' }, { server: 'shut', tool: 'shut_find', rule: SERVERS }],
  ['tools/call', { name: 'both' }, { server: 'macros', tool: 'both', rule: 'macros.both' }],
  [
    'tools/call',
    { name: 'open_find', arguments: { place: '/etc' } },
    { server: 'open', tool: 'open_find', rule: 'agent_policies.ann.conditions[0]' },
  ],
  ['tools/call', { name: 'open_dorp' }, { tool: 'open_dorp' }],
  ['resources/read', { uri: 'open_doc://b' }, { server: 'open', tool: 'open_doc://b', rule: 'denied_resources.open' }],
  [
    'resources/read',
    { uri: 'open_doc://by/secret' },
    { server: 'open', tool: 'open_doc://by/secret', rule: 'denied_resources.open' },
  ],
  ['resources/read', { uri: 'shut_doc://a' }, { server: 'shut', tool: 'shut_doc://a', rule: SERVERS }],
  ['resources/read', { uri: 'nowhere://x' }, { tool: 'nowhere://x' }],
  ['prompts/get', { name: 'open_q' }, { server: 'open', tool: 'open_q', rule: 'denied_prompts.open' }],
  ['prompts/get', { name: 'shut_p' }, { server: 'shut', tool: 'shut_p', rule: SERVERS }],
  ['prompts/get', { name: 'open_x' }, { tool: 'open_x' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'shut_p' }, argument: { name: 'x', value: '' } },
    { server: 'shut', tool: 'shut_p', rule: SERVERS },
  ],
  [
    'completion/complete',
    { ref: { type: 'ref/resource', uri: 'shut_doc://by/{id}' }, argument: { name: 'id', value: '' } },
    { server: 'shut', tool: 'shut_doc://by/{id}', rule: SERVERS },
  ],
];

const isPlain = ([method, params]: (typeof CALLS)[number]) =>
  method === 'tools/call' && !('name' in params && params.name === 'both');

describe.each(DOORS)('a denial at the door %s', (door) => {
  let ask: Ask;
  beforeAll(async () => {
    ask = await openAsk(door, gateway, origin, 'ann', { 'x-agent-id': 'ann' });
  });

  const calls = TOOLS_ONLY.includes(door) ? CALLS.filter(isPlain) : CALLS;

  it.each(calls)('has the rule that denied %s %j, and none for a misspelt name', async (method, params, expected) => {
    const lines = await denialsOf(() => ask(method, params));
    expect(lines.map(brief)).toEqual([
      { agent: 'ann', door: door.replace('modern ', ''), method, status: expect.any(String), ...expected },
    ]);
  });
});

describe('a denied subscription', () => {
  it.each([
    ['open_doc://b', { server: 'open', rule: 'denied_resources.open' }],
    ['shut_doc://a', { server: 'shut', rule: SERVERS }],
    ['nowhere://x', {}],
  ])('to %s is a line with its rule, in both eras', async (uri, expected) => {
    const old = await openAsk('http', gateway, origin, 'ann', { 'x-agent-id': 'ann' });
    const line = { agent: 'ann', tool: uri, status: 'resource_unknown', ...expected };
    expect((await denialsOf(() => old('resources/subscribe', { uri }))).map(brief)).toEqual([
      { ...line, door: 'http', method: 'resources/subscribe' },
    ]);
    const modern = await openAsk('modern stdio', gateway, origin, 'ann', {});
    const asked = { notifications: { resourceSubscriptions: [uri] } };
    const lines = await denialsOf(async () => {
      void modern('subscriptions/listen', asked);
      // A later answer on the same channel: the subscription has been tried.
      await modern('tools/list');
    });
    expect(lines.map(brief)).toEqual([{ ...line, door: 'stdio', method: 'subscriptions/listen' }]);
  });
});

describe('a request that is refused for its address', () => {
  const closed = { agent: 'ann', server: 'shut', namespace: 'shut', status: 'path_unknown', rule: SERVERS };
  it.each([
    ['a call below a closed namespace', () => post('/ns/shut/tools/find'), { ...closed, door: 'rest' }],
    ['a call at an address of mcpo', () => post('/shut/find'), { ...closed, door: 'rest' }],
    ['a list of a closed namespace', () => send('/ns/shut/tools'), { ...closed, door: 'rest' }],
    ['a definition of a closed namespace', () => send('/ns/shut/tools/find'), { ...closed, door: 'rest' }],
    ['a document of a closed namespace', () => send('/ns/shut/openapi.json'), { ...closed, door: 'rest' }],
    ['initialize at a closed namespace', () => post('/ns/shut/mcp', INITIALIZE), { ...closed, door: 'http' }],
    ['a stream of a closed namespace', () => send('/ns/shut/sse'), { ...closed, door: 'sse' }],
    [
      'a header with a closed namespace',
      () => send('/mcp', { method: 'POST', body: INITIALIZE, headers: { 'x-namespace': 'shut' } }),
      { ...closed, door: 'http' },
    ],
    [
      'a macro that calls something closed',
      () => post('/ns/macros/tools/both'),
      {
        agent: 'ann',
        door: 'rest',
        server: 'macros',
        namespace: 'macros',
        status: 'path_unknown',
        rule: 'macros.both',
      },
    ],
    [
      'a namespace that does not exist',
      () => post('/ns/shot/tools/find'),
      { agent: 'ann', door: 'rest', namespace: 'shot', status: 'path_unknown' },
    ],
    [
      'a toolset that does not exist',
      () => post('/mcp/t/none', INITIALIZE),
      { agent: 'ann', door: 'http', status: 'path_unknown' },
    ],
  ])('%s is a line', async (_, action, expected) => {
    const lines = await denialsOf(action);
    expect(lines.map(brief)).toEqual([expected]);
    expect(lines[0]!.detail).toMatch(/^(GET|POST) \//);
  });
});

describe('a request for a definition over REST', () => {
  it.each(['/tools/open_drop', '/tools/open_drop/schema', '/ns/open/tools/drop'])('at %s is a line', async (path) => {
    const [line, ...more] = await denialsOf(() => send(path));
    expect(more).toEqual([]);
    expect(line).toMatchObject({
      agent: 'ann',
      door: 'rest',
      method: 'tools/list',
      server: 'open',
      status: 'item_unknown',
      rule: 'denied_tools.open',
    });
  });
});

describe('what is refused before anybody is known', () => {
  it.each([
    ['a host', { host: 'evil.example' }, 'http.allowed_hosts'],
    ['an origin', { origin: 'https://evil.example' }, 'http.allowed_origins'],
  ])('%s that is not allowed is a line', async (_, headers, rule) => {
    const { request } = await import('node:http');
    const lines = await denialsOf(
      () =>
        new Promise<void>((resolve, reject) => {
          const sent = request(`${origin}/tools`, { headers }, (response) => {
            response.resume().on('end', resolve);
          });
          sent.on('error', reject).end();
        }),
    );
    expect(lines).toMatchObject([{ door: 'http', status: 'forbidden', rule, remote: '127.0.0.1' }]);
  });
});

it('says the same to the agent for a closed and an unknown item', async () => {
  const ask = await openAsk('modern http', gateway, origin, 'ann', { 'x-agent-id': 'ann' });
  const closed = JSON.stringify((await ask('tools/call', { name: 'shut_find' })).result);
  const unknown = JSON.stringify((await ask('tools/call', { name: 'shot_find' })).result);
  expect(closed.replaceAll('shut_find', 'shot_find')).toBe(unknown);
  expect(closed).not.toContain('agent_policies');
});
