/** mcp-remote, which connects a client that supports only stdio to an HTTP server. */
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { openPipe, type PipeConnection } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { tool } from '../support/tools.ts';
import { onePart } from '../support/wide.ts';
import { configWith } from './clients.ts';

let gateway: HttpGateway;

beforeAll(async () => {
  gateway = await startHttp({ config: configWith('modern') });
});

const TRANSPORTS = [
  ['http-only', '/mcp'],
  ['sse-only', '/sse'],
  // Falls back to the older transport after the answer to its attempt with the newer one.
  ['http-first', '/sse'],
] as const;

describe.each(onePart(TRANSPORTS.length, TRANSPORTS))('mcp-remote, %s', (transport, path) => {
  let connection: PipeConnection;

  beforeAll(async () => {
    const home = tempFolder();
    const args = [tool('mcp-remote', 'dist', 'proxy.js'), gateway.origin + path, '--transport', transport];
    const child = startChild(process.execPath, args, { cwd: home, env: childEnv({ HOME: home }), ending: 'stdin' });
    connection = openPipe(child, { elicitation: {} });
    await connection.connect();
  });

  const heard = (method: string) => connection.notifications.filter((one) => one.method === method);

  it('lists tools, resources and prompts', async () => {
    const { client } = connection;
    expect(client.getServerVersion()?.name).toContain('toolgate');
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('test_simple_text');
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain('changing://first');
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('test_simple_prompt');
  });

  it('calls a tool and gets all progress before the result', async () => {
    const { client } = connection;
    expect(await client.callTool({ name: 'test_image_content' })).toMatchObject({ content: [{ type: 'image' }] });
    // If progress arrives together with the result, the SDK client no longer knows its handler. So the test counts the
    // notifications received.
    const result = await client.callTool({ name: 'test_tool_with_progress' }, undefined, { onprogress: () => {} });
    expect(result).toMatchObject({ content: [{ text: 'done' }] });
    expect(heard('notifications/progress').map(({ params }) => params?.progress)).toEqual([0, 50, 100]);
  });

  it('receives errors', async () => {
    const { client } = connection;
    expect(await client.callTool({ name: 'test_error_handling' })).toMatchObject({
      isError: true,
      content: [{ text: 'It fails on purpose.' }],
    });
    const unknown = client.readResource({ uri: 'test://nothing' });
    await expect(unknown).rejects.toMatchObject({
      code: -32002,
      message: expect.stringContaining('There is no resource'),
    });
  });

  it('forwards elicitation requests, log messages and list changes', async () => {
    const { client } = connection;
    client.setRequestHandler(ElicitRequestSchema, () => ({
      action: 'accept',
      content: { username: 'ada', email: 'a' },
    }));
    const asked = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    expect(JSON.stringify(asked.content)).toContain('ada');
    await client.setLoggingLevel('info');
    await client.callTool({ name: 'test_tool_with_logging' });
    expect(heard('notifications/message')).toHaveLength(3);
    await client.subscribeResource({ uri: 'changing://first' });
    await client.callTool({ name: 'touch_resource', arguments: { uri: 'changing://first' } });
    await waitFor(() => heard('notifications/resources/updated').length === 1);
    await client.callTool({ name: 'add_tool', arguments: { name: `late-${transport}` } });
    await waitFor(() => heard('notifications/tools/list_changed').length === 1);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain(`late-${transport}`);
  });
});
