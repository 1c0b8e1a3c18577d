/** HTTPS of the gateway's own, with certificates that openssl made. */
import { chmodSync, copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Authority, makeAuthority, type Pair, serverPair } from '../support/certificates.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli, startCli } from '../support/cli.ts';
import { openPipe } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const tlsToml = ({ cert, key }: Pair, more = '') =>
  `active_toolsets = ["*"]\n${serversToml({ a: server('basic', '--tools', 'echo') })}\n[http.tls]\ncert = ${JSON.stringify(cert)}\nkey = ${JSON.stringify(key)}\n${more}`;

/** A fetch that trusts only this authority. */
function fetchFor(authority: Pick<Authority, 'cert'>): typeof fetch {
  const dispatcher = new Agent({ connect: { ca: readFileSync(authority.cert) } });
  atEnd(() => dispatcher.close());
  return ((input: string, init: object) => undiciFetch(input, { ...init, dispatcher })) as unknown as typeof fetch;
}

/** The subject's serial of the certificate that the gateway shows to a new connection. */
function shownBy({ origin }: HttpGateway, options: object = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(new URL(origin).port),
      rejectUnauthorized: false,
      ...options,
    });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

describe.skipIf(isMissing('openssl'))('with a certificate', () => {
  let authority: Authority;
  let gateway: HttpGateway;
  let files: Pair;

  beforeAll(async () => {
    authority = makeAuthority();
    files = serverPair(authority);
    gateway = await startHttp({ config: tlsToml(files), ready: false });
  });

  it('it says that it listens with https', () => {
    expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/mcp$/);
    expect(gateway.stdout()).toContain(`claude mcp add --transport http toolgate ${gateway.url}`);
  });

  it('clients of both SDKs list and call', async () => {
    const fetch = fetchFor(authority);
    const old = new Client({ name: 'old', version: '1' });
    await old.connect(new StreamableHTTPClientTransport(new URL(gateway.url), { fetch }));
    expect(JSON.stringify(await old.callTool({ name: 'a_echo', arguments: {} }))).toContain('content');
    await old.close();
    const modern = new ModernClient({ name: 'new', version: '1' });
    await modern.connect(new ModernTransport(new URL(gateway.url), { fetch }));
    expect((await modern.listTools()).tools.map(({ name }) => name)).toContain('a_echo');
    await modern.close();
  });

  it('a client that does not know the authority refuses it', async () => {
    await expect(fetch(`${gateway.origin}/health`)).rejects.toThrow('fetch failed');
  });

  it('Host and Origin are checked as without', async () => {
    const ask = (headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const options = {
          ca: readFileSync(authority.cert),
          headers,
          agent: false,
          checkServerIdentity: () => undefined,
        } as const;
        request(`${gateway.origin}/tools`, options, (response) => {
          response.resume();
          resolve(response.statusCode!);
        })
          .once('error', reject)
          .end();
      });
    const { host } = new URL(gateway.origin);
    expect(await ask({})).toBe(200);
    expect(await ask({ origin: `https://${host}` })).toBe(200);
    expect(await ask({ host: 'evil.example' })).toBe(403);
    expect(await ask({ origin: 'https://evil.example' })).toBe(403);
  });

  it('TLS 1.1 is refused, 1.2 and 1.3 are not', async () => {
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(shownBy(gateway, old)).rejects.toThrow();
    for (const version of ['TLSv1.2', 'TLSv1.3']) {
      const socket = await shownBy(gateway, { minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      socket.destroy();
    }
  });

  it('a plain request is told to use https', async () => {
    const socket = connectPlain(Number(new URL(gateway.origin).port), '127.0.0.1');
    socket.write('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`use ${gateway.origin}`);
  });

  it('bytes that are neither end the connection, and not the gateway', async () => {
    for (const bytes of [[0x16], [0x16, 3, 1, 255, 255, 0], [0, 0, 0], [0x80, 0x2e]]) {
      const socket = connectPlain(Number(new URL(gateway.origin).port), '127.0.0.1');
      socket.on('error', () => {});
      socket.end(Buffer.from(bytes));
      await new Promise((resolve) => socket.once('close', resolve).resume());
    }
    expect((await fetchFor(authority)(`${gateway.origin}/health`)).status).toBe(200);
  });

  it('toolgate connect and wait reach it with --ca', async () => {
    const { code, stderr } = await runCli(['wait', gateway.origin, '--ca', authority.cert, '--timeout', '30s']);
    expect(code, stderr).toBe(0);
    const pipe = openPipe(startCli(['connect', gateway.origin, '--ca', authority.cert]));
    await pipe.connect();
    expect((await pipe.client.listTools()).tools.map(({ name }) => name)).toContain('a_echo');
    await pipe.client.close();
  });

  it('without it, wait says what is wrong', async () => {
    const { code, stderr } = await runCli(['wait', gateway.origin, '--timeout', '1s']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/certificate|issuer/)]);
  });

  it('NODE_EXTRA_CA_CERTS does the same for a process', async () => {
    const env = { NODE_EXTRA_CA_CERTS: authority.cert };
    const { code, stderr } = await runCli(['wait', gateway.origin, '--timeout', '30s'], { env, process: true });
    expect(code, stderr).toBe(0);
  });

  afterAll(() => gateway.stop());
});

