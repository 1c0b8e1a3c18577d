/** Tokens that are bound to a key (DPoP), over HTTP+SSE: each request has a proof of its own, for its own address. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { calculateJwkThumbprint, createRemoteJWKSet, EmbeddedJWK, jwtVerify } from 'jose';
import { expect, it } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { atEnd } from '../support/cleanup.ts';
import { startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { KEY, logIn } from './login.ts';

it('is used over HTTP+SSE with a proof for every request, which repeats what the server said last', async () => {
  const { issuer } = await startProvider();
  const server = await startBound(issuer);
  const cwd = tempFolder({
    'tools.toml': `controls = []\nshared = false\n[servers.remote]\nurl = "${server.url}"\ntransport = "sse"\n`,
  });
  const { client } = await startStdio({ cwd, env: KEY });
  const { code, text } = await logIn(cwd, 'alice');
  expect(code, text).toBe(0);
  await waitFor(async () => (await client.listTools()).tools.length === 1);
  server.renewNonce();
  const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
  expect(content).toMatchObject([{ text: 'alice' }]);
  // Both addresses were reached, each proof was used once, and a request with an old nonce was sent again.
  expect(server.taken).toEqual(expect.arrayContaining(['GET /sse', 'POST /messages']));
  expect(new Set(server.proofs).size).toBe(server.proofs.length);
  expect(server.staleNonces).toBe(1);
});

/** A server of the first revision that takes only bound tokens. */
async function startBound(issuer: string) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const state = { nonce: 'first', taken: [] as string[], proofs: [] as string[], staleNonces: 0 };
  let stream: ServerResponse | null = null;

  async function verify(request: IncomingMessage, path: string): Promise<{ who: string } | { error: string }> {
    const token = /^DPoP (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: url });
      const proof = await jwtVerify(String(request.headers.dpop), EmbeddedJWK, { typ: 'dpop+jwt' });
      const { htm, htu, ath, nonce, jti } = proof.payload;
      const thumbprint = await calculateJwkThumbprint(proof.protectedHeader.jwk!);
      expect((payload.cnf as { jkt: string }).jkt).toBe(thumbprint);
      expect(ath).toBe(createHash('sha256').update(token).digest('base64url'));
      expect([htm, htu]).toEqual([request.method, `${new URL(url).origin}${path}`]);
      if (nonce !== state.nonce) {
        state.staleNonces++;
        return { error: 'use_dpop_nonce' };
      }
      state.proofs.push(String(jti));
      return { who: String(payload.sub) };
    } catch {
      return { error: 'invalid_token' };
    }
  }

  const server = createServer(async (request, response) => {
    const { origin } = new URL(url);
    const { pathname } = new URL(request.url!, origin);
    const metadata = '/.well-known/oauth-protected-resource/sse';
    if (pathname === metadata) {
      const body = { resource: url, authorization_servers: [issuer], dpop_bound_access_tokens_required: true };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      return;
    }
    const checked = await verify(request, pathname);
    if ('error' in checked) {
      const challenge = `DPoP error="${checked.error}", scope="tools:use", resource_metadata="${origin}${metadata}"`;
      response.writeHead(401, { 'www-authenticate': challenge, 'dpop-nonce': state.nonce }).end();
      return;
    }
    state.taken.push(`${request.method} ${pathname}`);
    if (request.method === 'GET') {
      stream = response;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: endpoint\ndata: /messages?session=1\n\n');
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    const { id, method } = JSON.parse(body) as { id?: number; method: string };
    response.writeHead(202).end();
    if (id === undefined) return;
    const result = answers(checked.who)[method] ?? {};
    stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`;
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(state, {
    url,
    renewNonce() {
      state.nonce = 'second';
    },
  });
}

const answers = (who: string): Record<string, object> => ({
  initialize: {
    protocolVersion: '2024-11-05',
    capabilities: { tools: {} },
    serverInfo: { name: 'bound', version: '1' },
  },
  'tools/list': { tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: who }] },
});
