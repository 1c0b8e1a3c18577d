/** An MCP server that asks who its callers are, with a real authorization server that gives tokens for it. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { atEnd } from './cleanup.ts';

export interface GuardedServer {
  /** The MCP endpoint. */
  readonly url: string;
  /** Who made each call of a tool, by its token. */
  readonly callers: string[];
  /** How often a request was refused because of its token. */
  readonly refusals: number;
  /** From now on, only tokens that are issued later are accepted. */
  expireAll(): void;
}

/** The tool `more` needs another scope than the rest. */
const NEEDED: Readonly<Record<string, string>> = { more: 'tools:more' };

export async function startGuarded(issuer: string): Promise<GuardedServer> {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const state = { callers: [] as string[], refusals: 0, revoked: new Set<string>(), seen: new Set<string>() };
  const verify = async (request: IncomingMessage): Promise<JWTPayload | null> => {
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (state.revoked.has(token)) return null;
    const checked = await jwtVerify(token, keys, { issuer, audience: url }).catch(() => null);
    if (checked !== null) state.seen.add(token);
    return checked?.payload ?? null;
  };
  const server = createServer(async (request, response) => {
    const send = (status: number, body: object, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    const { origin } = new URL(url);
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    if (`${origin}${request.url}` === metadata) {
      send(200, { resource: url, authorization_servers: [issuer], scopes_supported: ['tools:use'] });
      return;
    }
    if (request.method !== 'POST' || request.url !== '/mcp') {
      send(request.url === '/mcp' ? 405 : 404, {});
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
    const claims = await verify(request);
    const challenge = (text: string) => ({ 'www-authenticate': `Bearer ${text}, resource_metadata="${metadata}"` });
    if (claims === null) {
      state.refusals++;
      send(401, { error: 'invalid_token' }, challenge('error="invalid_token", scope="tools:use"'));
      return;
    }
    const needed = method === 'tools/call' ? NEEDED[params.name] : undefined;
    if (needed !== undefined && !String(claims.scope).split(' ').includes(needed)) {
      send(403, { error: 'insufficient_scope' }, challenge(`error="insufficient_scope", scope="${needed}"`));
      return;
    }
    if (method === 'tools/call') state.callers.push(String(claims.sub));
    send(200, { jsonrpc: '2.0', id, result: { resultType: 'complete', ...answer(method, params, request) } });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url,
    get callers() {
      return state.callers;
    },
    get refusals() {
      return state.refusals;
    },
    expireAll() {
      for (const token of state.seen) state.revoked.add(token);
    },
  };
}

function answer(method: string, params: { name?: string }, request: IncomingMessage): object {
  const cache = { ttlMs: 0, cacheScope: 'private' };
  if (method === 'server/discover') return { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...cache };
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
  if (method === 'tools/list') return { tools: ['whoami', 'more', 'token'].map(tool), ...cache };
  // A server that says what it should not.
  const text = params.name === 'token' ? `you sent ${request.headers.authorization}` : 'done';
  return { content: [{ type: 'text', text }] };
}
