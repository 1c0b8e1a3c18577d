/** Tools over REST: lists, results, and the status of everything that can go wrong. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { isCall, isDenial, waitForLines } from '../support/audit-records.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { openSocket } from '../support/raw-http.ts';
import { serverEntry } from '../support/server.ts';
import { basic, PYTHON, type RestGateway, raw, startRest, TYPESCRIPT } from './rest.ts';

const everything = join(process.cwd(), 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

let gateway: RestGateway;
beforeAll(async () => {
  gateway = await startRest(
    {
      names: 'join',
      controls: ['activate', 'equip'],
      active_toolsets: ['nothing_*'],
      audit: { enabled: true },
      http: { mcpo: true, allowed_origins: ['https://app.example.com'] },
      limits: { body: '64KiB', depth: 20 },
      toolsets: { few: { description: 'A few', tools: ['up.echo', 'hang.ok'] } },
      servers: {
        up: basic(),
        every: { command: process.execPath, args: [everything] },
        hang: {
          ...serverEntry('hang'),
          timeout: '400ms',
          tools: { ok: { rate: '1/h' } },
        },
        long: { ...serverEntry('hang'), tools: { slow: { concurrency: 1, queue: 0 } } },
        crash: serverEntry('crash'),
        asks: serverEntry('asking-modern'),
        shared: { ...basic(), tools: { echo: { rate: '2/h' } } },
        meta: serverEntry('modern', '--era', 'legacy', '--meta'),
        small: { ...basic('--tools', 'echo'), tools: { echo: { max_arguments: 20 } } },
        odd: basic('--tools', 'a/b,größe,..,x y,constructor,__proto__'),
        gone: { command: process.execPath, args: ['-e', 'process.exit(1)'] },
        ours: { url: 'http://127.0.0.1:1/mcp' },
      },
    },
    {
      '.toolgate/tools/ts/tools.ts': TYPESCRIPT,
      ...(noPython === undefined && { '.toolgate/tools/py/tools.py': PYTHON }),
    },
  );
});

describe('lists', () => {
  it('contain all tools, switched on or not, but no control tools', async () => {
    const { status, json } = await gateway.ask('/tools');
    expect(status).toBe(200);
    const names = json.tools.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['up_echo', 'every_echo', 'ts_add', 'odd_a/b']));
    expect(names.filter((name: string) => /toolman|toolset/.test(name))).toEqual([]);
    expect(json.toolsets).toEqual([{ name: 'few', description: 'A few', tools: ['up_echo', 'hang_ok'] }]);
  });

  it.each([
    ['/ns/up/tools', {}],
    ['/tools', { 'x-namespace': 'up' }],
  ])('of a namespace use its own names without a prefix: %s %j', async (path, headers) => {
    const { json } = await gateway.ask(path, { headers });
    expect(json.map(({ name }: { name: string }) => name)).toEqual(['echo', 'whoami', 'count', 'raw']);
    expect(json[0]).toMatchObject({
      description: 'Gives its arguments back as JSON text',
      inputSchema: { type: 'object' },
    });
  });

  it('of a toolset contain only its tools', async () => {
    for (const asked of [gateway.ask('/tools?toolset=few'), gateway.ask('/tools', { headers: { 'x-toolset': 'few' } })])
      expect((await asked).json.tools.map(({ name }: { name: string }) => name)).toEqual(['up_echo', 'hang_ok']);
    expect((await gateway.ask('/ns/up/tools?toolset=few')).json).toHaveLength(1);
    expect((await gateway.call('/tools/up_count?toolset=few')).status).toBe(403);
    expect((await gateway.call('/tools/up_echo?toolset=few')).status).toBe(200);
    expect((await gateway.ask('/tools?toolset=none')).status).toBe(404);
  });

  it('of namespaces count the tools of each', async () => {
    const { json } = await gateway.ask('/namespaces');
    expect(json).toEqual(
      expect.arrayContaining([
        { name: 'up', tool_count: 4, state: 'up' },
        { name: 'ts', tool_count: 5, state: 'up' },
      ]),
    );
    expect(json).toEqual(
      expect.arrayContaining([{ name: 'gone', tool_count: 0, state: 'down', reason: expect.any(String) }]),
    );
  });

  it('lead to single tools, and the schemas of their arguments', async () => {
    expect((await gateway.ask('/tools/ts_add')).json).toMatchObject({
      name: 'ts_add',
      outputSchema: { type: 'number' },
    });
    expect((await gateway.ask('/ns/ts/tools/add')).json).toMatchObject({ name: 'add' });
    expect((await gateway.ask('/tools/ts:add')).json).toMatchObject({ name: 'ts_add' });
    const { json } = await gateway.ask('/ns/ts/tools/add/schema');
    expect(json).toMatchObject({ type: 'object', properties: { a: { type: 'number' } }, required: ['a'] });
  });

  it('answer HEAD like GET, without a body', async () => {
    for (const path of ['/tools', '/tools/up_echo', '/tools/up_echo/schema', '/namespaces', '/openapi.json', '/docs']) {
      const got = await gateway.ask(path);
      const head = await gateway.ask(path, { method: 'HEAD' });
      expect([path, head.status, head.text]).toEqual([path, 200, '']);
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(got.text)));
    }
  });
});

describe('what a tool returns', () => {
  it.each([
    ['/tools/up_echo', { a: [1, 'ü'] }, { a: [1, 'ü'] }],
    ['/ns/up/tools/echo', {}, {}],
    ['/up/echo', { n: 1 }, { n: 1 }],
    ['/tools/every_echo', { message: 'hi' }, 'Echo: hi'],
    ['/tools/every_get-sum', { a: 2, b: 3 }, 'The sum of 2 and 3 is 5.'],
    ['/tools/ts_add', { a: 2, b: 3 }, 5],
    ['/tools/ts_add', { a: 2 }, 3],
    ['/tools/ts_greet', { person: { name: 'Ada' } }, { text: 'Hello Ada' }],
    [
      '/tools/up_raw',
      raw({
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', data: 'AA==', mimeType: 'image/png' },
        ],
      }),
      ['a', 'data:image/png;base64,AA=='],
    ],
    ['/tools/up_raw', raw({ content: [] }), null],
    ['/tools/odd_a%2Fb', {}, { server: 'basic', tool: 'a/b', arguments: {} }],
    ['/tools/odd_gr%C3%B6%C3%9Fe', {}, { server: 'basic', tool: 'größe', arguments: {} }],
    ['/ns/odd/tools/x%20y', {}, { server: 'basic', tool: 'x y', arguments: {} }],
    ['/ns/odd/tools/__proto__', {}, { server: 'basic', tool: '__proto__', arguments: {} }],
  ])('%s %j', async (path, args, expected) => {
    const { status, json, headers } = await gateway.call(path, args);
    expect([status, json]).toEqual([200, expected]);
    expect(headers.get('content-type')).toBe('application/json');
  });

  it('keeps its numbers unchanged, and arguments keep every byte', async () => {
    const body = '{"n": 9007199254740993, "f": 1.0, "__proto__": {"constructor": 1}}';
    const { text } = await gateway.call('/ns/up/tools/raw', raw(`{"content":[],"structuredContent":${body}}`));
    expect(text).toBe(body);
    const { text: echoed } = await gateway.call(
      '/ns/up/tools/raw',
      `{"json":"{\\"content\\":[]}","__proto__":{"a":1}}`,
    );
    expect(echoed).toBe('null');
    expect((await gateway.call('/ns/odd/tools/constructor', '{"__proto__":{"a":1}}')).text).toContain(
      '"__proto__":{"a":1}',
    );
  });

  it('needs no request body if there are no arguments', async () => {
    expect((await gateway.ask('/tools/up_count', { method: 'POST' })).status).toBe(200);
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    expect((await gateway.ask('/tools/up_count', { method: 'POST', headers })).status).toBe(200);
  });

  it.skipIf(noPython !== undefined)('is the same for Python tools', async () => {
    expect((await gateway.call('/tools/py_add', { a: 2 })).json).toBe(3);
    expect((await gateway.call('/ns/py/tools/greet', { person: { name: 'Ada' } })).json).toEqual({ text: 'Hello Ada' });
    const tree = { name: 'a', children: [{ name: 'b', children: [{ name: 'c' }] }] };
    expect((await gateway.call('/ns/py/tools/count', { tree })).json).toBe(3);
    expect((await gateway.call('/ns/py/tools/nothing')).text).toBe('null');
    expect((await gateway.ask('/ns/py/tools/add')).json.outputSchema).toEqual({ type: 'integer' });
  });
});

describe('what goes wrong', () => {
  const cases: [string, number, string, string, unknown?][] = [
    ['an unknown tool', 404, 'item_unknown', '/tools/nope'],
    ['an unknown tool of a namespace', 404, 'item_unknown', '/ns/ts/tools/nope'],
    ['an unknown namespace', 404, 'path_unknown', '/ns/nope/tools/add'],
    ['an exposed name inside of a namespace', 404, 'item_unknown', '/ns/ts/tools/ts_add'],
    ['a control tool', 404, 'item_unknown', '/tools/toolman_activate'],
    ['a body that is not JSON', 400, 'parse', '/tools/up_echo', '{'],
    ['a body nested too deeply', 400, 'parse', '/tools/up_echo', `{"a":${'['.repeat(30)}${']'.repeat(30)}}`],
    ['arguments that are no object', 422, 'arguments_invalid', '/tools/up_echo', '[1]'],
    ['arguments that do not fit, TypeScript', 422, 'invalid_arguments', '/tools/ts_add', { a: 'x' }],
    ['arguments that do not fit, the SDK', 422, 'tool_error', '/tools/every_get-sum', { a: 'x' }],
    ['an error of a tool, TypeScript', 500, 'internal_error', '/tools/ts_fails'],
    ['a missing package, TypeScript', 500, 'dependency_error', '/tools/ts_needs'],
    ['a tool that takes too long, TypeScript', 504, 'execution_timeout', '/tools/ts_slow'],
    [
      'a result that says it is an error',
      500,
      'tool_error',
      '/tools/up_raw',
      raw({ content: [{ type: 'text', text: 'no' }], isError: true }),
    ],
    ['a server that does not answer', 504, 'source_timeout', '/tools/hang_hang'],
    ['a server that dies', 502, 'source_broken', '/tools/crash_crash'],
    ['a tool that asks back', 424, 'question_unanswered', '/tools/asks_forever'],
    ['too many arguments', 413, 'too_large', '/tools/small_echo', { text: 'x'.repeat(50) }],
    ['too large a body', 413, 'too_large', '/tools/up_echo', { text: 'x'.repeat(70_000) }],
  ];
  const pythonCases: typeof cases = [
    ['arguments that do not fit, Python', 422, 'invalid_arguments', '/tools/py_add', { a: 'x' }],
    ['arguments that are not there, Python', 422, 'invalid_arguments', '/ns/py/tools/add'],
    ['an error of a tool, Python', 500, 'internal_error', '/tools/py_fails'],
  ];
  const answers = async (_: string, status: number, code: string, path: string, args?: unknown) => {
    const reply = await gateway.call(path, args);
    expect([reply.status, reply.json.code], reply.text).toEqual([status, code]);
    expect(reply.json).toMatchObject({ success: false, result: null, message: expect.any(String) });
    expect(reply.json.message).not.toBe('');
  };
  it.each(cases)('%s answers %i, %s', answers);
  it.skipIf(noPython !== undefined).each(pythonCases)('%s answers %i, %s', answers);

  it('an error object of a server answers by its code', async () => {
    const reply = await gateway.call('/tools/up_raw', { json: 'nonsense' });
    expect([502, 504, 500]).toContain(reply.status);
    expect(reply.json.success).toBe(false);
  });

  it('a rate limit answers 429, and says when to retry', async () => {
    expect((await gateway.call('/tools/hang_ok')).status).toBe(200);
    const { status, headers, json } = await gateway.call('/tools/hang_ok');
    expect([status, json.code]).toEqual([429, 'rate_limited']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_000);
  });

  it('a full server answers 503', async () => {
    const first = gateway.call('/tools/long_slow', { ms: 500 });
    await waitFor(async () => (await gateway.call('/tools/long_slow', { ms: 1 })).status === 503);
    expect((await first).status).toBe(200);
  });

  it.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonp', 415],
    ['', 415],
    ['APPLICATION/JSON; charset=utf-8', 200],
  ])('Content-Type: %s answers %i', async (type, status) => {
    expect((await gateway.call('/tools/up_echo', {}, { 'content-type': type })).status).toBe(status);
  });

  it.each([
    ['text/html', 406],
    ['text/event-stream', 406],
    ['text/html, */*;q=0.1', 200],
    ['application/*', 200],
  ])('Accept: %s answers %i', async (accept, status) => {
    expect((await gateway.call('/tools/up_echo', {}, { accept })).status).toBe(status);
    expect((await gateway.ask('/tools', { headers: { accept } })).status).toBe(status);
    expect((await gateway.ask('/openapi.json', { headers: { accept } })).status).toBe(status);
  });

  it('another method answers 405, and lists the allowed ones', async () => {
    const { status, headers } = await gateway.ask('/tools/up_echo', { method: 'PUT' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    expect((await gateway.ask('/tools', { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD');
  });

  it('a page of another origin answers 403, and an allowed origin gets a preflight answer', async () => {
    const of = (origin: string) => ({ origin, 'content-type': 'application/json' });
    expect((await gateway.call('/tools/up_echo', {}, of('https://evil.example'))).status).toBe(403);
    expect((await gateway.call('/tools/up_echo', {}, of('null'))).status).toBe(403);
    const { status, headers } = await gateway.ask('/tools/up_echo', {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example.com', 'access-control-request-method': 'POST' },
    });
    expect([status, headers.get('access-control-allow-methods')]).toEqual([204, 'GET, HEAD, POST']);
    const reply = await gateway.call('/tools/up_echo', {}, of('https://app.example.com'));
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example.com']);
  });

  it('errors also have the form that clients of mcpo expect', async () => {
    const { status, json } = await gateway.call('/ts/add', {});
    expect([status, json.detail.message]).toEqual([422, json.message]);
    expect((await gateway.call('/nope/add', {})).status).toBe(404);
  });
});

describe('a call', () => {
  it('has the request id of its client, in the reply and in the audit', async () => {
    const { headers } = await gateway.call('/tools/up_echo', {}, { 'x-request-id': 'order-66' });
    expect(headers.get('x-request-id')).toBe('order-66');
    const [line] = await waitForLines(gateway.cwd, 1, (one) => isCall(one) && one.request === 'order-66');
    expect(line).toMatchObject({ agent: 'anonymous', door: 'rest', server: 'up', tool: 'echo', status: 'ok' });
    const denied = await gateway.call('/tools/hidden_thing', {}, { 'x-request-id': 'x"y' });
    const id = denied.headers.get('x-request-id');
    expect(id).toMatch(/^\d{9}$/);
    const [denial] = await waitForLines(gateway.cwd, 1, (one) => isDenial(one) && one.request === Number(id));
    expect(denial).toMatchObject({ door: 'rest', tool: 'hidden_thing', status: 'item_unknown' });
  });

  it('is cancelled at its server when its client disconnects', async () => {
    const body = '{"tag":"left alone"}';
    const head = `POST /ns/long/tools/hang HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const socket = openSocket(gateway.origin);
    socket.write(`${head}\r\n\r\n${body}`);
    await callsInFlight(gateway);
    socket.destroy();
    await waitFor(async () => (await gateway.call('/tools/long_cancelled')).text.includes('left alone'));
  });

  it('counts against the same limits and in the same metrics as a call over MCP', async () => {
    const { client } = await gateway.connect({ path: '/ns/shared/mcp' });
    const overMcp = () => client.callTool({ name: 'echo', arguments: {} });
    const overRest = () => gateway.call('/tools/shared_echo');
    expect(await overMcp()).not.toHaveProperty('isError');
    expect((await overRest()).status).toBe(200);
    // The rate of two is used up, one call at each door.
    const refused = await overRest();
    expect([refused.status, refused.json.code]).toEqual([429, 'rate_limited']);
    expect(JSON.stringify(await overMcp())).toContain('rate_limited');
    const { json } = await gateway.ask('/metrics', { headers: { accept: 'application/json' } });
    const { calls } = json as { calls: { server: string; name: string; calls: number; outcomes: { ok: number } }[] };
    expect(calls.find(({ server, name }) => server === 'shared' && name === 'echo')).toMatchObject({
      calls: 2,
      outcomes: { ok: 2 },
    });
  });

  it('passes the trace of its headers to the server, and no malformed one', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const shown = async (headers: Record<string, string>) => (await gateway.call('/tools/meta_meta', {}, headers)).json;
    const { meta } = await shown({ traceparent, tracestate: 'vendor=1' });
    expect(meta).toMatchObject({ traceparent, tracestate: 'vendor=1' });
    expect((await shown({ traceparent: 'from-nowhere', tracestate: 'vendor=1' })).meta).not.toHaveProperty(
      'traceparent',
    );
    expect((await shown({})).meta).not.toHaveProperty('traceparent');
  });
});

it('lists nothing without allowed tools, and nothing without a namespace if one is required', async () => {
  const strict = await startRest({
    http: { require_namespace: true },
    servers: { up: basic() },
    default_policy: {},
    exposed_tools: { up: ['echo'] },
  });
  for (const path of ['/tools', '/tools/up_echo', '/tools/up_echo/schema', '/openapi.json'])
    expect([path, (await strict.ask(path)).status]).toEqual([path, 400]);
  expect((await strict.call('/tools/echo')).json).toMatchObject({ code: 'request_invalid' });
  expect((await strict.call('/tools/echo', {}, { 'x-namespace': 'up' })).status).toBe(200);
  expect((await strict.ask('/ns/up/tools')).json).toHaveLength(1);
  expect((await strict.call('/ns/up/tools/count')).status).toBe(404);
  expect((await strict.ask('/namespaces')).json).toEqual([{ name: 'up', tool_count: 1, state: 'up' }]);
  for (const path of ['/up/echo', '/up/openapi.json', '/up/docs'])
    expect([path, (await strict.call(path)).status]).toEqual([path, 404]);
});
