/** The keys of an identity provider: discovered, rotated, cached while it is down, and never requested too often. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, startSession } from '../support/raw-http.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { type Issuer, makeKey, startIssuer } from './issuer.ts';

async function start(issuer: Issuer, more = ''): Promise<HttpGateway> {
  return startHttp({ config: `controls = []\n[http.jwt]\nissuer = "${issuer.issuer}"\n${more}` });
}

async function status(gateway: HttpGateway, token: Promise<string>): Promise<number> {
  return (await gateway.post(initialize(), { authorization: `Bearer ${await token}` })).status;
}

const keysAsked = ({ asked }: Issuer) => asked.filter((path) => path === '/keys').length;

describe('the keys of the issuer', () => {
  it('are discovered from the metadata when the first token arrives', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer);
    expect(issuer.asked).toEqual([]);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
    expect(issuer.asked).toEqual([
      '/.well-known/oauth-authorization-server',
      '/.well-known/openid-configuration',
      '/keys',
    ]);
  });

  it('are read from jwks_uri, and nothing else is requested', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer, `jwks_uri = "${issuer.jwksUri}"\n`);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
    expect(issuer.asked).toEqual(['/keys']);
  });

  it.each([
    ['is of another issuer', { issuer: 'https://evil.example' }],
    ['is of the issuer with a slash', { issuer: 'SELF/' }],
    ['says no place of keys', { jwks_uri: undefined }],
    ['says a place without TLS', { jwks_uri: 'http://keys.example/keys' }],
    ['says a place that is a file', { jwks_uri: 'file:///etc/passwd' }],
  ])('are not used if the metadata %s', async (_, wrong) => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const text = JSON.stringify({ ...issuer.metadata, ...wrong }).replace('SELF', issuer.issuer);
    issuer.metadata = JSON.parse(text) as Record<string, unknown>;
    const gateway = await start(issuer);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(503);
    expect(keysAsked(issuer)).toBe(0);
    expect(gateway.stderr()).toContain('could not be fetched');
  });

  it('can be rotated: a token with a new key is valid at once', async () => {
    const issuer = await startIssuer();
    const old = await issuer.rotate();
    const gateway = await start(issuer);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
    await issuer.rotate('ES256', true);
    expect(await status(gateway, issuer.sign({ sub: 'b', aud: gateway.url }))).toBe(200);
    expect(await status(gateway, issuer.sign({ sub: 'c', aud: gateway.url }, {}, old))).toBe(401);
  });

  it('stay valid while the issuer cannot be reached', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
    issuer.failing = 503;
    expect(await status(gateway, issuer.sign({ sub: 'b', aud: gateway.url }))).toBe(200);
    expect(await status(gateway, issuer.sign({ sub: 'c', aud: gateway.url }, {}, await makeKey('ES256')))).toBe(401);
    expect(await status(gateway, issuer.sign({ sub: 'd', aud: gateway.url }))).toBe(200);
  });

  it('are not requested repeatedly because of forged tokens', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer);
    const key = await makeKey('ES256');
    const statuses: number[] = [];
    for (let i = 0; i < 50; i++)
      statuses.push(await status(gateway, issuer.sign({ sub: 'm', aud: gateway.url }, { kid: `made-up-${i}` }, key)));
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(keysAsked(issuer)).toBeLessThanOrEqual(3);
    expect(await status(gateway, issuer.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
  });

  it('are not waited for by tokens with a known key', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer);
    const token = issuer.sign({ sub: 'a', aud: gateway.url });
    await status(gateway, token);
    const before = issuer.asked.length;
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${await token}` } });
    for (let i = 0; i < 20; i++) expect((await session.ask('ping')).result).toEqual({});
    expect(issuer.asked.length).toBe(before);
  });
});

describe('the JWT configuration', () => {
  it('can change at run time: tokens that are no longer accepted lose their sessions', async () => {
    const [one, two] = [await startIssuer(), await startIssuer()];
    await one.rotate();
    await two.rotate();
    const gateway = await start(one);
    const token = one.sign({ sub: 'a', aud: gateway.url });
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${await token}` } });
    replaceFile(gateway.cwd, `controls = []\n[http.jwt]\nissuer = "${two.issuer}"\n`);
    await waitFor(async () => (await session.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status === 401);
    expect(await status(gateway, two.sign({ sub: 'a', aud: gateway.url }))).toBe(200);
    replaceFile(gateway.cwd, 'controls = []\n');
    await waitFor(async () => (await status(gateway, two.sign({ sub: 'a', aud: gateway.url }))) === 401);
    expect((await gateway.post(initialize())).status).toBe(401);
  });

  it('ends a stream when its token has expired, and lets its session go on with a new one', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const gateway = await start(issuer, 'clock_skew = 0\n');
    const exp = Math.floor(Date.now() / 1000) + 3;
    const short = await issuer.sign({ sub: 'a', aud: gateway.url, exp });
    const session = await startSession(gateway, { headers: { authorization: `Bearer ${short}` } });
    const stream = await session.listen();
    const other = await startSession(gateway, { headers: { authorization: `Bearer ${short}` } });
    const kept = await other.listen();
    await sleep(exp * 1000 - Date.now() + 100);
    expect((await session.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status).toBe(401);
    const fresh = { authorization: `Bearer ${await issuer.sign({ sub: 'a', aud: gateway.url })}` };
    expect((await other.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', fresh)).status).toBe(200);
    await waitFor(() => stream.isOver());
    expect(kept.isOver()).toBe(false);
    expect((await session.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', fresh)).status).toBe(200);
    expect((await session.listen(fresh)).response.status).toBe(200);
  });

  it.each([
    ['issuer = "login"', 'is not an address'],
    ['issuer = "http://login.example.com"', 'must begin with https'],
    ['issuer = "https://a.example"\njwks_uri = "http://a.example/keys"', 'must begin with https'],
    ['issuer = "https://a.example"\nalgorithms = ["HS256"]', 'expected one of RS256'],
    ['issuer = "https://a.example"\nalgorithms = ["none"]', 'expected one of RS256'],
    ['issuer = "https://a.example"\nclock_skew = "2m"', 'must be at most "60s"'],
    ['issuer = "https://a.example"\nrequired_scopes = ["a b"]', 'is not a scope'],
    ['issuer = "https://a.example"\nagents = { x = "not a name" }', 'is not a valid name for an agent'],
    ['audience = "x"', 'http.jwt.issuer: expected a string, found nothing'],
    ['issuer = "https://a.example"\nclaim = "x"', 'unknown key'],
  ])('is refused with %j', async (lines, why) => {
    const { code, stdout } = await runCli(['doctor'], { config: `[http.jwt]\n${lines}\n` });
    expect([code, stdout]).toEqual([2, expect.stringContaining(why)]);
  });

  it('needs http.public_url beyond loopback', async () => {
    const config = '[http]\nhost = "0.0.0.0"\n[http.jwt]\nissuer = "https://a.example"\n';
    const { code, stderr } = await runCli(['serve', '--port', '0'], { config });
    expect([code, stderr]).toEqual([2, expect.stringContaining('without http.public_url')]);
  });
});
