/** Client certificates as a credential: who is let in, as which agent, and what the audit says. And those that Toolgate shows to servers. */
import { copyFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, fetch as undiciFetch } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { alternativeNames } from '../../src/doors/http/auth/client-certificate.ts';
import { waitForLines } from '../support/audit-records.ts';
import { type Authority, clientPair, makeAuthority, type Pair, pemOf, serverPair } from '../support/certificates.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli, startCli } from '../support/cli.ts';
import { openPipe } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const text = JSON.stringify;

describe('the alternative names of a certificate', () => {
  it.each([
    ['URI:spiffe://a/b, DNS:c.example', ['URI:spiffe://a/b', 'DNS:c.example']],
    ['IP Address:127.0.0.1, email:a@b.example', ['EMAIL:a@b.example']],
    ['URI:"spiffe://a, DNS:evil"', ['URI:spiffe://a, DNS:evil']],
    ['URI:"a\\"b", DNS:c', ['URI:a"b', 'DNS:c']],
    ['URI:"not closed, DNS:evil', []],
    ['DirName:"CN = a", DNS:b', ['DNS:b']],
    ['', []],
  ])('%s are read without mixing them up', (list, names) => {
    expect(alternativeNames(list)).toEqual(names);
  });
});

describe.skipIf(isMissing('openssl'))('client certificates', () => {
  let authority: Authority;
  let other: Authority;
  let own: Pair;

  beforeAll(() => {
    authority = makeAuthority('Clients');
    other = makeAuthority('Strangers');
    own = serverPair(authority);
  });

  const configWith = (clientCa: string, more: string, before = '') =>
    [
      'active_toolsets = ["*"]',
      before,
      serversToml({ a: server('basic', '--tools', 'echo') }),
      '[http.tls]',
      ...Object.entries({ cert: own.cert, key: own.key, client_ca: clientCa }).map(([k, v]) => `${k} = ${text(v)}`),
      more,
    ].join('\n');

  function fetchWith(pair: Pair | null): typeof fetch {
    const dispatcher = new Agent({
      connect: { ca: readFileSync(authority.cert), ...(pair !== null && pemOf(pair)) },
    });
    atEnd(() => dispatcher.close());
    return ((input: string, init: object) => undiciFetch(input, { ...init, dispatcher })) as unknown as typeof fetch;
  }

  /** The status, or the error of the handshake. */
  const statusOf = (gateway: HttpGateway, pair: Pair | null, headers: Record<string, string> = {}) =>
    fetchWith(pair)(`${gateway.origin}/tools`, { headers }).then(
      ({ status }) => status,
      (error: Error) => String((error.cause as NodeJS.ErrnoException).code),
    );

  describe('that are required', () => {
    let gateway: HttpGateway;

    beforeAll(async () => {
      const agents = [
        'agents = { "URI:spiffe://example.org/ci/*" = "ci", "CN:laptop-?" = "people", "DNS:*.robots.example" = "robots" }',
      ];
      const policy = '[agent_policies.people]\ndenied_tools = { a = ["echo"] }\n';
      gateway = await startHttp({
        config: `${configWith(authority.cert, agents.join('\n'))}\n${policy}`,
        env: { BEARER_TOKEN: 'the-token' },
        ready: false,
      });
    });

    it.each([
      ['a SPIFFE id', () => clientPair(authority, '/CN=x', { alt: 'URI:spiffe://example.org/ci/build' }), 200],
      ['a common name', () => clientPair(authority, '/CN=laptop-7'), 200],
      ['a DNS name', () => clientPair(authority, '/O=none', { alt: 'DNS:r2.robots.example' }), 200],
      ['a name that no pattern fits', () => clientPair(authority, '/CN=desktop'), 403],
      ['a SPIFFE id as its common name', () => clientPair(authority, '/CN=spiffe:\\/\\/example.org\\/ci\\/x'), 403],
      ['two common names', () => clientPair(authority, '/CN=laptop-7/CN=other'), 403],
    ])('let %s in or not', async (_, pair, status) => {
      expect(await statusOf(gateway, pair())).toBe(status);
    });

    it.each([
      ['no certificate', () => null],
      ['one of another authority', () => clientPair(other, '/CN=laptop-7')],
      ['an expired one', () => clientPair(authority, '/CN=laptop-7', { days: -1 })],
      ['one for servers', () => clientPair(authority, '/CN=laptop-7', { usage: 'serverAuth' })],
    ])('refuse %s, also with a token and for probes', async (_, pair) => {
      const authorization = 'Bearer the-token';
      expect(await statusOf(gateway, pair(), { authorization })).toBe(403);
      const probe = await fetchWith(pair())(`${gateway.origin}/health`);
      expect([probe.status, await probe.text()]).toEqual([
        403,
        expect.stringContaining('A client certificate is required'),
      ]);
    });

    it('a wrong token is refused, whatever the certificate', async () => {
      const authorization = 'Bearer wrong';
      expect(await statusOf(gateway, clientPair(authority, '/CN=laptop-7'), { authorization })).toBe(401);
    });

    it('the agent has its policy, and the audit names agent and certificate', async () => {
      const fetch = fetchWith(clientPair(authority, '/CN=x', { alt: 'URI:spiffe://example.org/ci/deploy' }));
      const client = new Client({ name: 'ci', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url), { fetch }));
      await client.callTool({ name: 'a_echo', arguments: {} });
      await client.close();
      const lines = await waitForLines(gateway.cwd, 1, ({ agent, tool }) => agent === 'ci' && tool !== undefined);
      expect(lines[0]).toMatchObject({
        agent: 'ci',
        principal: text(['certificate', 'URI:spiffe://example.org/ci/deploy']),
      });
      const person = fetchWith(clientPair(authority, '/CN=laptop-1'));
      const denied = await person(`${gateway.origin}/tools/a_echo`, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json' },
      });
      expect(denied.status).toBe(404);
    });

    it('toolgate connect and wait show one with --cert and --key', async () => {
      const { cert, key } = clientPair(authority, '/CN=laptop-3');
      const options = ['--ca', authority.cert, '--cert', cert, '--key', key];
      const { code, stderr } = await runCli(['wait', gateway.origin, ...options, '--timeout', '30s']);
      expect(code, stderr).toBe(0);
      const pipe = openPipe(startCli(['connect', gateway.origin, ...options]));
      await pipe.connect();
      expect((await pipe.client.listTools()).tools.length).toBeGreaterThan(0);
      await pipe.client.close();
    });

    it('clients without one find out what is missing', async () => {
      const { code, stderr } = await runCli(['wait', gateway.origin, '--ca', authority.cert, '--timeout', '1s']);
      expect([code, stderr]).toEqual([1, expect.stringContaining('it answers with status 403')]);
    });
  });

  it('that are optional stand next to tokens', async () => {
    const gateway = await startHttp({
      config: configWith(authority.cert, 'client_auth = "optional"'),
      env: { BEARER_TOKEN: 'the-token' },
      ready: false,
    });
    expect(await statusOf(gateway, null)).toBe(401);
    expect(await statusOf(gateway, null, { authorization: 'Bearer the-token' })).toBe(200);
    expect(await statusOf(gateway, clientPair(authority, '/CN=robot-7'))).toBe(200);
    expect(await statusOf(gateway, clientPair(other, '/CN=robot-7'))).toBe(401);
    expect(await statusOf(gateway, clientPair(other, '/CN=robot-7'), { authorization: 'Bearer the-token' })).toBe(200);
    // By default the common name is the agent, but not one that the gateway gives away itself.
    for (const name of ['default', 'anonymous', 'a b', '../x']) {
      const pair = clientPair(authority, `/CN=${name.replaceAll('/', '\\/')}`);
      expect(await statusOf(gateway, pair), name).toBe(403);
    }
  });

  it('of an authority that is replaced are worth nothing from then on, also on open connections and in resumed sessions', async () => {
    const folder = tempFolder();
    const ca = join(folder, 'clients.pem');
    copyFileSync(authority.cert, ca);
    const gateway = await startHttp({ config: configWith(ca, ''), ready: false });
    const { port } = new URL(gateway.origin);
    const options = { host: '127.0.0.1', port: Number(port), ca: readFileSync(authority.cert) };
    const pair = clientPair(authority, '/CN=robot-7');
    const open = connectTls({ ...options, ...pemOf(pair) });
    const session = new Promise<Buffer>((resolve) => open.once('session', resolve));
    const ask = (socket: TLSSocket) =>
      new Promise<string>((resolve) => {
        let answer = '';
        socket.on('data', (chunk: Buffer) => {
          answer += chunk.toString();
          resolve(answer);
        });
        socket.once('error', (error: Error) => resolve(error.message));
        socket.once('close', () => resolve('closed'));
        socket.write('GET /tools HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      });
    expect(await ask(open)).toContain('200 OK');
    const closed = new Promise((resolve) => open.once('close', resolve));
    copyFileSync(other.cert, ca);
    await closed;
    expect(await ask(connectTls({ ...options, session: await session }))).not.toContain('200 OK');
    expect(await ask(connectTls({ ...options, session: await session, ...pemOf(pair) }))).not.toContain('200 OK');
    expect(await statusOf(gateway, clientPair(other, '/CN=robot-7'))).toBe(200);
  });

  it.each([
    ['no certificate', 'required', () => null],
    ['no certificate', 'optional', () => null],
    ['one of another authority', 'required', () => clientPair(other, '/CN=robot-7')],
    ['one of another authority', 'optional', () => clientPair(other, '/CN=robot-7')],
  ])('are not replaced by a resumed session that began with %s, where they are %s', async (_, mode, pair) => {
    const gateway = await startHttp({ config: configWith(authority.cert, `client_auth = "${mode}"`), ready: false });
    const shown = pair();
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = {
        host: '127.0.0.1',
        port: Number(new URL(gateway.origin).port),
        ca: readFileSync(authority.cert),
        minVersion: version,
        maxVersion: version,
        ...(shown !== null && pemOf(shown)),
      };
      const ask = (socket: TLSSocket) => {
        socket.write('GET /tools HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
        return readAll(socket);
      };
      const first = connectTls(options);
      const session = new Promise<Buffer>((resolve) => first.once('session', resolve));
      expect(await ask(first)).toMatch(/^HTTP\/1\.1 40[13] /);
      const second = connectTls({ ...options, session: await session });
      const reused = new Promise((resolve) => second.once('secureConnect', () => resolve(second.isSessionReused())));
      expect(await ask(second)).toMatch(/^HTTP\/1\.1 40[13] /);
      expect(await reused).toBe(true);
    }
  });

  it('whose agents change in the configuration stand for the new ones', async () => {
    const gateway = await startHttp({
      config: configWith(authority.cert, 'agents = { "CN:robot-7" = "robots" }'),
      ready: false,
    });
    const fetch = fetchWith(clientPair(authority, '/CN=robot-7'));
    const status = async () => (await fetch(`${gateway.origin}/tools`)).status;
    expect(await status()).toBe(200);
    writeFiles(gateway.cwd, { 'tools.toml': configWith(authority.cert, 'agents = { "CN:robot-8" = "robots" }') });
    await waitFor(async () => (await status()) === 403);
  });

  it('are a credential: a gateway beyond loopback starts with them alone', async () => {
    const child = startCli(['serve', '--port', '0', '--host', '0.0.0.0'], { config: configWith(authority.cert, '') });
    await waitFor(() => child.stdout().includes('Toolgate is listening on https://0.0.0.0'));
  });

  describe('towards servers', () => {
    const pair = () => clientPair(authority, '/CN=toolgate');

    /** An MCP server that answers only clients with a certificate, and says whose it was. */
    async function startUpstream(): Promise<{ url: string; seen: string[] }> {
      const seen: string[] = [];
      const options = { ...pemOf(serverPair(authority)), ca: readFileSync(authority.cert), requestCert: true };
      const upstream = createServer({ ...options, rejectUnauthorized: true }, (request, response) => {
        seen.push((request.socket as TLSSocket).getPeerCertificate().subject.CN as string);
        let body = '';
        request.on('data', (chunk) => {
          body += chunk;
        });
        request.on('end', () => {
          const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
          if (id === undefined) return void response.writeHead(202).end();
          const results: Record<string, object> = {
            initialize: {
              protocolVersion: '2025-06-18',
              capabilities: { tools: {} },
              serverInfo: { name: 'u', version: '1' },
            },
            'tools/list': { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] },
          };
          const result = results[method ?? ''];
          const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result };
          response.setHeader('content-type', 'application/json').end(text({ jsonrpc: '2.0', id, ...answer }));
        });
      });
      await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
      atEnd(() => {
        upstream.closeAllConnections();
        upstream.close();
      });
      return { url: `https://127.0.0.1:${(upstream.address() as AddressInfo).port}/mcp`, seen };
    }

    it('are shown, and the authority of the server is checked', async () => {
      const { url, seen } = await startUpstream();
      const { cert, key } = pair();
      const config = (tls: object) => text({ servers: { up: { url, tls } } });
      const list = (tls: object) => runCli(['list'], { files: { 'toolgate.json': config(tls) } });
      expect((await list({ ca: authority.cert, cert, key })).stdout).toContain('up_hello');
      expect(new Set(seen)).toEqual(new Set(['toolgate']));
      expect((await list({ cert, key })).stderr).toContain('an authority that is not trusted here');
      expect((await list({ ca: other.cert, cert, key })).stderr).toContain('an authority that is not trusted here');
      expect((await list({ ca: authority.cert })).stderr).toMatch(/requires a client certificate|broke the connection/);
      expect((await list({ ca: authority.cert, cert, key: other.key })).stderr).toContain(
        'belongs to another certificate',
      );
    });

    it.each([
      [{ cert: 'a.pem' }, 'needs "cert" and "key" together'],
      [{ ca: 'a.pem', unknown: 1 }, 'unknown key'],
    ])('%j is a mistake', async (tls, why) => {
      const files = {
        'toolgate.json': text({ servers: { up: { url: 'https://a.example', tls }, b: { url: 'http://b.example' } } }),
      };
      const { stdout } = await runCli(['list', 'servers'], { files });
      expect(stdout).toContain(why);
    });
  });
});