describe.skipIf(isMissing('openssl'))('a renewed certificate', () => {
  it('is used for new connections, and open ones go on', async () => {
    const authority = makeAuthority();
    const [first, second] = [serverPair(authority), serverPair(authority)];
    const folder = tempFolder();
    const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    copyFileSync(first.cert, files.cert);
    copyFileSync(first.key, files.key);
    const gateway = await startHttp({ config: tlsToml(files), ready: false });
    const open = await shownBy(gateway);
    const before = open.getPeerCertificate().serialNumber;
    // The certificate first: for a moment the two do not fit, and the old pair stays.
    copyFileSync(second.cert, files.cert);
    await waitFor(() => gateway.stderr().includes('belongs to another certificate'));
    expect((await shownBy(gateway)).getPeerCertificate().serialNumber).toBe(before);
    copyFileSync(second.key, `${files.key}.new`);
    renameSync(`${files.key}.new`, files.key);
    await waitFor(async () => (await shownBy(gateway)).getPeerCertificate().serialNumber !== before);
    open.write('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
    expect(await text(open)).toContain('200 OK');
    // A broken file changes nothing.
    writeFileSync(files.cert, 'not a certificate');
    await waitFor(() => gateway.stderr().includes('has no certificate in PEM form'));
    expect((await fetchFor(authority)(`${gateway.origin}/health`)).status).toBe(200);
  });
});

describe.skipIf(isMissing('openssl'))('a certificate that cannot be used', () => {
  let authority: Authority;
  beforeAll(() => {
    authority = makeAuthority();
  });

  it.each([
    [
      'missing',
      () => ({ ...serverPair(authority), cert: '/nowhere/cert.pem' }),
      'http.tls.cert: /nowhere/cert.pem cannot be read (ENOENT)',
    ],
    [
      'of another key',
      () => ({ ...serverPair(authority), key: serverPair(authority).key }),
      'belongs to another certificate',
    ],
    ['expired', () => serverPair(authority, { days: -1 }), 'expired on '],
    [
      'the key instead of the certificate',
      () => ({ ...serverPair(authority), cert: serverPair(authority).key }),
      'has no certificate in PEM form',
    ],
    [
      'the certificate instead of the key',
      () => ({ ...serverPair(authority), key: serverPair(authority).cert }),
      'is not a private key in PEM form',
    ],
  ])('(%s) keeps the gateway from listening, with the reason', async (_, pair, why) => {
    const config = tlsToml(pair());
    const { code, stderr } = await runCli(['serve', '--port', '0'], { config });
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
    const doctor = await runCli(['doctor'], { config });
    expect([doctor.code, doctor.stdout]).toEqual([2, expect.stringContaining(why)]);
  });

  it('doctor warns of one that expires soon, and of a key that others can read', async () => {
    const soon = serverPair(authority, { days: 3 });
    chmodSync(soon.key, 0o644);
    const { code, stdout } = await runCli(['doctor'], { config: tlsToml(soon) });
    expect(code).toBe(1);
    expect(stdout).toMatch(/! http\.tls: .* expires in [23] days/);
    expect(stdout).toContain(`can be read by others. Run: chmod 600 ${soon.key}`);
    const later = serverPair(authority);
    chmodSync(later.key, 0o600);
    expect((await runCli(['doctor'], { config: tlsToml(later) })).code).toBe(0);
  });

  it.each([
    ['client_auth = "required"', 'http.tls.client_auth: has no effect without "client_ca"'],
    ['agents = { "laptop" = "ci" }', 'expected a name that begins with "CN:"'],
    ['passphrase = "x"', 'http.tls.passphrase: unknown key'],
  ])('nor is %s', async (line, why) => {
    const { code, stderr } = await runCli(['list'], { config: tlsToml({ cert: 'a', key: 'b' }, line) });
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
  });
});
