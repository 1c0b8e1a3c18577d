/** Clients of both eras at both doors that send and receive raw bytes. */
import { startHttp, startStdio } from './gateway.ts';
import { INITIALIZED } from './raw-http.ts';

export type Era = 'legacy' | 'modern';
export type Door = 'stdio' | 'http';

export interface Client {
  readonly era: Era;
  readonly door: Door;
  /** Sends a request with these parameters and returns the whole response verbatim. */
  request(method: string, params: string): Promise<Buffer>;
  /** The same, with all messages before the response. One call at a time. */
  exchange(method: string, params: string): Promise<Buffer[]>;
}

const HELLO = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}';

const ENVELOPE = [
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28"',
  '"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}',
  '"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}',
].join(',');

/** The `"_meta":{…}` with these members that a client of that era sends. */
export function metaOf(era: Era, members = ''): string {
  return `"_meta":{${[members, era === 'modern' ? ENVELOPE : ''].filter((part) => part !== '').join(',')}}`;
}

/** One client for each era and door, on gateways with the same configuration. */
export async function openClients(config: string): Promise<Client[]> {
  const [http, ...pipes] = await Promise.all([
    openHttp(config),
    openPipe(config, 'legacy'),
    openPipe(config, 'modern'),
  ]);
  return [...http, ...pipes];
}

async function openPipe(config: string, era: Era): Promise<Client> {
  const { request, lines } = await startStdio({ config, connect: false });
  if (era === 'legacy') await request('initialize', HELLO);
  return {
    era,
    door: 'stdio',
    request,
    async exchange(method, params) {
      const before = lines.length;
      await request(method, params);
      return lines.slice(before);
    },
  };
}

async function openHttp(config: string): Promise<Client[]> {
  const gateway = await startHttp({ config });
  const started = await gateway.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${HELLO}}`);
  const session = { 'mcp-session-id': started.headers.get('mcp-session-id')! };
  await gateway.post(INITIALIZED, session);
  let count = 0;
  return (['legacy', 'modern'] as const).map((era) => {
    const exchange = async (method: string, params: string) => {
      const body = `{"jsonrpc":"2.0","id":${++count},"method":"${method}","params":${params}}`;
      return messagesOf(await gateway.post(body, era === 'legacy' ? session : modernHeaders(method, params)));
    };
    return {
      era,
      door: 'http' as const,
      exchange,
      request: async (method: string, params: string) => (await exchange(method, params)).at(-1)!,
    };
  });
}

/** The headers that repeat parts of a modern request over HTTP. */
export function modernHeaders(method: string, params: string): Record<string, string> {
  const { name, uri } = JSON.parse(params) as { name?: string; uri?: string };
  const named = name ?? uri;
  return {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(named !== undefined && { 'mcp-name': named }),
  };
}

/** The messages of a reply, whether it was plain JSON or a stream. */
export async function messagesOf(response: Response): Promise<Buffer[]> {
  const bytes = Buffer.from(await response.arrayBuffer());
  if (response.headers.get('content-type') === 'application/json') return [bytes];
  // Not by a regular expression with `.` or `$`: U+2028 may occur in the data, and ends a line there.
  const lines = bytes.toString().split('\n');
  const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length));
  // The first event of a stream may be empty.
  return data.filter((text) => text !== '').map((text) => Buffer.from(text));
}
