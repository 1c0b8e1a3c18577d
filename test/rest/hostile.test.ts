/** Hostile paths, names, headers and bodies: each is refused with the status that docs/rest.md gives, and never with 500. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { root } from '../support/docs-page.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { readRows } from '../support/markdown.ts';
import { anyText } from '../support/random.ts';
import { exchange, type RawReply } from '../support/raw-http.ts';
import { tempFolder } from '../support/temp.ts';
import { runs } from '../support/wide.ts';
import { basic } from './rest.ts';

let origin: string;
let failures = 0;
beforeAll(async () => {
  const gateway = createGateway(
    configFromValue(
      {
        servers: { up: basic(), odd: basic('--tools', '..,a/b,%2e,schema') },
        http: { mcpo: true },
        limits: { body: '8KiB', depth: 16 },
      },
      { cwd: tempFolder(), env: {} },
    ),
  );
  atEnd(() => gateway.close());
  gateway.events.listen((name) => {
    if (name === 'failure') failures++;
  });
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
});

afterAll(() => {
  expect(failures).toBe(0);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}

/** Sends a raw request, so that no library normalizes the path. */
function ask({ method = 'POST', path = '/tools/up_echo', headers, body = '{}' }: Asked): Promise<RawReply> {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...(headers ?? ['Content-Type: application/json']),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  return exchange(origin, Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]));
}

async function expectStatus(asked: Asked, status: number): Promise<void> {
  const reply = await ask(asked);
  expect(reply.status, `${JSON.stringify(asked)} ${reply.body}`).toBe(status);
  if (status === 400 && reply.body === '') return; // Node itself rejects what is not HTTP
  if (status < 400 || status === 431) return;
  const body = JSON.parse(reply.body);
  expect(body.code ?? body.error.data.code).toEqual(expect.any(String));
}

describe('paths', () => {
  const NOWHERE = [
    '/tools/../metrics',
    '/tools/up_echo/../../metrics',
    '/tools/%2e%2e/metrics',
    '/tools/..%2fmetrics',
    '/tools/%2fetc%2fpasswd',
    '/tools/..%5c..%5cwindows',
    '/tools/%00',
    '/tools/up_echo%00',
    '/tools/up_echo%20',
    '/tools/%75p_echo%0d%0aX-Evil:%201',
    '/tools//up_echo',
    '/tools/',
    '//tools/up_echo',
    '/tools/up_echo/',
    '/tools/up_echo;x=1',
    '/tools/up_echo/schema/x',
    '/tools/%',
    '/tools/%zz',
    '/tools/%ff%fe',
    '/tools/%c0%ae%c0%ae',
    '/tools/%ed%a0%80',
    '/tools/%e2%80%aeohce_pu',
    '/tools/UP_ECHO',
    '/tools/constructor',
    '/tools/__proto__',
    '/tools/toString',
    '/tools/hasOwnProperty',
    '/tools/${7*7}',
    '/tools/{{7*7}}',
    '/tools/<script>alert(1)</script>',
    "/tools/'%20or%201=1--",
    '/tools/up_echo%3Ftoolset=x',
    '/Tools/up_echo',
    '/ns/../tools/up_echo',
    '/ns/%2e%2e/tools/echo',
    '/ns/up%2ftools/tools/echo',
    '/ns//tools/echo',
    '/ns/__proto__/tools/echo',
    '/ns/constructor/tools/echo',
    '/ns/up%00/tools/echo',
    '/ns/UP/tools/echo',
    '/ns/up/tools/up_echo',
    '/ns/up/../odd/tools/a%2Fb',
    '/ns/%/tools/echo',
    `/tools/${'a'.repeat(8_000)}`,
    `/tools/${'%41'.repeat(2_000)}`,
    `/${'ns/'.repeat(2_000)}tools`,
    '/__proto__/echo',
    '/constructor/toString',
    '/up/%2e%2e',
    '/up/%',
    '/%/echo',
  ];

  it.each(NOWHERE)('%s leads nowhere', (path) => expectStatus({ path: Buffer.from(path).toString('latin1') }, 404));

  it.each([
    ['/odd/..', 200],
    ['/ns/odd/tools/%2e%2e', 200],
    ['/ns/odd/tools/..', 200],
    ['/ns/odd/tools/%252e', 200],
    ['/ns/odd/tools/schema', 200],
    ['/tools/odd_a%2Fb', 200],
    ['/tools/odd_a/b', 404],
    ['/%75p/echo', 200],
  ])('%s means the tool of that name, and nothing else: %i', (path, status) => expectStatus({ path }, status));

  it.each([
    'http://127.0.0.1/tools/up_echo',
    'http://evil.example/tools/up_echo',
    '*',
    'tools/up_echo',
    '/tools/up_echo#x',
    '\\tools\\up_echo',
    '/tools/\xffp_echo',
  ])('%s is an unknown path', async (path) => {
    expect([400, 404]).toContain((await ask({ path })).status);
  });

  it.each(['/tools/up_echo?access_token=x', '/tools?access_token=', '/openapi.json?a=1&access_token=x'])(
    '%s: tokens do not stand in addresses',
    (path) => expectStatus({ path, method: path.includes('up_echo') ? 'POST' : 'GET', body: '' }, 400),
  );
});

