/** Which tokens of an identity provider are accepted, and the exact status and challenge for all others. */
import { createHmac } from 'node:crypto';
import { exportSPKI } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { initialize, postLines } from '../support/raw-http.ts';
import { type Issuer, makeKey, startIssuer, unsigned } from './issuer.ts';

let issuer: Issuer;
let gateway: HttpGateway;
/** The challenge without an error, and the end of every challenge. */
let tail: string;

const seconds = (offset: number) => Math.floor(Date.now() / 1000) + offset;
const good = (more: object = {}) => ({ sub: 'alice', aud: gateway.url, scope: 'tools:use', ...more });
const keyOf = (alg: string) => issuer.keys.find((key) => key.alg === alg)!;
const bearer = async (token: Promise<string> | string) => [`Authorization: Bearer ${await token}`];

beforeAll(async () => {
  issuer = await startIssuer('/tenant');
  for (const alg of ['PS256', 'ES256', 'Ed25519', 'RS256']) await issuer.rotate(alg);
  const config = [
    'controls = []',
    '[http.jwt]',
    `issuer = "${issuer.issuer}"`,
    'required_scopes = ["tools:use"]',
    'agents = { "alice" = "crew", "robot-*" = "robots" }',
  ];
  gateway = await startHttp({ config: config.join('\n'), args: ['--log-level', 'debug'] });
  tail = `scope="tools:use", resource_metadata="${gateway.origin}/.well-known/oauth-protected-resource/mcp"`;
});

type Lines = () => Promise<readonly string[]> | readonly string[];

const accepted: readonly (readonly [what: string, lines: Lines])[] = [
  ['for us alone', () => bearer(issuer.sign(good()))],
  ['for us among others', () => bearer(issuer.sign(good({ aud: ['https://other.example', gateway.url] })))],
  ['after the scheme in lower case', async () => [`Authorization: bearer ${await issuer.sign(good())}`]],
  ['of the type at+jwt', () => bearer(issuer.sign(good(), { typ: 'at+jwt' }))],
  ['of the type AT+JWT', () => bearer(issuer.sign(good(), { typ: 'AT+JWT' }))],
  ['of the type application/at+jwt', () => bearer(issuer.sign(good(), { typ: 'application/at+jwt' }))],
  ['of the type JWT', () => bearer(issuer.sign(good(), { typ: 'JWT' }))],
  ['signed with PS256', () => bearer(issuer.sign(good(), {}, keyOf('PS256')))],
  ['signed with ES256', () => bearer(issuer.sign(good(), {}, keyOf('ES256')))],
  ['signed with Ed25519', () => bearer(issuer.sign(good(), {}, keyOf('Ed25519')))],
  ['with more scopes than needed', () => bearer(issuer.sign(good({ scope: 'openid tools:use tools:more' })))],
  ['with its scopes in a list', () => bearer(issuer.sign(good({ scope: undefined, scp: ['tools:use'] })))],
  ['that expired a moment ago', () => bearer(issuer.sign(good({ exp: seconds(-10) })))],
  ['that begins in a moment', () => bearer(issuer.sign(good({ nbf: seconds(10) })))],
  ['of somebody that a pattern names', () => bearer(issuer.sign(good({ sub: 'robot-7' })))],
];

