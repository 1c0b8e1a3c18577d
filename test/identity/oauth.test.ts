/**
 * Tests with a real authorization server: its tokens, and the OAuth flow of the official SDKs from the first 401 to
 * the call.
 */
import {
  Client as ModernClient,
  ClientCredentialsProvider as ModernCredentials,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, REDIRECT, SECRET, signIn, startProvider } from '../support/authorization-server.ts';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

let provider: AuthorizationServer;
let gateway: HttpGateway;

beforeAll(async () => {
  provider = await startProvider();
  const config = [
    'controls = []',
    `[http.jwt]\nissuer = "${provider.issuer}"\nrequired_scopes = ["tools:use"]\nclock_skew = 0`,
    'agents = { "robot-*" = "robots", "alice" = "people" }',
    serversToml({ up: server('basic') }),
  ];
  gateway = await startHttp({ config: config.join('\n') });
});

const status = async (token: string, to = gateway) =>
  (await to.post(initialize(), { authorization: `Bearer ${token}` })).status;

describe('a token of a real authorization server', () => {
  it('authenticates its program', async () => {
    expect(await status(await provider.tokenFor('robot-7', gateway.url, 'tools:use'))).toBe(200);
  });

  it('is refused if it is for another resource', async () => {
    expect(await status(await provider.tokenFor('robot-7', 'https://other.example/mcp', 'tools:use'))).toBe(401);
  });

  it('is refused without the required scope', async () => {
    const token = await provider.tokenFor('robot-7', gateway.url, 'tools:more');
    const reply = await gateway.post(initialize(), { authorization: `Bearer ${token}` });
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
      403,
      expect.stringContaining('error="insufficient_scope"'),
    ]);
  });

  it('is refused if the configuration does not list its subject', async () => {
    expect(await status(await provider.tokenFor('stranger', gateway.url, 'tools:use'))).toBe(403);
  });

  it('is refused if another issuer is configured', async () => {
    const other = await startProvider();
    expect(await status(await other.tokenFor('robot-7', gateway.url, 'tools:use'))).toBe(401);
  });

  it('is valid until it expires', async () => {
    provider.lifetime = 2;
    const token = await provider.tokenFor('robot-7', gateway.url, 'tools:use');
    provider.lifetime = 300;
    expect(await status(token)).toBe(200);
    await waitFor(async () => (await status(token)) === 401);
  });

  it('is valid after a key rotation', async () => {
    await provider.rotate();
    expect(await status(await provider.tokenFor('robot-7', gateway.url, 'tools:use'))).toBe(200);
  });
});

describe('the protected resource metadata', () => {
  it.each(['', '/mcp'])('is public at /.well-known/oauth-protected-resource%s', async (path) => {
    const reply = await fetch(`${gateway.origin}/.well-known/oauth-protected-resource${path}`);
    expect(await reply.json()).toEqual({
      resource: gateway.url,
      authorization_servers: [provider.issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: ['tools:use'],
      resource_name: 'Toolgate',
    });
  });

  it('contains the public address, not the Host of the request', async () => {
    const config = `controls = []\n[http]\npublic_url = "https://tools.example.com/team/mcp/"\nallowed_origins = ["https://app.example"]\n[http.jwt]\nissuer = "${provider.issuer}"\n`;
    const named = await startHttp({ config });
    const read = async (path: string) => {
      const reply = await fetch(named.origin + path);
      return [reply.status, ((await reply.json()) as { resource?: string }).resource];
    };
    const there = [200, 'https://tools.example.com/team/mcp'];
    expect(await read('/.well-known/oauth-protected-resource')).toEqual(there);
    expect(await read('/.well-known/oauth-protected-resource/team/mcp')).toEqual(there);
    const reply = await named.post(initialize(), { origin: 'https://app.example' });
    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="toolgate", resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/team/mcp"',
    ]);
    expect(reply.headers.get('access-control-expose-headers')).toContain('www-authenticate');
    const token = await provider.tokenFor('robot-7', 'https://tools.example.com/team/mcp', 'tools:use');
    expect(await status(token, named)).toBe(200);
    expect(await status(await provider.tokenFor('robot-7', named.url, 'tools:use'), named)).toBe(401);
  });

  it('does not exist if JWTs are not configured', async () => {
    const plain = await startHttp({ config: 'controls = []\n', env: { BEARER_TOKEN: 'a-token-of-some-length' } });
    for (const path of ['', '/mcp'])
      expect((await fetch(`${plain.origin}/.well-known/oauth-protected-resource${path}`)).status).toBe(404);
    const reply = await plain.post(initialize());
    expect(reply.headers.get('www-authenticate')).toBe('Bearer realm="toolgate"');
  });
});

