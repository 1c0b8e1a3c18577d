/** Toolsets selected by the URL or a header, for clients that ignore list-changed notifications. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { initialize } from '../support/raw-http.ts';
import { equippedNames, THREE, toolsetsToml } from '../support/toolsets.ts';

const SETS = '[toolsets.dev]\ntools = ["git.status", "docker_ps"]\n\n[toolsets.ops]\ntools = ["docker.*"]\n';
const DEV = ['git_status', 'docker_ps'];
const OPS = ['docker_ps', 'docker_images'];

describe.each([
  ['with equip', toolsetsToml(THREE, SETS)],
  ['without controls, where all tools are there otherwise', toolsetsToml(THREE, SETS).replace('["equip"]', '[]')],
])('toolset selected by address, %s', (_, config) => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config });
  });

  it.each([
    ['/mcp/t/dev', {}],
    ['/mcp?toolset=dev', {}],
    ['/mcp', { 'x-toolset': 'dev' }],
  ])('%s %j exposes only that toolset to clients of both eras', async (path, headers) => {
    const legacy = await gateway.connect({ path, headers });
    const modern = await connectModernHttp(gateway.origin + path, headers);
    for (const { client } of [legacy, modern]) {
      expect(await equippedNames(client)).toEqual(DEV);
      expect(JSON.stringify(await client.callTool({ name: 'git_status', arguments: {} }))).not.toContain('isError');
      const closed = await client.callTool({ name: 'linear_create_issue', arguments: {} });
      expect(closed).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('item_inactive') }] });
    }
  });

  it('/sse?toolset=dev exposes only that toolset', async () => {
    const client = new Client({ name: 'old', version: '1' });
    atEnd(() => client.close());
    await client.connect(new SSEClientTransport(new URL(`${gateway.origin}/sse?toolset=dev`)));
    expect(await equippedNames(client)).toEqual(DEV);
  });

  it('does not affect clients of the same agent at other addresses', async () => {
    const [dev, ops] = [await gateway.connect({ path: '/mcp/t/dev' }), await gateway.connect({ path: '/mcp/t/ops' })];
    expect(await equippedNames(dev.client)).toEqual(DEV);
    expect(await equippedNames(ops.client)).toEqual(OPS);
    const modern = await connectModernHttp(`${gateway.origin}/mcp/t/ops`, {});
    expect(await equippedNames(modern.client)).toEqual(OPS);
  });

  it('answers 404 for an unknown toolset', async () => {
    for (const path of ['/mcp/t/none', '/mcp?toolset=none', '/mcp/t/%', '/mcp/t/']) {
      expect((await gateway.post(initialize(), {}, path)).status).toBe(404);
    }
  });
});

it.each([
  ['equip', 'equip-toolset'],
  ['equip', 'unequip-toolset'],
  ['equip', 'list-available-tools'],
  ['activate', 'toolman_activate'],
])(
  'with the control %s a connection that names its toolset has no other tools, and %s says why',
  async (name, tool) => {
    const gateway = await startHttp({ config: toolsetsToml(THREE, SETS).replace('equip', name) });
    for (const options of [{ path: '/mcp/t/dev' }, { headers: { 'x-toolset': 'dev' } }]) {
      const { client } = await gateway.connect(options);
      expect((await client.listTools()).tools.map((one) => one.name)).toEqual(DEV);
      expect(client.getInstructions() ?? '').not.toContain('equip-toolset');
      const refused = await client.callTool({ name: tool, arguments: {} });
      expect(refused).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining('This connection names its toolset') }],
      });
    }
  },
);
