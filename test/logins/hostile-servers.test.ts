/** Servers and authorization servers that try to get a token, or to reach what they should not. Each is refused, with the reason. */
import dns from 'node:dns';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readChallenge } from '../../src/logins/challenge.ts';
import { grantProblem, startDeviceLogin, startLogin } from '../../src/logins/grants.ts';
import { createGuard, type FetchGuard } from '../../src/logins/guarded-fetch.ts';
import { readLogin } from '../../src/logins/record.ts';
import { obtain } from '../../src/logins/unattended.ts';

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

describe('an authorization server', () => {
  it('cannot pass a code or a registration on to another place by a redirect', async () => {
    pages['/token'] = `${origin}/elsewhere`;
    const started = await start();
    const code = new URLSearchParams({ code: 'c', state: started.state, iss: origin });
    expect(await problemOf(started.finish(code))).toContain('whose answer is refused');
    expect(visited).toContain('/token');
    pages['/register'] = '/register';
    expect(await problemOf(start())).toContain('whose answer is refused');
    expect(visited.filter((path) => path === '/register')).toHaveLength(2);
    expect(visited).not.toContain('/elsewhere');
  });

  it('cannot send the person at another device to a script', async () => {
    const device = { verification_uri: 'javascript:alert(1)', user_code: 'x', device_code: 'y', expires_in: 60 };
    pages = {
      ...pages,
      '/device': device,
      [ISSUER]: { ...issuer(), device_authorization_endpoint: `${origin}/device` },
    };
    const over = AbortSignal.timeout(5_000);
    const work = startDeviceLogin(
      { url: `${origin}/mcp`, settings: { grant: 'login' }, guard },
      null,
      null,
      REDIRECT,
      over,
    );
    expect(await problemOf(work)).toContain('verification_uri is not an address on the web');
  });
});

/** Names that are looked up have these addresses, one after another; the last one stays. */
async function withNames(answers: readonly string[][], work: () => Promise<void>): Promise<void> {
  const left = [...answers];
  const next = () => (left.length > 1 ? left.shift()! : left[0]!).map((address) => ({ address, family: 4 }));
  const mocked = vi
    .spyOn(dns, 'lookup')
    .mockImplementation(((_: string, __: object, done: (...all: unknown[]) => void) => done(null, next())) as never);
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    mocked.mockRestore();
    syncBuiltinESMExports();
  }
}

it('a login is not used for another address, also if that begins like its own', () => {
  const login = JSON.stringify({ url: 'https://mcp.example', issuer: 'https://auth.example', token: 't' });
  expect(readLogin(login, 'https://mcp.example')?.token).toBe('t');
  for (const url of [
    'https://mcp.example.evil',
    'https://mcp.example:8443',
    'https://mcp.example/other',
    'https://mcp',
  ])
    expect(readLogin(login, url), url).toBe(null);
});

describe('a server that says it is around here', () => {
  const ask = async (own: FetchGuard, address: string) =>
    grantProblem(
      await own.fetch(address).then(
        () => 'nothing',
        (error: unknown) => error,
      ),
    );

  it('is believed only if all its addresses are', async () => {
    await withNames([['10.0.0.5', '93.184.216.34']], async () => {
      const own = await createGuard('https://evil.example/mcp');
      expect(own.isHome).toBe(false);
      await own.close();
    });
  });

  it('cannot make us fetch what is not encrypted, if it is encrypted itself', async () => {
    await withNames([['10.0.0.5']], async () => {
      const own = await createGuard('https://evil.example/mcp');
      expect(own).toMatchObject({ isHome: true, mayBePlain: false });
      expect(await ask(own, `${origin}/x`)).toContain('is not encrypted');
      await own.close();
      const plain = await createGuard('http://mcp.corp.example/mcp');
      expect(plain).toMatchObject({ isHome: true, mayBePlain: true });
      await plain.close();
    });
    expect(visited).toEqual([]);
  });

  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://[::ffff:169.254.169.254]/x',
    'http://[fe80::1]/x',
    'http://[fd00:ec2::254]/x',
    'http://100.100.100.200/x',
  ])('cannot make us fetch %s, where clouds give credentials to machines', async (address) => {
    expect(await ask(guard, address)).toContain('leads to a private address');
  });

  it('cannot make us fetch it by a name either', async () => {
    await withNames([['169.254.169.254']], async () => {
      expect(await ask(guard, 'http://metadata.example/x')).toContain('leads to a private address');
    });
  });
});

it('the identity provider that the operator names may be in the own network, also for a server on the internet', async () => {
  const server = 'https://mcp.example/mcp';
  const elsewhere = { ...issuer(), issuer: 'https://auth.example', token_endpoint: 'https://auth.example/token' };
  const answers: Record<string, unknown> = {
    'https://mcp.example/.well-known/oauth-protected-resource/mcp': {
      resource: server,
      authorization_servers: ['https://auth.example'],
    },
    'https://auth.example/.well-known/oauth-authorization-server': elsewhere,
    'https://auth.example/token': { access_token: 'final', token_type: 'bearer' },
  };
  const asked: string[] = [];
  const internet: FetchGuard = {
    isHome: false,
    mayBePlain: false,
    close: async () => {},
    async fetch(address) {
      asked.push(address);
      return Response.json(answers[address] ?? {}, { status: address in answers ? 200 : 404 });
    },
  };
  pages['/token'] = { access_token: 'grant', token_type: 'N_A', issued_token_type: 'x' };
  const idp = { issuer: origin, clientId: 'toolgate', idToken: 'who' };
  const settings = { grant: 'enterprise', clientId: 'toolgate', clientSecret: 's', idp } as const;
  const login = await obtain({ url: server, settings, guard: internet }, null, null, null);
  expect(login.token).toBe('final');
  expect(visited).toEqual([ISSUER, '/token']);
  expect(asked.filter((address) => address.startsWith(origin))).toEqual([]);
});

describe('a server on the internet', () => {
  it('cannot lead us home by a name that has another address too', async () => {
    await withNames([['93.184.216.34'], ['93.184.216.34', '127.0.0.1']], async () => {
      const strict = await createGuard('https://mixed.example/mcp');
      const failure = await strict.fetch('https://mixed.example/x').catch((error) => error);
      expect(grantProblem(failure)).toContain('leads to a private address');
      await strict.close();
    });
  });

  it('cannot lead us home by a name whose address changes between look-ups', async () => {
    await withNames([['93.184.216.34'], ['127.0.0.1']], async () => {
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
    });
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
