/** Servers and authorization servers that try to get a token, or to reach what they should not. Each is refused, with the reason. */
import dns from 'node:dns';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readChallenge } from '../../src/logins/challenge.ts';
import { grantProblem, startLogin } from '../../src/logins/grants.ts';
import { createGuard, type FetchGuard } from '../../src/logins/guarded-fetch.ts';

const REDIRECT = 'http://127.0.0.1:9/callback';
let origin: string;
let guard: FetchGuard;
/** What the server answers, by path; a function is called with each request. */
let pages: Record<string, unknown>;
let visited: string[];

const server = createServer((request, response) => {
  const path = new URL(request.url!, 'http://x').pathname;
  visited.push(path);
  const page = pages[path];
  if (page === undefined) response.writeHead(404).end();
  else if (typeof page === 'string') response.writeHead(302, { location: page }).end();
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page));
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  guard = await createGuard(`${origin}/mcp`);
});
afterAll(async () => {
  await guard.close();
  server.closeAllConnections();
  server.close();
});

const RESOURCE = '/.well-known/oauth-protected-resource/mcp';
const ISSUER = '/.well-known/oauth-authorization-server';
const described = () => ({ resource: `${origin}/mcp`, authorization_servers: [origin] });
const issuer = () => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
});

beforeEach(() => {
  visited = [];
  pages = { [RESOURCE]: described(), [ISSUER]: issuer(), '/register': { client_id: 'c' }, '/token': {} };
});

const start = (challenge: string | null = null) =>
  startLogin(
    { url: `${origin}/mcp`, settings: { grant: 'login' }, guard },
    challenge === null ? null : readChallenge(challenge),
    null,
    REDIRECT,
  );
const problemOf = async (work: Promise<unknown>) =>
  grantProblem(
    await work.then(
      () => 'nothing',
      (error) => error,
    ),
  );

describe('a server on the way to a login', () => {
  it.each([
    [
      'says that it is another server',
      () => ({ [RESOURCE]: { ...described(), resource: 'https://bank.example/mcp' } }),
      'which is another server',
    ],
    [
      'says that it is a path next to its own',
      () => ({ [RESOURCE]: { ...described(), resource: `${origin}/mcp2` } }),
      'which is another server',
    ],
    [
      'has an authorization server that says it is another one',
      () => ({ [ISSUER]: { ...issuer(), issuer: 'https://bank.example' } }),
      'whose description says that it is "https://bank.example". It is refused',
    ],
    [
      'has an authorization server without PKCE',
      () => ({ [ISSUER]: { ...issuer(), code_challenge_methods_supported: undefined } }),
      'does not protect codes (PKCE with S256). It is refused',
    ],
    [
      'has an authorization server with plain PKCE',
      () => ({ [ISSUER]: { ...issuer(), code_challenge_methods_supported: ['plain'] } }),
      'does not protect codes',
    ],
    [
      'sends the browser to a script',
      () => ({ [ISSUER]: { ...issuer(), authorization_endpoint: 'javascript:alert(1)' } }),
      'authorization_endpoint is not an address on the web',
    ],
    [
      'sends the browser to a file',
      () => ({ [ISSUER]: { ...issuer(), authorization_endpoint: 'file:///etc/passwd' } }),
      'authorization_endpoint is not an address on the web',
    ],
    [
      'has a token endpoint that is no address',
      () => ({ [ISSUER]: { ...issuer(), token_endpoint: 'data:,x' } }),
      'token_endpoint is not an address on the web',
    ],
    [
      'names an authorization server that is no address',
      () => ({ [RESOURCE]: { ...described(), authorization_servers: ['not an address'] } }),
      'which is no address',
    ],
    [
      'sends us around in circles',
      () => ({ [RESOURCE]: RESOURCE, [ISSUER]: ISSUER }),
      'does not say who gives tokens for it',
    ],
    [
      'registers no clients',
      () => ({ [ISSUER]: { ...issuer(), registration_endpoint: undefined } }),
      'registers no clients by itself. Register Toolgate there',
    ],
    [
      'has an authorization server that describes nothing',
      () => ({ [ISSUER]: undefined }),
      'which does not describe itself',
    ],
  ])('is refused if it %s', async (_, change, problem) => {
    pages = { ...pages, ...change() };
    expect(await problemOf(start())).toContain(problem);
    expect(visited).not.toContain('/token');
  });

  it('is refused if its challenge names a description that is not there', async () => {
    expect(await problemOf(start(`Bearer resource_metadata="${origin}/elsewhere"`))).toContain('and there is none');
  });

  it('is sent S256, the resource and a state, and only known scopes', async () => {
    const { searchParams } = new URL((await start('Bearer scope="a b"')).address);
    expect(Object.fromEntries(searchParams)).toMatchObject({
      code_challenge_method: 'S256',
      resource: `${origin}/mcp`,
      scope: 'a b',
      redirect_uri: REDIRECT,
    });
    expect(searchParams.get('state')).toMatch(/^[\w-]{40,}$/);
  });
});

