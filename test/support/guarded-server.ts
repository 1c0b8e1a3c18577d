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
  /** From now on, calls wait before their tokens are looked at: resolves when so many wait, and `release` lets them go on. */
  hold(calls: number): { readonly arrived: Promise<void>; release(): void };
  /** From now on, only tokens that are issued later are accepted. */
  expireAll(): void;
}

/** The tool `more` needs another scope than the rest. */
const NEEDED: Readonly<Record<string, string>> = { more: 'tools:more' };

/** It speaks the modern revision only. A gateway on a busy machine may try the others. */
const METHODS = ['server/discover', 'tools/list', 'tools/call'];

export async function startGuarded(issuer: string): Promise<GuardedServer> {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const state = { callers: [] as string[], refusals: 0, revoked: new Set<string>(), seen: new Set<string>() };
  let held: (() => Promise<void>) | null = null;
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
    if (method === 'tools/call') await held?.();
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
    if (!METHODS.includes(method)) {
      send(404, { jsonrpc: '2.0', id, error: { code: -32_601, message: `There is no method ${method}.` } });
      return;
    }
    if (method === 'tools/call') state.callers.push(String(claims.sub));
    const said = `you sent ${request.headers.authorization}`;
    const how = params?.arguments?.as;
    if (how === 'error') {
      send(200, { jsonrpc: '2.0', id, error: { code: -32_000, message: said, data: { said } } });
      return;
    }
    if (how === 'failure') {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(said);
      return;
    }
    if (how === 'log') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const log = { method: 'notifications/message', params: { level: 'error', data: said } };
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...log })}\n\n`);
      const result = { resultType: 'complete', content: [{ type: 'text', text: 'logged' }] };
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
      return;
    }
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
    hold(calls) {
      let arrive = () => {};
      let release = () => {};
      const arrived = new Promise<void>((resolve) => {
        arrive = resolve;
      });
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      let waiting = 0;
      held = () => {
        if (++waiting === calls) arrive();
        return released;
      };
      return {
        arrived,
        release() {
          held = null;
          release();
        },
      };
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
  // A server that says what it should not. With the argument `as` it does so in other ways, above.
  const text = params.name === 'token' ? `you sent ${request.headers.authorization}` : 'done';
  return { content: [{ type: 'text', text }] };
}