describe('headers', () => {
  const JSON_TYPE = 'Content-Type: application/json';
  const cases: [string, number, string[]][] = [
    ['two namespaces', 404, [JSON_TYPE, 'X-Namespace: up', 'X-Namespace: odd']],
    ['the same one twice', 404, [JSON_TYPE, 'X-Namespace: up', 'X-Namespace: up']],
    ['a namespace that is a path', 404, [JSON_TYPE, 'X-Namespace: ../up']],
    ['a namespace of the prototype', 404, [JSON_TYPE, 'X-Namespace: __proto__']],
    ['a namespace with quotes and brackets', 404, [JSON_TYPE, 'X-Namespace: "},{"']],
    ['a long namespace', 404, [JSON_TYPE, `X-Namespace: ${'n'.repeat(8_000)}`]],
    ['another namespace than the address', 400, [JSON_TYPE, 'X-Namespace: odd']],
    ['a toolset that is a path', 404, [JSON_TYPE, 'X-Toolset: ../../etc/passwd']],
    ['a toolset of the prototype', 404, [JSON_TYPE, 'X-Toolset: __proto__']],
    ['two types', 415, [JSON_TYPE, 'Content-Type: text/plain']],
    ['a type of a form', 415, ['Content-Type: multipart/form-data; boundary=x']],
    ['a type that a page may send unasked', 415, ['Content-Type: text/plain;application/json']],
    ['no type', 415, []],
    ['an origin of nobody', 403, [JSON_TYPE, 'Origin: null']],
    ['an origin like ours', 403, [JSON_TYPE, 'Origin: http://127.0.0.1.evil.example']],
    ['two origins', 403, [JSON_TYPE, 'Origin: http://127.0.0.1', 'Origin: http://evil.example']],
    ['nothing that can be accepted', 406, [JSON_TYPE, 'Accept: image/png']],
    ['too many headers', 431, [JSON_TYPE, `X-Large: ${'x'.repeat(20_000)}`]],
    ['an id that would break a line', 200, [JSON_TYPE, 'X-Request-Id: a"b\tc']],
    ['a long id', 200, [JSON_TYPE, `X-Request-Id: ${'9'.repeat(5_000)}`]],
    ['a trace that is none', 200, [JSON_TYPE, 'traceparent: 00-zz-"},{"-01']],
    ['an agent that nobody trusts', 200, [JSON_TYPE, 'X-Agent-Id: admin']],
    ['a session of MCP', 200, [JSON_TYPE, 'Mcp-Session-Id: x', 'MCP-Protocol-Version: 1999-01-01']],
    ['a method to be used instead', 200, [JSON_TYPE, 'X-HTTP-Method-Override: DELETE']],
    ['a path to be used instead', 200, [JSON_TYPE, 'X-Original-URL: /metrics', 'X-Forwarded-Prefix: /admin']],
  ];

  it.each(cases)('%s: %i', async (what, status, headers) => {
    const path = what.startsWith('another') ? '/ns/up/tools/echo' : '/tools/up_echo';
    await expectStatus({ headers, path }, status);
  });

  it('are not echoed in the answer', async () => {
    const { headers } = await ask({ headers: ['Content-Type: application/json', 'X-Request-Id: a"b', 'X-Evil: 1'] });
    expect([...headers.keys()].sort()).toEqual([
      'connection',
      'content-length',
      'content-type',
      'cross-origin-resource-policy',
      'date',
      'x-content-type-options',
    ]);
  });

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'OPTIONS', 'PROPFIND', 'SEARCH'])(
    '%s cannot call',
    async (method) => {
      const { status } = await ask({ method, path: '/up/echo', body: '' });
      expect(status).toBe(405);
    },
  );
});

