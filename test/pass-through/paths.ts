/** The ways a message can take through a gateway, each with a client that sends and gets raw bytes. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnv, startChild } from '../support/child.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';

export type Client = 'stdio' | 'http';
export type Upstream = 'stdio' | 'http json' | 'http sse';

export const paths: readonly (readonly [Client, Upstream])[] = [
  ['stdio', 'stdio'],
  ['http', 'stdio'],
  ['stdio', 'http json'],
  ['stdio', 'http sse'],
  ['http', 'http json'],
  ['http', 'http sse'],
];

/** The arrays of the upstream's lists as JSON text. */
export interface RawOffer {
  readonly tools: string;
  readonly resources: string;
  readonly templates: string;
  readonly prompts: string;
}

const plainOffer: RawOffer = {
  tools: '[{"name":"any","inputSchema":{"type":"object"}}]',
  resources: '[{"uri":"test://any","name":"any"}]',
  templates: '[]',
  prompts: '[{"name":"any"}]',
};

/** What the three methods that reach an upstream need in their parameters. */
export const targets = {
  'tools/call': '"name":"up_any"',
  'resources/read': '"uri":"up_test://any"',
  'prompts/get': '"name":"up_any"',
} as const;

export type Method = keyof typeof targets;

export interface Route {
  /** Sends a request with these parameters; gives the whole response as it came. */
  request(method: string, params: string): Promise<Buffer>;
}

/** The params of a request that the upstream answers with exactly `"result":…` or `"error":…`. */
export function dictate(method: Method, outcome: string): string {
  return `{${targets[method]},"_meta":{"test/answer":${JSON.stringify(outcome)}}}`;
}

/** The `"result":…` or `"error":…` of a response, to be compared with what was dictated; the id may stand before or after it. */
export function outcomeOf(response: Buffer): string {
  return response
    .toString()
    .replace(/^\{"jsonrpc":"2\.0",(?:"id":(?:"[^"]*"|\d+),)?/, '')
    .replace(/(?:,"id":(?:"[^"]*"|\d+))?\}$/, '');
}

export interface RouteOptions {
  readonly offer?: RawOffer;
  readonly newline?: 'lf' | 'cr' | 'crlf';
}

export async function openRoute(client: Client, upstream: Upstream, options: RouteOptions = {}): Promise<Route> {
  const config = `controls = []\n[[servers]]\nnamespace = "up"\n${await upstreamToml(upstream, options)}\n`;
  if (client === 'stdio') return startStdio({ config });
  const gateway = await startHttp({ config });
  const hello = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}';
  const started = await gateway.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${hello}}`);
  const headers = { 'mcp-session-id': started.headers.get('mcp-session-id') ?? '' };
  let count = 0;
  return {
    async request(method, params) {
      const response = await gateway.post(
        `{"jsonrpc":"2.0","id":${++count},"method":"${method}","params":${params}}`,
        headers,
      );
      return Buffer.from(await response.arrayBuffer());
    },
  };
}

async function upstreamToml(upstream: Upstream, { offer = plainOffer, newline = 'lf' }: RouteOptions): Promise<string> {
  const lines = [offer.tools, offer.resources, offer.templates, offer.prompts].join('\n');
  const file = join(tempFolder({ 'offer.txt': lines }), 'offer.txt');
  const script = fileURLToPath(new URL('upstream.mjs', import.meta.url));
  const args = [script, '--offer', file];
  if (upstream === 'stdio') return `command = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(args)}`;
  const child = startChild(
    process.execPath,
    [...args, '--http', upstream === 'http json' ? 'json' : 'sse', '--newline', newline],
    { cwd: tempFolder(), env: childEnv() },
  );
  const port = await waitFor(() => /listening (\d+)/.exec(child.stdout())?.[1]);
  return `url = "http://127.0.0.1:${port}/mcp"`;
}