/** An OAuth client of a person. It stores its credentials and sends its user to the authorization server. */
class Person implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = {
    client_name: 'a test',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  information: OAuthClientInformationMixed | undefined;
  granted: OAuthTokens | undefined;
  verifier = '';
  place: URL | null = null;
  clientInformation = () => this.information;
  saveClientInformation = (information: OAuthClientInformationMixed) => {
    this.information = information;
  };
  tokens = () => this.granted;
  saveTokens = (tokens: OAuthTokens) => {
    this.granted = tokens;
  };
  redirectToAuthorization = (place: URL) => {
    this.place = place;
  };
  saveCodeVerifier = (verifier: string) => {
    this.verifier = verifier;
  };
  codeVerifier = () => this.verifier;
}

const ECHO = { name: 'up_echo', arguments: { word: 'through' } };
const INFO = { name: 'oauth-test', version: '1' };

describe('the OAuth of the official SDKs', () => {
  it('v2: alice signs in and calls, without a session', async () => {
    const person = new Person();
    const open = () => new ModernTransport(new URL(gateway.url), { authProvider: person });
    const make = () => new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const first = open();
    await expect(make().connect(first)).rejects.toThrow();
    await first.finishAuth(await signIn(person.place!, 'alice'));
    const client = make();
    await client.connect(open());
    atEnd(() => client.close());
    expect(JSON.stringify(await client.callTool(ECHO))).toContain('through');
  });

  it('v1: a program gets a token and calls', async () => {
    const authProvider = new ClientCredentialsProvider({
      clientId: 'robot-7',
      clientSecret: SECRET,
      scope: 'tools:use',
      expectedIssuer: provider.issuer,
    });
    const client = new Client(INFO);
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url), { authProvider }) as Transport);
    atEnd(() => client.close());
    expect(JSON.stringify(await client.callTool(ECHO))).toContain('through');
  });

  it('v2: a program gets a token and calls, without a session', async () => {
    const authProvider = new ModernCredentials({
      clientId: 'robot-7',
      clientSecret: SECRET,
      expectedIssuer: provider.issuer,
    });
    const client = new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new ModernTransport(new URL(gateway.url), { authProvider }));
    atEnd(() => client.close());
    expect(JSON.stringify(await client.callTool(ECHO))).toContain('through');
  });

  it.each(['alice', 'mallory'])('v1: %s signs in, and is accepted or refused', async (login) => {
    const person = new Person();
    const open = () => new StreamableHTTPClientTransport(new URL(gateway.url), { authProvider: person });
    const first = open();
    await expect(new Client(INFO).connect(first as Transport)).rejects.toThrow();
    expect(person.place?.searchParams.get('resource')).toBe(gateway.url);
    expect(person.place?.searchParams.get('scope')).toBe('tools:use');
    const back = await signIn(person.place!, login);
    await first.finishAuth(back.get('code')!);
    const client = new Client(INFO);
    atEnd(() => client.close());
    if (login === 'mallory') {
      await expect(client.connect(open() as Transport)).rejects.toThrow();
      return;
    }
    await client.connect(open() as Transport);
    expect(JSON.stringify(await client.callTool(ECHO))).toContain('through');
  });
});