/** The challenge names an error only if a token was sent. */
const refused: readonly (readonly [what: string, lines: Lines, wrong: string | null])[] = [
  ['absent', () => [], null],
  ['empty', () => ['Authorization:'], null],
  ['of another scheme', () => ['Authorization: Basic YTpi'], null],
  ['a scheme alone', () => ['Authorization: Bearer'], 'The Authorization header contains no token'],
  [
    'there twice',
    async () => [...(await bearer(issuer.sign(good()))), ...(await bearer(issuer.sign(good())))],
    'The token is unknown',
  ],
  [
    'followed by another',
    async () => [`Authorization: Bearer ${await issuer.sign(good())} x.y.z`],
    'The token is unknown',
  ],
  ['no JWT', () => bearer('abc'), 'The token is unknown'],
  ['two parts', () => bearer('abc.def'), 'The token is unknown'],
  ['three parts of nothing', () => bearer('abc.def.ghi'), 'The token is not a JWT'],
  ['expired', () => bearer(issuer.sign(good({ exp: seconds(-40) }))), 'The token has expired'],
  ['without an end', () => bearer(issuer.sign(good({ exp: undefined }))), 'The token has no expiry time'],
  [
    'with an end that is a text',
    () => bearer(issuer.sign(good({ exp: 'never' as unknown as number }))),
    'The token has no expiry time',
  ],
  ['not valid yet', () => bearer(issuer.sign(good({ nbf: seconds(40) }))), 'The token is not valid yet'],
  [
    'of another issuer',
    () => bearer(issuer.sign(good({ iss: 'https://evil.example' }))),
    'The token is from another issuer',
  ],
  [
    'of the issuer with a slash',
    () => bearer(issuer.sign(good({ iss: `${issuer.issuer}/` }))),
    'The token is from another issuer',
  ],
  ['of no issuer', () => bearer(issuer.sign(good({ iss: undefined }))), 'The token is from another issuer'],
  [
    'for somebody else',
    () => bearer(issuer.sign(good({ aud: 'https://other.example/mcp' }))),
    'The token is for another resource',
  ],
  ['for nobody', () => bearer(issuer.sign(good({ aud: undefined }))), 'The token is for another resource'],
  [
    'for one that begins like us',
    () => bearer(issuer.sign(good({ aud: `${gateway.url}.evil` }))),
    'The token is for another resource',
  ],
  [
    'for our origin only',
    () => bearer(issuer.sign(good({ aud: gateway.origin }))),
    'The token is for another resource',
  ],
  [
    'for us with a slash',
    () => bearer(issuer.sign(good({ aud: `${gateway.url}/` }))),
    'The token is for another resource',
  ],
  [
    'not signed',
    () => bearer(unsigned({ alg: 'none' }, { ...good(), iss: issuer.issuer, exp: seconds(60) })),
    'The token is signed with an algorithm that is not allowed here',
  ],
  [
    'signed with the public key as a secret',
    async () => {
      const key = keyOf('RS256');
      const text = unsigned({ alg: 'HS256', kid: key.kid }, { ...good(), iss: issuer.issuer, exp: seconds(60) });
      const signature = createHmac('sha256', await exportSPKI(key.publicKey))
        .update(text.slice(0, -1))
        .digest('base64url');
      return bearer(text + signature);
    },
    'The token is signed with an algorithm that is not allowed here',
  ],
  [
    'signed in a way that is not listed',
    async () => bearer(issuer.sign(good(), {}, await makeKey('RS512'))),
    'The token is signed with an algorithm that is not allowed here',
  ],
  [
    'signed with an unknown key',
    async () => bearer(issuer.sign(good(), {}, await makeKey('RS256'))),
    'The token is signed with an unknown key',
  ],
  [
    'with a key that is a path',
    () => bearer(issuer.sign(good(), { kid: '../../../etc/passwd' })),
    'The token is signed with an unknown key',
  ],
  [
    'signed with another key of that name',
    async () => bearer(issuer.sign(good(), {}, { ...(await makeKey('RS256')), kid: keyOf('RS256').kid })),
    'The signature of the token is wrong',
  ],
  [
    'with keys elsewhere (jku)',
    () => bearer(issuer.sign(good(), { jku: `${issuer.issuer}/keys` })),
    'The token has a header parameter that is not allowed here',
  ],
  [
    'with keys elsewhere (x5u)',
    () => bearer(issuer.sign(good(), { x5u: `${issuer.issuer}/keys` })),
    'The token has a header parameter that is not allowed here',
  ],
  [
    'with a key in it (jwk)',
    () => bearer(issuer.sign(good(), { jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } })),
    'The token has a header parameter that is not allowed here',
  ],
  [
    'with a certificate in it (x5c)',
    () => bearer(issuer.sign(good(), { x5c: ['AAAA'] })),
    'The token has a header parameter that is not allowed here',
  ],
  [
    'with rules of its own (crit)',
    () => bearer(issuer.sign(good(), { crit: ['urn:test'], 'urn:test': 1 })),
    'The token has a header parameter that is not allowed here',
  ],
  [
    'for signing out',
    () => bearer(issuer.sign(good(), { typ: 'logout+jwt' })),
    'Tokens of this type are not accepted here',
  ],
  [
    'a proof (DPoP)',
    () => bearer(issuer.sign(good(), { typ: 'dpop+jwt' })),
    'Tokens of this type are not accepted here',
  ],
  [
    'changed afterwards',
    async () => {
      const [head, , signature] = (await issuer.sign(good())).split('.');
      const claims = { ...good({ sub: 'robot-1' }), iss: issuer.issuer, exp: seconds(60) };
      return bearer(`${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`);
    },
    'The signature of the token is wrong',
  ],
  [
    'without its signature',
    async () => bearer(`${(await issuer.sign(good())).split('.').slice(0, 2).join('.')}.`),
    'The signature of the token is wrong',
  ],
  ['longer than 8 KiB', () => bearer(issuer.sign(good({ pad: 'x'.repeat(9_000) }))), 'The token is longer than 8 KiB'],
  ['of nobody', () => bearer(issuer.sign(good({ sub: undefined }))), 'The token names neither a subject nor a client'],
];

