/** A registry from a folder of `server.json` files, with version 0.1 of the interface: for networks without the official one. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { percentDecoded } from '../../base/text.ts';
import { type RegistryEntry, serverJsonSchema } from './server-json.ts';

export interface LocalRegistry {
  readonly url: string;
  close(): Promise<void>;
}

export interface LocalRegistryOptions {
  readonly host: string;
  readonly port: number;
  /** A file that is not an entry. It is left out. */
  problem(message: string): void;
}

/** Files are read for each request, so an edit takes effect at once. */
export function serveRegistry(folder: string, options: LocalRegistryOptions): Promise<LocalRegistry> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return reply(response, 405, { error: 'method not allowed' });
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://registry');
    const [, , root, name, versions, version, ...more] = pathname
      .split('/')
      .map((part) => percentDecoded(part) ?? part);
    if (!/^\/v0(?:\.1)?\//.test(pathname) || root !== 'servers' || more.length > 0)
      return reply(response, 404, { error: 'not found' });
    const entries = readEntries(folder, options.problem);
    if (name === undefined || name === '') return reply(response, 200, page(entries, searchParams));
    const own = entries.filter((entry) => entry.server.name === name);
    if (own.length === 0 || versions !== 'versions') return reply(response, 404, { error: 'not found' });
    if (version === undefined) return reply(response, 200, { servers: own, metadata: { count: own.length } });
    const found = version === 'latest' ? own.find(isLatest) : own.find((entry) => entry.server.version === version);
    return found === undefined ? reply(response, 404, { error: 'not found' }) : reply(response, 200, found);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      const { port } = server.address() as { port: number };
      const host = options.host.includes(':') ? `[${options.host}]` : options.host;
      resolve({
        url: `http://${host}:${port}`,
        close: () =>
          new Promise((done) => {
            server.closeAllConnections();
            server.close(() => done());
          }),
      });
    });
  });
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const META = 'io.modelcontextprotocol.registry/official';

function isLatest({ _meta }: RegistryEntry): boolean {
  return (_meta?.[META] as { isLatest?: boolean } | undefined)?.isLatest === true;
}

/** Every `.json` file of the folder and of those in it. The last version in the order of numbers is the latest. */
function readEntries(folder: string, problem: LocalRegistryOptions['problem']): RegistryEntry[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.json'));
  const servers = files.sort().flatMap((path) => {
    try {
      return serverJsonSchema.parse(JSON.parse(readFileSync(join(folder, path), 'utf8')));
    } catch (error) {
      problem(`${path} is not a server.json: ${messageOf(error).split('\n')[0]}`);
      return [];
    }
  });
  const byVersion = new Intl.Collator('en', { numeric: true });
  const latest = new Map<string, string>();
  for (const { name, version } of servers) {
    const known = latest.get(name);
    if (known === undefined || byVersion.compare(known, version) < 0) latest.set(name, version);
  }
  return servers.map((server) => ({
    server,
    _meta: { [META]: { status: 'active', isLatest: latest.get(server.name) === server.version } },
  }));
}

/** The cursor is the place of the next entry. */
function page(entries: readonly RegistryEntry[], query: URLSearchParams): unknown {
  const words = (query.get('search') ?? '').toLowerCase();
  const matching = entries.filter(({ server }) => `${server.name} ${server.description}`.toLowerCase().includes(words));
  const wanted = query.get('version') === 'latest' ? matching.filter(isLatest) : matching;
  const limit = Math.min(Math.max(Number(query.get('limit')) || 30, 1), 100);
  const start = Math.max(Number(query.get('cursor')) || 0, 0);
  const servers = wanted.slice(start, start + limit);
  const next = start + limit < wanted.length ? { nextCursor: String(start + limit) } : {};
  return { servers, metadata: { count: servers.length, ...next } };
}