describe('bodies', () => {
  const deep = (levels: number) => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  const cases: [string, number, string | Buffer][] = [
    ['half an object', 400, '{"a":1'],
    ['two objects', 400, '{}{}'],
    ['two lines of objects', 400, '{}\n{}'],
    ['a word', 400, 'undefined'],
    ['blanks', 400, '   '],
    ['a byte order mark', 400, '\ufeff{}'],
    ['UTF-16', 400, Buffer.from('{}', 'utf16le')],
    ['bytes that are no text', 400, Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])],
    ['a NUL', 400, '{"a":"\0"}'],
    ['a comment', 400, '{/* */}'],
    ['NaN', 400, '{"a":NaN}'],
    ['a number in octal', 400, '{"a":012}'],
    ['too deep', 400, deep(20)],
    ['far too deep', 400, deep(3_000)],
    ['a list', 422, '[]'],
    ['a list of messages', 422, '[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]'],
    ['null', 422, 'null'],
    ['a text', 422, '"{}"'],
    ['a number', 422, '1e999'],
    ['too large', 413, `{"a":"${'x'.repeat(9_000)}"}`],
    ['just deep enough', 200, deep(13)],
    ['keys of the prototype', 200, '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
    ['a key twice', 200, '{"a":1,"a":2}'],
    ['an escaped NUL', 200, '{"a":"\\u0000"}'],
    ['half a character', 200, '{"a":"\\ud800"}'],
    ['a large number', 200, '{"a":1e999,"b":123456789012345678901234567890}'],
    ['the end of a message', 200, '{"a":"}}\\n{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"}'],
    ['a call in disguise', 200, '{"name":"odd_a/b","method":"tools/call","_meta":{"progressToken":1},"params":{}}'],
  ];

  it.each(cases)('%s: %i', (_, status, body) => expectStatus({ body }, status));

  it('reach the tool unchanged', async () => {
    const body = '{ "__proto__" : {"a":1}, "n": 1.0, "big": 9007199254740993, "a": "\\u00e9" }';
    const reply = await ask({ path: '/tools/odd_a%2Fb', body });
    expect(JSON.parse(reply.body).arguments).toHaveProperty('n', 1);
    expect(reply.body).toContain('"__proto__":{"a":1}');
  });
});

it('answers every random request with a documented status', { timeout: 60_000 }, async () => {
  const page = readFileSync(join(root, 'docs/rest.md'), 'utf8');
  const documented = readRows(page, 'Statuses').map(([status]) => Number(status!.replaceAll('`', '')));
  const part = fc.constantFrom(
    'tools',
    'ns',
    'up',
    'odd',
    'echo',
    'up_echo',
    'schema',
    'docs',
    'openapi.json',
    'namespaces',
    '%2e',
    '..',
    '',
    '%00',
    'x',
    '%',
    'mcp',
  );
  const path = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
  const query = fc.constantFrom('', '?', '?toolset=x', '?toolset', '?a=b&c', '?%');
  const method = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'OPTIONS');
  const body = fc.oneof(fc.json(), anyText(), fc.constant('{}'));
  const header = fc.constantFrom(
    'Content-Type: application/json',
    'X-Namespace: up',
    'X-Toolset: x',
    'Accept: text/html',
    'If-None-Match: *',
    'X-Namespace: ',
  );
  await fc.assert(
    fc.asyncProperty(path, query, method, body, fc.uniqueArray(header), async (path, query, method, body, headers) => {
      // MCP uses other statuses.
      fc.pre(!path.includes('mcp'));
      const { status } = await ask({ method, path: path + query, headers, body });
      expect([200, 304, ...documented], `${method} ${path}${query}`).toContain(status);
      expect(status).not.toBe(500);
    }),
    { numRuns: runs(400) },
  );
});