describe('an answer to a login', () => {
  it.each([
    [
      'of another authorization server (mix-up)',
      (state: string) => ({ code: 'c', state, iss: 'https://bank.example' }),
      '"iss"',
    ],
    ['with an issuer that is only alike', (state: string) => ({ code: 'c', state, iss: `${origin}/` }), '"iss"'],
    ['without the issuer that was promised', (state: string) => ({ code: 'c', state }), '"iss"'],
    ['with another state', () => ({ code: 'c', state: 'other', iss: origin }), '"state"'],
    ['without a state', () => ({ code: 'c', iss: origin }), '"state"'],
    ['without a code', (state: string) => ({ state, iss: origin }), 'code'],
    [
      'that is an error',
      (state: string) => ({ error: 'access_denied', error_description: 'no', state, iss: origin }),
      'access_denied (no)',
    ],
    [
      'that is an error of another authorization server',
      (state: string) => ({ error: 'x', state, iss: 'https://bank.example' }),
      '"iss"',
    ],
  ])('is refused %s, and no code is sent anywhere', async (_, answer, problem) => {
    const started = await start();
    expect(await problemOf(started.finish(new URLSearchParams(answer(started.state))))).toContain(problem);
    expect(visited).not.toContain('/token');
  });
});

describe('a server on the internet', () => {
  it('cannot lead us home by a name whose address changes between look-ups', async () => {
    const answers = [{ address: '93.184.216.34', family: 4 }, ...Array(9).fill({ address: '127.0.0.1', family: 4 })];
    const next = () => answers.shift()!;
    const ofPromises = vi.spyOn(dns.promises, 'lookup').mockImplementation((async () => [next()]) as never);
    const ofCallbacks = vi
      .spyOn(dns, 'lookup')
      .mockImplementation(((_: string, __: object, done: (...all: unknown[]) => void) =>
        done(null, [next()])) as never);
    syncBuiltinESMExports();
    try {
      const { port } = new URL(origin);
      const strict = await createGuard(`https://changing.example:${port}/mcp`);
      // It looked like one on the internet, and leads here when it is fetched.
      expect(strict.isHome).toBe(false);
      let connected = 0;
      const count = () => connected++;
      server.on('connection', count);
      for (let i = 0; i < 3; i++) {
        const failure = await strict.fetch(`https://changing.example:${port}/x`).catch((error) => error);
        expect(grantProblem(failure)).toContain('leads to a private address');
      }
      server.off('connection', count);
      expect(connected).toBe(0);
      await strict.close();
    } finally {
      ofPromises.mockRestore();
      ofCallbacks.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it.each([
    ['http://127.0.0.1/x', 'is not encrypted'],
    ['https://127.0.0.1/x', 'leads to a private address'],
    ['https://0x7f.1/x', 'leads to a private address'],
    ['https://2130706433/x', 'leads to a private address'],
    ['https://169.254.169.254/latest/meta-data', 'leads to a private address'],
    ['https://[::1]/x', 'leads to a private address'],
    ['https://[::ffff:10.0.0.1]/x', 'leads to a private address'],
    ['https://localhost/x', 'leads to a private address'],
    ['https://user:password@example.com/x', 'contains a user name'],
    ['javascript:alert(1)', 'is not an address on the web'],
    ['file:///etc/passwd', 'is not an address on the web'],
  ])('cannot make us fetch %s', async (address, problem) => {
    const strict = await createGuard('https://mcp.invalid/mcp');
    expect(strict.isHome).toBe(false);
    expect(grantProblem(await strict.fetch(address).catch((error) => error))).toContain(problem);
    await strict.close();
  });
});
