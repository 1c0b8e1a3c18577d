/**
 * Within a namespace an agent sees only what it is permitted to. A namespace in which it may see nothing does not exist
 * for it.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Kind } from '../../src/catalog/item.ts';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { type Ask, openAsk } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { AGENTS, NAMES, naivelyAllowed, type RandomPolicy, randomPolicy, SERVERS } from '../support/policies.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runs } from '../support/wide.ts';

const cwd = tempFolder();
const mcpServers = Object.fromEntries(
  SERVERS.map((name) => {
    const flags = ['--name', name, '--tools', NAMES.tool.join(), '--resources', NAMES.resource.join()];
    return [
      name,
      serverEntry('basic', ...flags, '--templates', NAMES.template.join(), '--prompts', NAMES.prompt.join()),
    ];
  }),
);
const configOf = (more: object) =>
  configFromValue({ mcpServers, http: { trust_agent_header: true }, ...more }, { cwd, env: {} });

let gateway: Gateway;
let origin: string;

beforeAll(async () => {
  gateway = createGateway(configOf({}));
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
});

const LISTS = {
  tool: ['tools/list', 'tools', 'name'],
  resource: ['resources/list', 'resources', 'uri'],
  template: ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
  prompt: ['prompts/list', 'prompts', 'name'],
} as const satisfies Record<Kind, readonly string[]>;
const KINDS = ['tool', 'resource', 'template', 'prompt'] as const;

async function use(ask: Ask, kind: Kind, name: string): Promise<boolean> {
  const [method, params] =
    kind === 'tool'
      ? ['tools/call', { name, arguments: {} }]
      : kind === 'prompt'
        ? ['prompts/get', { name }]
        : ['resources/read', { uri: name }];
  const { result } = await ask(method as string, params as object);
  return result !== undefined && result.isError !== true;
}

async function check(
  door: 'http' | 'modern http' | 'sse' | 'rest',
  policy: RandomPolicy,
  agent: string,
  server: string,
) {
  const allowed = (kind: Kind) =>
    NAMES[kind].filter((name) => naivelyAllowed(policy, agent, server as (typeof SERVERS)[number], kind, name));
  const headers = { 'x-agent-id': agent, 'x-namespace': server };
  const isThere = KINDS.some((kind) => allowed(kind).length > 0);
  const opened = await fetch(`${origin}/sse`, { headers });
  await opened.body?.cancel();
  expect(opened.status, `${server} for ${agent}`).toBe(isThere ? 200 : 404);
  if (!isThere) return;
  const ask = await openAsk(door, gateway, origin, agent, headers);
  const known = (await (await fetch(`${origin}/namespaces`, { headers })).json()) as { name: string }[];
  expect(known.map(({ name }) => name)).toContain(server);
  for (const kind of door === 'rest' ? (['tool'] as const) : KINDS) {
    const [method, list, identity] = LISTS[kind];
    const { result } = await ask(method);
    const shown = (result![list] as Record<string, string>[]).map((one) => one[identity]);
    // Clients without sessions have seen other lists before, and keep their order.
    expect(shown.toSorted(), `${door}: ${kind}s of ${server} for ${agent}`).toEqual(allowed(kind).toSorted());
    if (kind === 'tool' || kind === 'prompt')
      for (const name of NAMES[kind])
        expect(await use(ask, kind, name), `${door}: ${name} for ${agent}`).toBe(
          allowed(kind).some((one) => one === name),
        );
  }
}

describe('with random policies, exactly the listed items of each namespace can be called', () => {
  it.each(['http', 'modern http', 'sse', 'rest'] as const)('over %s', { timeout: 300_000 }, async (door) => {
    await fc.assert(
      fc.asyncProperty(randomPolicy, fc.constantFrom(...AGENTS), async (policy, agent) => {
        gateway.apply(configOf(policy));
        for (const server of SERVERS) await check(door, policy, agent, server);
      }),
      { numRuns: runs(25) },
    );
  });
});

it('a hidden namespace and an unknown one get the same answer', async () => {
  gateway.apply(configOf({ agent_policies: { alice: { allowed_servers: ['git'] } }, exposed_tools: { git: ['*'] } }));
  const said = async (namespace: string) => {
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-agent-id': 'alice', 'x-namespace': namespace },
      body: '{}',
    });
    return [response.status, (await response.text()).replaceAll(namespace, 'NAME')];
  };
  expect(await said('hub')).toEqual(await said('none'));
});

it('conditions on arguments apply to bare names inside a namespace', async () => {
  gateway.apply(
    configOf({
      default_policy: { allow_unknown_tools: true },
      conditions: [{ tools: ['git.write'], arguments: { path: '/tmp/*' } }],
    }),
  );
  const headers = { 'x-agent-id': 'alice', 'x-namespace': 'git' };
  for (const door of ['http', 'modern http', 'sse'] as const) {
    const ask = await openAsk(door, gateway, origin, 'alice', headers);
    const write = async (path: string) =>
      JSON.stringify(await ask('tools/call', { name: 'write', arguments: { path } }));
    expect(await write('/tmp/x')).not.toContain('policy');
    expect(await write('/etc/x')).toContain('The policy does not allow this call');
  }
});

it('a rate limit counts calls inside and outside a namespace together', async () => {
  const limited = structuredClone(mcpServers) as Record<string, object>;
  limited.git = { ...limited.git, tools: { read: { rate: '1/h' } } };
  gateway.apply(configFromValue({ mcpServers: limited, http: { trust_agent_header: true } }, { cwd, env: {} }));
  const inside = await openAsk('http', gateway, origin, 'bob', { 'x-agent-id': 'bob', 'x-namespace': 'git' });
  const outside = await openAsk('http', gateway, origin, 'bob', { 'x-agent-id': 'bob' });
  expect(await use(inside, 'tool', 'read')).toBe(true);
  const refused = await outside('tools/call', { name: 'git_read', arguments: {} });
  expect(JSON.stringify(refused)).toContain('rate_limited');
});
