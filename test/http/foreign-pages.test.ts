/** What a page of another site can do without being allowed to: nothing, not even load data as an image or script. */
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { exchange, initialize } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: `controls = []\n${serversToml({ up: server('basic') })}` });
});

const statusOf = async (path: string, lines: readonly string[]) => {
  const head = [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...lines, '', ''].join('\r\n');
  return (await exchange(gateway.origin, head)).status;
};

describe('a request that a page of another site sends without its origin', () => {
  it.each(['/tools', '/openapi.json', '/metrics', '/sse', '/mcp', '/docs'])('is refused at %s', async (path) => {
    expect(await statusOf(path, ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Dest: image'])).toBe(403);
  });

  it('is answered if a person followed a link, or the page is our own', async () => {
    expect(await statusOf('/docs', ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Dest: document'])).toBe(200);
    expect(await statusOf('/tools', ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Dest: empty'])).toBe(200);
    expect(await statusOf('/tools', ['Sec-Fetch-Site: none', 'Sec-Fetch-Dest: document'])).toBe(200);
  });
});

it('data cannot be embedded by other sites, nor taken for something else', async () => {
  for (const path of ['/tools', '/openapi.json', '/metrics', '/namespaces', '/no-such-path']) {
    const { headers } = await fetch(`${gateway.origin}${path}`);
    expect([path, headers.get('x-content-type-options'), headers.get('cross-origin-resource-policy')]).toEqual([
      path,
      'nosniff',
      'same-origin',
    ]);
  }
  for (const path of ['/docs', '/'])
    expect((await fetch(`${gateway.origin}${path}`)).headers.get('x-content-type-options')).toBe('nosniff');
});

describe('a body that would be misread is refused with 415', () => {
  const type = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` });

  it.each([
    ['compressed', { 'content-encoding': 'gzip', 'content-type': 'application/json' }, gzipSync('{}')],
    ['in UTF-16', type('utf-16'), Buffer.from('{}', 'utf16le')],
    ['in Latin 1', type('iso-8859-1'), Buffer.from('{}')],
  ])('%s', async (_, headers, body) => {
    for (const path of ['/mcp', '/tools/up_echo']) {
      const accept = 'application/json, text/event-stream';
      const sent = { method: 'POST', headers: { accept, ...headers }, body };
      expect([path, (await fetch(`${gateway.origin}${path}`, sent)).status]).toEqual([path, 415]);
    }
  });

  it.each(['utf-8', 'UTF-8', '"utf-8"', 'us-ascii'])('but not with charset=%s', async (charset) => {
    expect((await gateway.post(initialize(), type(charset))).status).toBe(200);
  });
});
