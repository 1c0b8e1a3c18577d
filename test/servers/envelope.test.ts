/** What a server is told about its caller. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { mirrored } from '../support/modern.ts';
import { messagesOf, stdioServer } from '../support/modern-servers.ts';
import { type HttpServer, legacyMethods, modernMethods, startServer } from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';
import { packageVersion } from '../support/version.ts';

const key = (name: string) => `io.modelcontextprotocol/${name}`;
const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'example.com/x': [1, { y: 1.0 }],
};
const places = ['modern-http', 'modern-stdio', 'legacy-http', 'legacy-stdio'] as const;
type Place = (typeof places)[number];
const isModern = (place: Place) => place.startsWith('modern');

const folder = tempFolder();
let upstreams: Record<'modern' | 'legacy', HttpServer>;
let gateway: HttpGateway;

/** The tool of each server that answers at once. */
const toolOf = (place: Place) => `${place}_${place.endsWith('http') ? 'echo' : 'pid'}`;

/** The parameters of the requests of one method that a server has received. */
function asked(place: Place, method: string): Record<string, unknown>[] {
  const [era, transport] = place.split('-') as ['modern' | 'legacy', string];
  if (transport === 'http') return upstreams[era].of(method).map(({ message }) => message.params ?? {});
  return messagesOf(join(folder, place))
    .filter((message) => message.method === method)
    .map(({ params }) => params ?? {});
}

const lastMeta = (place: Place) => asked(place, 'tools/call').at(-1)!._meta as Record<string, unknown> | undefined;

beforeAll(async () => {
  const hello = legacyMethods().initialize!;
  const logging = {
    initialize: (...args: Parameters<typeof hello>) => ({
      ...(hello(...args) as object),
      capabilities: { tools: {}, logging: {} },
    }),
    'logging/setLevel': () => ({}),
  };
  upstreams = { modern: await startServer(modernMethods()), legacy: await startServer(legacyMethods(logging)) };
  const chunks = (place: Place) => ['--chunks', join(folder, place)];
  const config = toml(
    [
      { namespace: 'modern-http', url: upstreams.modern.url },
      { namespace: 'modern-stdio', command: stdioServer(...chunks('modern-stdio')) },
      { namespace: 'legacy-http', url: upstreams.legacy.url },
      { namespace: 'legacy-stdio', command: stdioServer('--discover', 'error', ...chunks('legacy-stdio')) },
    ],
    { controls: [] },
  );
  gateway = await startHttp({ config });
});

/** A modern call with exactly this envelope. */
async function callModern(place: Place, meta: Record<string, unknown>): Promise<void> {
  const _meta = {
    [key('protocolVersion')]: '2026-07-28',
    [key('clientInfo')]: { name: 'somebody', version: '9' },
    [key('clientCapabilities')]: {},
    ...meta,
  };
  const params = JSON.stringify({ _meta, name: toolOf(place), arguments: {} });
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  const response = await gateway.post(body, mirrored('tools/call', params));
  expect(response.status, await response.text()).toBe(200);
}

const OURS = {
  [key('protocolVersion')]: '2026-07-28',
  [key('clientInfo')]: { name: 'toolgate', version: packageVersion },
};

describe.each(places)('a server called %s', (place) => {
  it('receives those capabilities of a modern caller that the gateway can pass on, and no others', async () => {
    const passedOn = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } };
    const declared = { ...passedOn, extensions: { 'io.example/x': {} }, experimental: { y: {} }, tasks: {} };
    await callModern(place, { [key('clientCapabilities')]: declared, ...TRACE, progressToken: 'mine' });
    const meta = lastMeta(place)!;
    expect(typeof meta.progressToken).toBe('number');
    const others = { ...TRACE, progressToken: meta.progressToken };
    expect(meta).toEqual(isModern(place) ? { ...OURS, [key('clientCapabilities')]: passedOn, ...others } : others);
  });

  it('receives the capabilities of the current caller with each request', async () => {
    await callModern(place, { [key('clientCapabilities')]: { sampling: {} }, [key('logLevel')]: 'info' });
    await callModern(place, {});
    if (isModern(place)) expect(lastMeta(place)).toEqual({ ...OURS, [key('clientCapabilities')]: {} });
    else expect(lastMeta(place) ?? {}).toEqual({});
  });

  it('receives the capabilities that a legacy caller declared', async () => {
    const declared = { sampling: {}, roots: {}, elicitation: {} };
    const { client } = await gateway.connect({ capabilities: { ...declared, experimental: { y: {} } } });
    await client.callTool({ name: toolOf(place), arguments: {}, _meta: TRACE });
    const own = { ...OURS, [key('clientCapabilities')]: declared, [key('logLevel')]: 'info' };
    expect(lastMeta(place)).toEqual(isModern(place) ? { ...own, ...TRACE } : TRACE);
    const [hello] = asked(place, 'initialize');
    if (hello !== undefined) expect(hello).toMatchObject({ capabilities: {}, clientInfo: OURS[key('clientInfo')] });
  });
});

describe('the log level that a caller asks for', () => {
  const modern = places.filter(isModern);
  const legacy = places.filter((place) => !isModern(place));
  let one: HttpConnection;
  let two: HttpConnection;
  beforeAll(async () => {
    [one, two] = [await gateway.connect(), await gateway.connect()];
  });
  const levels = () => legacy.map((place) => asked(place, 'logging/setLevel').map(({ level }) => level));

  it('is sent to modern servers with each request, per caller', async () => {
    for (const place of modern) {
      await one.client.setLoggingLevel('error');
      await callText(one.client, toolOf(place));
      expect(lastMeta(place)![key('logLevel')]).toBe('error');
      await callText(two.client, toolOf(place));
      expect(lastMeta(place)![key('logLevel')]).toBe('info');
      await callModern(place, { [key('logLevel')]: 'emergency' });
      expect(lastMeta(place)![key('logLevel')]).toBe('emergency');
      await callModern(place, {});
      expect(lastMeta(place)).not.toHaveProperty(key('logLevel'));
    }
  });

  it('is sent to legacy servers once for all callers: the most verbose level, and at least info', async () => {
    // By now callers have asked for info, error and emergency.
    expect(levels()).toEqual([['info'], ['info']]);
    await two.client.setLoggingLevel('warning');
    await callModern('legacy-http', { [key('logLevel')]: 'notice' });
    await two.client.setLoggingLevel('debug');
    await callText(two.client, toolOf('legacy-stdio'));
    expect(levels()).toEqual([
      ['info', 'debug'],
      ['info', 'debug'],
    ]);
    await one.client.setLoggingLevel('debug');
    await one.client.setLoggingLevel('alert');
    await callText(one.client, toolOf('legacy-http'));
    expect(levels()).toEqual([
      ['info', 'debug'],
      ['info', 'debug'],
    ]);
  });

  it('is sent again to a server that was restarted', async () => {
    killServer(Number(await callText(one.client, 'legacy-stdio_pid')));
    await waitFor(() => levels()[1]!.length === 3);
    expect(levels()[1]).toEqual(['info', 'debug', 'debug']);
  });
});
