/** Toolsets in a server that somebody already has: one of the official SDK, of either generation. */
import { randomUUID } from 'node:crypto';

import type { JsonObject } from '../base/objects.ts';
import type { Gateway } from '../gateway/types.ts';

import { wrongOptions } from './errors.ts';
import { combine, type MountedConnection } from './mounted-connection.ts';

/** What is used of a transport: the same in the SDK v1 and v2. */
interface SdkTransport {
  start(): Promise<void>;
  send(message: unknown, options?: object): Promise<void>;
  onmessage?(message: unknown, extra?: unknown): void;
  onclose?(): void;
}

/** The low-level server of the SDK, by what is used of it. */
export interface SdkServer {
  connect(transport: unknown): Promise<void>;
  registerCapabilities(capabilities: {
    readonly tools: { readonly listChanged: boolean };
    readonly logging: Readonly<Record<string, never>>;
  }): void;
  readonly transport?: unknown;
  onerror?(error: Error): void;
}

/** A `Server` or an `McpServer` of `@modelcontextprotocol/sdk` or of `@modelcontextprotocol/server`. */
export type MountableServer = SdkServer | { readonly server: SdkServer };

/** Whose toolsets a server has, and who hears of changes. */
export interface MountOptions {
  /**
   * Who the client is, where the program knows: what it has switched on is there again when it comes back. Absent: what a
   * connection switches on ends with it.
   */
  readonly clientId?: string;
  /** The toolsets that the client gets, instead of what `permissions` says. */
  readonly toolsets?: readonly string[];
  /** Called when the tools have changed, for those who tell clients otherwise: `() => handler.notify.toolsChanged()`. */
  toolsChanged?(): void;
}

/** What toolsets are mounted from. */
export interface Mounting {
  readonly gateway: Gateway;
  admit(client: {
    readonly clientId: string;
    readonly toolsets?: readonly string[];
  }): Promise<{ readonly principal: string }>;
  /** Names that tools of this client's toolsets cannot have. */
  reserve(principal: string, names: ReadonlySet<string>): void;
}

export function mount(given: MountableServer, mounting: Mounting, options: MountOptions): void {
  const server = 'server' in given ? given.server : given;
  if (typeof server?.connect !== 'function' || typeof server.registerCapabilities !== 'function')
    throw wrongOptions('Toolsets are mounted in a Server or McpServer of the official SDK, and this is none.');
  if (server.transport !== undefined) throw wrongOptions('Mount toolsets before the server is connected.');
  if (mounted.has(server)) throw wrongOptions('This server has toolsets already.');
  mounted.add(server);
  server.registerCapabilities({ tools: { listChanged: true }, logging: {} });
  const connect = server.connect.bind(server);
  server.connect = async (transport: unknown) => {
    const { toolsets } = options;
    // Nobody else has that id, and nobody comes back with it.
    const clientId = options.clientId ?? `mounted-${randomUUID()}`;
    const { principal } = await mounting.admit({ clientId, ...(toolsets !== undefined && { toolsets }) });
    step(transport as SdkTransport, server, (ends) =>
      combine(
        mounting.gateway,
        {
          agent: options.clientId ?? 'default',
          principal,
          changed: () => options.toolsChanged?.(),
          reserve: (names) => mounting.reserve(principal, names),
        },
        ends,
      ),
    );
    await connect(transport);
  };
}

const mounted = new WeakSet<SdkServer>();

/** Steps between a transport and the server that is about to be connected to it: that has put its own functions there when it starts. */
function step(
  transport: SdkTransport,
  server: SdkServer,
  open: (ends: Parameters<typeof combine>[2]) => MountedConnection,
): void {
  const start = transport.start.bind(transport);
  const send = transport.send.bind(transport);
  transport.start = () => {
    const { onmessage, onclose } = transport;
    const combined = open({
      serve: (message, extra) => onmessage?.call(transport, message, extra),
      send,
      failed: (error) => server.onerror?.(error),
    });
    transport.onmessage = (message, extra) => combined.fromClient(message as JsonObject, extra);
    transport.send = (message, options) => combined.fromServer(message as JsonObject, options);
    transport.onclose = () => {
      combined.close();
      onclose?.call(transport);
    };
    return start();
  };
}
