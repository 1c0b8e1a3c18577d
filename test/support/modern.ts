/** Clients of the official SDK (v2) in the modern era, which listen for changes from the start. */
import {
  Client,
  type ClientCapabilities,
  type McpSubscription,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { Child } from './child.ts';
import { atEnd } from './cleanup.ts';
import { openTransport, overhear, type Pipe, type Told } from './connection.ts';

export const MODERN = '2026-07-28';

export interface ModernConnection extends Told {
  readonly client: Client;
  /** For changes of all three lists. */
  readonly subscription: McpSubscription;
}

export interface ModernPipe extends ModernConnection, Pipe {}

/** A client on the stdin and stdout of a program. */
export async function openModernPipe(child: Child, capabilities?: ClientCapabilities): Promise<ModernPipe> {
  const { transport, ...pipe } = openTransport(child);
  // The SDK recognizes a pipe by these two. It treats anything else as HTTP.
  Object.assign(transport, { pid: process.pid, stderr: null });
  return { ...(await connect(transport, capabilities)), ...pipe };
}

/** A client on a Streamable HTTP endpoint. */
export async function connectModernHttp(
  url: string,
  headers: Record<string, string> = {},
  capabilities?: ClientCapabilities,
): Promise<ModernConnection> {
  const connection = await connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
    capabilities,
  );
  atEnd(() => connection.client.close());
  return connection;
}

type Transport = Parameters<Client['connect']>[0];

async function connect(transport: Transport, capabilities: ClientCapabilities = {}): Promise<ModernConnection> {
  const client = new Client(
    { name: 'toolgate-test', version: '2.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: MODERN } } },
  );
  const told = overhear(transport);
  await client.connect(transport);
  const subscription = await client.listen({
    toolsListChanged: true,
    resourcesListChanged: true,
    promptsListChanged: true,
  });
  return { client, subscription, ...told };
}

const envelope = JSON.stringify({
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'toolgate-test', version: '2.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
});

/** The raw parameters of a request, with the envelope in front. */
export function enveloped(params: string): string {
  const rest = params.slice(params.indexOf('{') + 1);
  return `{"_meta":${envelope}${rest.trim() === '}' ? '' : ','}${rest}`;
}

/** The headers that repeat parts of such a request. */
export function mirrored(method: string, params: string): Record<string, string> {
  const { name, uri } = JSON.parse(params) as { name?: unknown; uri?: unknown };
  const target = method === 'resources/read' ? uri : name;
  return {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(typeof target === 'string' && { 'mcp-name': target }),
  };
}
