/**
 * Errors of a modern server about how the gateway asked (-32020, -32021, -32022). The gateway handles them; callers
 * only get the gateway's own message.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { enveloped, type ModernConnection, mirrored } from '../support/modern.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import {
  Fault,
  type HttpServer,
  type Methods,
  modernMethods,
  startServer,
  text,
  tool,
} from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, toml } from '../support/running-gateway.ts';

const kept = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };

/** A server that requires a header for `where`. The name of the header may change without notice. */
async function startStrict() {
  const server = await startServer({});
  const strict = Object.assign(server, { header: 'Region' });
  const schema = () => tool('go', { where: { type: 'string', 'x-mcp-header': strict.header } });
  server.methods = modernMethods({
    'tools/list': () => ({ ...kept, tools: [schema()] }),
    'tools/call': ({ arguments: args }, { headers }) => {
      const { where } = args as { where: string };
      if (headers[`mcp-param-${strict.header.toLowerCase()}`] !== where)
        throw new Fault(-32_020, `Mcp-Param-${strict.header} does not match`);
      return { resultType: 'complete', ...text(`went to ${where}`) };
    },
  });
  return strict;
}

const refusing = (code: number, data?: unknown): Methods => {
  const refuse = () => {
    throw new Fault(code, 'in the words of the server', { data });
  };
  const lists = {
    'prompts/list': () => ({ ...kept, prompts: [{ name: 'one' }] }),
    'resources/list': () => ({ ...kept, resources: [{ uri: 'up://one', name: 'one' }] }),
    'resources/templates/list': () => ({ ...kept, resourceTemplates: [] }),
  };
  const calls = { 'tools/call': refuse, 'prompts/get': refuse, 'resources/read': refuse };
  return modernMethods({ ...lists, ...calls }, { tools: {}, prompts: {}, resources: {} });
};

const servers = {
  header: () => startServer(refusing(-32_020)),
  capability: () => startServer(refusing(-32_021, { requiredCapabilities: { elicitation: { form: {} } } })),
  extension: () => startServer(refusing(-32_021, { requiredCapabilities: { 'io.example/x': {} } })),
  vague: () => startServer(refusing(-32_021)),
  revision: () => startServer(refusing(-32_022, { supported: ['2026-07-28'], requested: '2026-07-28' })),
};
type Name = keyof typeof servers;
const names = Object.keys(servers) as Name[];

const started = new Map<string, HttpServer>();
let strict: Awaited<ReturnType<typeof startStrict>>;
let gateway: HttpGateway;
let legacy: HttpConnection;
let modern: ModernConnection;

beforeAll(async () => {
  strict = await startStrict();
  for (const name of names) started.set(name, await servers[name]());
  const entries = [...started].map(([namespace, { url }]) => ({ namespace, url }));
  gateway = await startHttp({ config: toml([...entries, { namespace: 'strict', url: strict.url }], { controls: [] }) });
  [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
});

describe('headers that a server rejects', () => {
  it('are rebuilt from a fresh tool list, and the call is retried once', async () => {
    expect(await callText(legacy.client, 'strict_go', { where: 'eu' })).toBe('went to eu');
    const asked = () => [strict.of('tools/list').length, strict.of('tools/call').length];
    expect(asked()).toEqual([1, 1]);
    strict.header = 'Zone';
    expect(await callText(legacy.client, 'strict_go', { where: 'us' })).toBe('went to us');
    expect(asked()).toEqual([2, 3]);
    // The SDK client drops its list on every change notification, even one that is older than the list.
    await waitFor(() => modern.changes('tools') === 1);
    await modern.client.listTools();
    strict.header = 'Area';
    const many = ['a', 'b', 'c'].map((where) => modern.client.callTool({ name: 'strict_go', arguments: { where } }));
    expect((await Promise.all(many)).map(textOf)).toEqual(['went to a', 'went to b', 'went to c']);
    const before = asked();
    expect(await callText(legacy.client, 'strict_go', { where: 'eu' })).toBe('went to eu');
    expect(asked()).toEqual([before[0], before[1]! + 1]);
  });

  it('cause one error if the server keeps rejecting them', async () => {
    const upstream = started.get('header')!;
    const message = 'Server "header" does not accept the headers of the request. Try again later.';
    for (const { client } of [legacy, modern]) {
      upstream.seen.length = 0;
      expect(errorOf(await client.callTool({ name: 'header_echo' }))).toMatchObject({ code: 'source_broken', message });
      expect(upstream.seen.map(({ message }) => message.method)).toEqual(['tools/call', 'tools/list', 'tools/call']);
    }
    upstream.seen.length = 0;
    await expect(legacy.client.getPrompt({ name: 'header_one' })).rejects.toThrow(message);
    expect(upstream.seen.map(({ message }) => message.method)).toEqual(['prompts/get']);
  });
});

describe('a capability that the caller lacks', () => {
  it('is reported to a modern caller with the code of the revision', async () => {
    const params = enveloped('{"name":"capability_echo"}');
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;
    const response = await gateway.post(body, mirrored('tools/call', params));
    expect(response.status).toBe(400);
    const { id, error } = (await response.json()) as {
      id: number;
      error: { code: number; message: string; data: object };
    };
    expect(id).toBe(7);
    expect(error).toMatchObject({
      code: -32_021,
      message: 'Server "capability" needs a client that declares "elicitation".',
      data: { requiredCapabilities: { elicitation: {} } },
    });
  });

  it('is explained to a legacy caller', async () => {
    expect(await callError(legacy.client, 'capability_echo')).toMatchObject({
      code: 'capability_missing',
      message: 'Server "capability" needs a client that declares "elicitation".',
    });
    expect(await callError(legacy.client, 'vague_echo')).toMatchObject({
      message: 'Server "vague" needs a client that declares a capability.',
    });
  });

  it('is reported as a server error if the gateway cannot pass it on', async () => {
    for (const { client } of [legacy, modern])
      expect(errorOf(await client.callTool({ name: 'extension_echo' }))).toMatchObject({
        code: 'source_broken',
        message: 'Server "extension" needs a client that declares "io.example/x", which Toolgate cannot pass on.',
      });
  });
});

it('retries only once on a server that rejects the revision it agreed to', async () => {
  const upstream = started.get('revision')!;
  upstream.seen.length = 0;
  expect(await callError(legacy.client, 'revision_echo')).toMatchObject({
    code: 'source_broken',
    message: 'Server "revision" does not accept the protocol revision that it agreed to. Try again later.',
  });
  expect(upstream.of('tools/call')).toHaveLength(2);
  expect(upstream.of('server/discover')).toHaveLength(1);
});

it.each(names)('never forwards the error code or message of the server (%s)', async (name) => {
  for (const [era, { client }] of [
    ['legacy', legacy],
    ['modern', modern],
  ] as const) {
    const failures = await Promise.all([
      client.callTool({ name: `${name}_echo` }).catch((error: unknown) => error),
      client.getPrompt({ name: `${name}_one` }).catch((error: unknown) => error),
      client.readResource({ uri: `${name}_up://one` }).catch((error: unknown) => error),
    ]);
    for (const failure of failures) {
      const said = failure instanceof Error ? failure.message : JSON.stringify(failure);
      expect(said, era).not.toContain('in the words of the server');
      // The gateway's own message for something that the caller can fix.
      const isOurs = (name === 'capability' || name === 'vague') && said.includes('needs a client that declares');
      const codes = isOurs ? [-32_020, -32_022] : [-32_020, -32_021, -32_022];
      expect(codes, `${era} ${said}`).not.toContain((failure as { code?: number }).code);
    }
  }
});
