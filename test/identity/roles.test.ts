/**
 * Every route, method and kind of caller: the statuses that docs/agents.md promises. A route that is missing there
 * fails.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type DoorHandlers, doorRoutes } from '../../src/doors/http/routes.ts';
import { openAgentStore } from '../../src/index.ts';
import { root } from '../support/docs-page.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { readRows } from '../support/markdown.ts';
import { initialize, PING } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

const ROUTES = doorRoutes({
  base: '',
  ownsRoot: true,
  sse: {},
  rest: {},
  gateway: { replica: null },
} as DoorHandlers).routes;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const ROLES = ['no token', 'wrong', 'expired', 'another agent', 'the agent', 'an admin'] as const;
type Role = (typeof ROLES)[number];

const rows = readRows(readFileSync(join(root, 'docs/agents.md'), 'utf8'), 'What each route needs').map(
  ([route, method, ...statuses]) => ({ route: plain(route!), method: plain(method!), statuses: statuses.map(Number) }),
);

/** A toolset, a namespace, a tool. */
function filled(route: string): string {
  if (route.startsWith('/ns/') || route.startsWith('/*/')) return route.replace('*', 'up').replace('*', 'echo');
  return route.replace('*', route.startsWith('/tools/') ? 'up_echo' : 'dev');
}

function plain(cell: string): string {
  return cell.replaceAll('`', '');
}

let gateway: HttpGateway;
const headers = new Map<Role, Record<string, string>>([['no token', {}]]);

beforeAll(async () => {
  const cwd = tempFolder();
  const store = openAgentStore(join(cwd, '.toolgate'));
  const tokens = {
    expired: await store.add('late', '', 1),
    'another agent': await store.add('reviewer', '', null),
    'the agent': await store.add('builder', '', null),
    'an admin': await store.add('ops', '', null),
  };
  for (const [role, { token }] of Object.entries(tokens))
    headers.set(role as Role, { authorization: `Bearer ${token}` });
  headers.set('wrong', { authorization: `Bearer tg_${'x'.repeat(43)}` });
  await sleep(5);
  const config = [
    'controls = []',
    '[http]\nadmins = ["ops"]\nmcpo = true',
    '[http.jwt]\nissuer = "https://login.example.com"',
    '[toolsets.dev]\ntools = ["up.echo"]',
    serversToml({ up: server('basic') }),
  ];
  gateway = await startHttp({ cwd, config: config.join('\n'), env: { MANAGER_INTERNAL_TOKEN: 'of-the-manager' } });
});

/** A session for the request, opened by the agent. */
async function openSession(path: string): Promise<string> {
  const opened = await gateway.post(initialize(), headers.get('the agent')!, path);
  await opened.arrayBuffer();
  return opened.headers.get('mcp-session-id')!;
}

async function openSse(from: string): Promise<{ path: string; close(): void }> {
  const abort = new AbortController();
  const response = await fetch(gateway.origin + from, { headers: headers.get('the agent')!, signal: abort.signal });
  const { value } = await response.body!.getReader().read();
  const path = /data: (\S+)/.exec(Buffer.from(value!).toString())![1]!;
  return { path, close: () => abort.abort() };
}

async function statusOf(method: string, path: string, more: Record<string, string>): Promise<number> {
  const body = method === 'POST' ? { body: PING } : {};
  const abort = new AbortController();
  const all = { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...more };
  const response = await fetch(gateway.origin + path, { method, headers: all, signal: abort.signal, ...body });
  abort.abort();
  return response.status;
}

async function ask(route: string, method: string, role: Role): Promise<number> {
  const own = headers.get(role)!;
  const path = filled(route);
  if (route.includes('/mcp') && !route.startsWith('/.well-known')) {
    return statusOf(method, path, { ...own, 'mcp-session-id': await openSession(path) });
  }
  if (!route.endsWith('/messages')) return statusOf(method, route === 'anything else' ? '/admin' : path, own);
  const sse = await openSse(path.replace('/messages', '/sse'));
  try {
    return await statusOf(method, sse.path, own);
  } finally {
    sse.close();
  }
}

describe('the table of routes in docs/agents.md', () => {
  it('lists every route with each of its methods, and nothing else', () => {
    const wanted = ROUTES.flatMap(({ path, methods }) => [...methods, 'others'].map((method) => `${path} ${method}`));
    expect(rows.map(({ route, method }) => `${route} ${method}`)).toEqual([...wanted, 'anything else others']);
  });

  it.each(rows)('$route $method', async ({ route, method, statuses }) => {
    const known: readonly string[] = ROUTES.find(({ path }) => path === route)?.methods ?? [];
    const others = METHODS.filter((one) => !known.includes(one));
    // They are refused before anything of the route is asked, so one of them stands for the rest.
    const methods = method === 'others' ? onePart(others.length, others) : [method];
    for (const one of methods) {
      const found = [];
      for (const role of ROLES) found.push(await ask(route, one, role));
      expect(found, one).toEqual(statuses);
    }
  });

  it.each(ROUTES)('is reflected in the Allow header of $path', async ({ path, methods, access }) => {
    const response = await fetch(gateway.origin + filled(path), {
      method: 'PATCH',
      headers: access === 'open' ? {} : headers.get('an admin')!,
    });
    expect([response.status, response.headers.get('allow')]).toEqual([405, methods.join(', ')]);
  });
});
