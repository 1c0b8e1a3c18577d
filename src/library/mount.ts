/** Mounts toolsets in an existing server of the official SDK, of either generation. */
import { randomUUID } from 'node:crypto';
import type { ListKind } from '../access/view.ts';
import type { JsonObject } from '../base/objects.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { wrongOptions } from './errors.ts';
import { MountedConnection, type SdkEnds } from './mounted-connection.ts';

/** The parts of a transport that are used. They are the same in SDK v1 and v2. */
interface SdkTransport {
  start(): Promise<void>;
  send(message: unknown, options?: object): Promise<void>;
  onmessage?(message: unknown, extra?: unknown): void;
  onclose?(): void;
}

/** The parts of the SDK's low-level server that are used. */
export interface SdkServer {
  connect(transport: unknown): Promise<void>;
  registerCapabilities(capabilities: {
    readonly tools: { readonly listChanged: boolean };
    readonly logging: Readonly<Record<string, never>>;
    readonly prompts?: { readonly listChanged: boolean };
    readonly resources?: { readonly listChanged: boolean; readonly subscribe: boolean };
    readonly completions?: Readonly<Record<string, never>>;
  }): void;
  readonly transport?: unknown;
  onerror?(error: Error): void;
}

/** A `Server` or `McpServer` from `@modelcontextprotocol/sdk` or `@modelcontextprotocol/server`. */
export type MountableServer = SdkServer | { readonly server: SdkServer };

/** The client of a mounted server, and what it gets. */
export interface MountOptions {
  /**
   * The id of the client, if the program knows it. Toolsets that the client has switched on are still on when it
   * connects again. Without an id, they are on only until the connection ends.
   */
  readonly clientId?: string;
  /** The toolsets that the client gets, instead of those from `permissions`. */
  readonly toolsets?: readonly string[];
  /** Called when the tools have changed, to notify clients in another way: `() => handler.notify.toolsChanged()`. */
  toolsChanged?(): void;
  /** The same for prompts: `() => handler.notify.promptsChanged()`. */
  promptsChanged?(): void;
  /** The same for resources and their templates: `() => handler.notify.resourcesChanged()`. */
  resourcesChanged?(): void;
}

/** What mounting needs from the toolsets. */
export interface Mounting {
  readonly gateway: Gateway;
  /** Whether toolsets may have prompts or resources. If none can, clients are not told that there may be some. */
  readonly hasMoreThanTools: boolean;
  admit(client: {
    readonly clientId: string;
    readonly toolsets?: readonly string[];
  }): Promise<{ readonly principal: string }>;
  /** Sets the names that tools of this client's toolsets must not have. */
  reserve(principal: string, names: ReadonlySet<string>): void;
}

const mounted = new WeakSet<SdkServer>();

export function mount(given: MountableServer, mounting: Mounting, options: MountOptions): void {
  const server = 'server' in given ? given.server : given;
  if (typeof server?.connect !== 'function' || typeof server.registerCapabilities !== 'function')
    throw wrongOptions('Toolsets can be mounted only in a Server or McpServer of the official SDK.');
  if (server.transport !== undefined) throw wrongOptions('Mount toolsets before the server is connected.');
  if (mounted.has(server)) throw wrongOptions('Toolsets are already mounted in this server.');
  mounted.add(server);
  server.registerCapabilities({
    tools: { listChanged: true },
    logging: {},
    ...(mounting.hasMoreThanTools && {
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
    }),
  });
  const connect = server.connect.bind(server);
  server.connect = async (transport: unknown) => {
    const { toolsets } = options;
    // Without an id, each connection is a client of its own.
    const clientId = options.clientId ?? `mounted-${randomUUID()}`;
    const { principal } = await mounting.admit({ clientId, ...(toolsets !== undefined && { toolsets }) });
    const client = {
      agent: options.clientId ?? 'default',
      principal,
      changed: (list: ListKind) => options[`${list}Changed`]?.(),
      reserve: (names: ReadonlySet<string>) => mounting.reserve(principal, names),
    };
    intercept(transport as SdkTransport, server, (ends) => new MountedConnection(mounting.gateway, client, ends));
    await connect(transport);
  };
}

/**
 * Puts a mounted connection between a transport and its server. It does so when the transport starts, because the
 * server has set its callbacks by then.
 */
function intercept(transport: SdkTransport, server: SdkServer, open: (ends: SdkEnds) => MountedConnection): void {
  const start = transport.start.bind(transport);
  const send = transport.send.bind(transport);
  transport.start = () => {
    const { onmessage, onclose } = transport;
    const connection = open({
      serve: (message, extra) => onmessage?.call(transport, message, extra),
      send,
      failed: (error) => server.onerror?.(error),
    });
    transport.onmessage = (message, extra) => connection.fromClient(message as JsonObject, extra);
    transport.send = (message, options) => connection.fromServer(message as JsonObject, options);
    transport.onclose = () => {
      connection.close();
      onclose?.call(transport);
    };
    return start();
  };
}