describe('a token of the identity provider', () => {
  it.each(accepted)('is accepted: %s', async (_, lines) => {
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...(await lines())], initialize());
    expect(reply.status, reply.body).toBe(200);
  });

  it.each(refused)('is refused: %s', async (_, lines, wrong) => {
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...(await lines())], initialize());
    const said = wrong === null ? '' : `error="invalid_token", error_description="${wrong}", `;
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer realm="toolgate", ${said}${tail}`,
    ]);
    expect(JSON.parse(reply.body)).toMatchObject({ id: null, error: { data: { code: 'unauthorized' } } });
  });

  it.each([
    ['none', undefined],
    ['another', 'tools:other'],
    ['one that begins like it', 'tools:use:some'],
  ])('is refused for its scopes: %s', async (_, scope) => {
    const lines = await bearer(issuer.sign(good({ scope })));
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...lines], initialize());
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
      403,
      `Bearer realm="toolgate", error="insufficient_scope", error_description="The token lacks a required scope", ${tail}`,
    ]);
  });

  it('is refused if its subject is not allowed', async () => {
    const lines = await bearer(issuer.sign(good({ sub: 'mallory' })));
    const reply = await postLines(gateway.origin, ['Host: 127.0.0.1', ...lines], initialize());
    // Without an error code: another scope would not help, but clients would request one.
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([403, `Bearer realm="toolgate", ${tail}`]);
  });

  it('names its agent with plain characters only, as identity providers do', async () => {
    const plain = await startHttp({ config: `controls = []\n[http.jwt]\nissuer = "${issuer.issuer}"\n` });
    const statusOf = async (sub: string) => {
      const token = await issuer.sign({ sub, aud: plain.url });
      return (await plain.post(initialize(), { authorization: `Bearer ${token}` })).status;
    };
    for (const sub of ['alice', 'a@example.com', 'auth0|5f7c8ec7', '00000000-aaaa-bbbb', 'repo:org/x:ref'])
      expect([sub, await statusOf(sub)]).toEqual([sub, 200]);
    for (const sub of [' alice', 'alice ', 'a b', '__proto__', '\u202eecila', 'ali\u200bce', 'älice', 'a\nb', '"a"'])
      expect([sub, await statusOf(sub)]).toEqual([sub, 403]);
  });

  it('is refused in the URL', async () => {
    const token = await issuer.sign(good());
    expect((await gateway.post(initialize(), {}, `/mcp?access_token=${token}`)).status).toBe(400);
    const twice = await gateway.post(initialize(), { authorization: `Bearer ${token}` }, `/mcp?access_token=${token}`);
    expect(twice.status).toBe(400);
  });

  it('is never logged', () => {
    const log = gateway.stderr();
    expect(log).toContain('a client at 127.0.0.1 was refused: The token has expired');
    expect(log).not.toMatch(/eyJ|alice|mallory/);
  });
});
