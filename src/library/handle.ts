/** The handle of a server with toolsets: starts it, mounts it, changes it and closes it. */
import type { RequestListener } from 'node:http';
import type { Gateway } from '../gateway/gateway.ts';
import type { ToolsetClient } from './clients.ts';
import { wrongOptions } from './errors.ts';
import type { HttpListener } from './http.ts';
import { checkMountOptions, checkStartOptions } from './known-options.ts';
import { type MountableServer, type MountOptions, mount } from './mount.ts';
import type { Served, ServeOptions, StartOptions } from './serve.ts';
import type { ToolsetStatus } from './status.ts';
import type { ToolsetGateway } from './toolset-gateway.ts';
import type { AuthenticatedClient } from './types.ts';

/** Starts, inspects, changes and closes a server that was created. */
export interface McpServerHandle<Server = unknown> {
  /** What `createServer` returned. */
  readonly server: Server;
  /** Opens the server: on its port, in the `app` from the options, or on standard input and output. */
  start(options?: StartOptions): Promise<void>;
  /** Closes the server. Calls in progress have `drainMs` milliseconds to finish. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
  /** The URL of MCP, once the server has started on a port. */
  readonly url: string | null;
  /** Resolves when the client on standard input has disconnected. */
  readonly ended: Promise<void>;
  /** The gateway inside: events, metrics, middleware. */
  readonly gateway: Gateway;
  /** Admits a client that the program knows. Pass the result on, for example to `connectInMemory`. */
  admit(client: AuthenticatedClient): Promise<{ readonly agent: string; readonly principal: string }>;
  /**
   * Adds the toolsets to the tools of an official SDK server. The server must not be connected yet. Toolsets can be
   * mounted in any number of servers, for example one for each connection.
   *
   * @example
   * toolsets.mount(server, { clientId: 'alice' });
   * await server.connect(transport);
   */
  mount(server: MountableServer, options?: MountOptions): void;
  /**
   * Answers a request, for servers with `fetch` handlers: Hono, Bun, Next. It does not use `this`.
   *
   * @example
   * Bun.serve({ fetch: toolsets.fetch });
   */
  fetch(request: Request): Promise<Response>;
  /** A request listener for all paths, for `node:http`, Express or another server that has not read the body yet. */
  handler(): Promise<RequestListener>;
  /** The toolsets of a client; without an id, the toolsets that all clients have. */
  status(clientId?: string): Promise<ToolsetStatus>;
  /** Switches a toolset on or off for a client, as clients do with the meta-tools. Rejects with a `ToolingError`. */
  enableToolset(clientId: string, toolset: string): Promise<ToolsetStatus>;
  disableToolset(clientId: string, toolset: string): Promise<ToolsetStatus>;
}

/** The members do not use `this`, because programs destructure the handle. */
export function createHandle(toolsets: ToolsetGateway, server: unknown, serving: ServeOptions): McpServerHandle {
  const { gateway, admissions, reserve, hasMoreThanTools } = toolsets;
  let served: Promise<Served> | null = null;
  let transport: StartOptions['transport'];
  let url: string | null = null;
  let listener: Promise<HttpListener> | null = null;
  let closing: Promise<void> | null = null;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });

  async function admit(client: AuthenticatedClient): Promise<{ readonly agent: string; readonly principal: string }> {
    const { clientId, principal } = await admissions.enter(client);
    return { agent: clientId, principal };
  }

  async function switchingClient(clientId: string): Promise<ToolsetClient> {
    const { client } = await admissions.enter({ clientId });
    if (client !== null && toolsets.switches) return client;
    throw wrongOptions('Toolsets cannot be switched here: the options decide which toolsets clients have.');
  }

  /** Loaded on first use, because programs that only mount toolsets or call a gateway need no HTTP door. */
  function openListener(): Promise<HttpListener> {
    listener ??= import('./http.ts').then(({ openHttpListener }) =>
      openHttpListener(toolsets, { ...serving, host: null }),
    );
    return listener;
  }

  function requireOpen(): void {
    if (closing !== null) throw wrongOptions('The server is closed. Create a new one.');
  }

  async function shutDown(drainMs: number): Promise<void> {
    const opened = await served?.catch(() => null);
    gateway.approvals.stop();
    if (drainMs > 0) await opened?.drain(drainMs);
    await opened?.close();
    await (await listener?.catch(() => null))?.close();
    await toolsets.close();
    end();
  }

  return {
    server,
    gateway,
    ended,
    get url() {
      return url;
    },
    async start(options = {}) {
      requireOpen();
      checkStartOptions(options);
      if (served !== null && options.transport !== transport)
        throw wrongOptions('The server has already started on another transport. Create a new one.');
      transport = options.transport;
      // Loaded here, because programs that only mount toolsets or call a gateway need no HTTP door.
      served ??= import('./serve.ts').then(({ serve }) => serve(toolsets, serving, options));
      const opened = await served.catch((error: unknown) => {
        served = null;
        throw error;
      });
      url = opened.url;
      void opened.ended.then(() => {
        closing ??= shutDown(0);
      });
    },
    close({ drainMs = 0 } = {}) {
      closing ??= shutDown(drainMs);
      return closing;
    },
    admit,
    mount(target, options = {}) {
      checkMountOptions(options);
      mount(target, { gateway, admit, reserve, hasMoreThanTools }, options);
    },
    async handler() {
      requireOpen();
      return (await openListener()).handle;
    },
    async fetch(request) {
      if (listener === null) requireOpen();
      return (await openListener()).fetch(request);
    },
    async status(clientId) {
      return toolsets.status(clientId === undefined ? null : (await admissions.enter({ clientId })).client);
    },
    async enableToolset(clientId, toolset) {
      const client = await switchingClient(clientId);
      await client.enable(toolset);
      return toolsets.status(client);
    },
    async disableToolset(clientId, toolset) {
      const client = await switchingClient(clientId);
      await client.disable(toolset);
      return toolsets.status(client);
    },
  };
}
