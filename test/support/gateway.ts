/** A gateway as its command starts it: see program.ts. Its clients are from the official SDK: v1, or v2 for the modern era. */
import type { ClientCapabilities as ModernCapabilities } from '@modelcontextprotocol/client';
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import { type Child, childEnv, type Ending, untilPrinted, withMembers } from './child.ts';
import { connectHttp, type HttpConnection, openPipe, type PipeConnection } from './connection.ts';
import { connectModernHttp, type ModernConnection, type ModernPipe, openModernPipe } from './modern.ts';
import { waitFor } from './processes.ts';
import { startToolgate } from './program.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

export { bin } from './program.ts';

export interface GatewayOptions {
  /** The text of tools.toml. Put other kinds of configurations into `files` under their names. */
  readonly config?: string;
  readonly files?: Files;
  /** Instead of a new folder, for example that of an earlier gateway. */
  readonly cwd?: string;
  /** In addition to PATH, the locale and an empty HOME. The user's other variables are not passed on. */
  readonly env?: Record<string, string | undefined>;
  /** See program.ts. */
  readonly process?: boolean | 'with servers' | undefined;
  /** Instead of bin/toolgate.mjs, in a process of its own. */
  readonly bin?: string;
  /** Whether `serve` may start the manager, which is a process. */
  readonly manager?: boolean;
  /** More arguments of the command. */
  readonly args?: readonly string[];
}

export interface StdioGateway extends PipeConnection, Child {
  readonly cwd: string;
}

export interface ModernStdioGateway extends ModernPipe, Child {
  readonly cwd: string;
}

export interface HttpGateway extends Child {
  readonly cwd: string;
  readonly origin: string;
  /** The URL of the MCP endpoint. */
  readonly url: string;
  /** A new client with a session and an open GET stream. */
  connect(options?: ConnectOptions): Promise<HttpConnection>;
  /** A new client without a session that listens for changes. */
  connectModern(headers?: Record<string, string>): Promise<ModernConnection>;
  /** Posts a raw body, by default with the headers that MCP requires. */
  post(body: string | Uint8Array, headers?: Record<string, string>, path?: string): Promise<Response>;
}

export interface ConnectOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly capabilities?: ClientCapabilities;
  /** What the client calls itself. */
  readonly name?: string;
}

/** `toolgate stdio` with a connected client. With `connect: false` only the pipe, for tests that send messages themselves. Ends by closing stdin. */
export async function startStdio(
  options: GatewayOptions & { readonly capabilities?: ClientCapabilities; readonly connect?: boolean } = {},
): Promise<StdioGateway> {
  const { child, cwd } = spawnGateway(['stdio'], options, 'stdin');
  const connection = openPipe(child, options.capabilities);
  if (options.connect !== false) await orExplain(child, connection.connect());
  return withMembers(child, { ...connection, cwd });
}

/** `toolgate stdio` with a connected client of the modern era. Ends by closing stdin. */
export async function startModernStdio(
  options: GatewayOptions & { readonly capabilities?: ModernCapabilities } = {},
): Promise<ModernStdioGateway> {
  const { child, cwd } = spawnGateway(['stdio'], options, 'stdin');
  const connection = await orExplain(child, openModernPipe(child, options.capabilities));
  return withMembers(child, { ...connection, cwd });
}

/** `toolgate serve` on a free port, when it is ready, or with `ready: false` when it listens. Ends with SIGTERM. */
export async function startHttp(options: GatewayOptions & { readonly ready?: boolean } = {}): Promise<HttpGateway> {
  const command = ['serve', '--port', '0', ...(options.manager === true ? [] : ['--no-manager'])];
  const { child, cwd } = spawnGateway(command, options, 'SIGTERM');
  const [origin] = await orExplain(child, untilPrinted(child, /https?:\/\/127\.0\.0\.1:\d+/));
  if (options.ready !== false) {
    const ready = async () => {
      await untilPrinted(child, /^(?:Serving:|No servers are configured\.)$/m);
      await waitFor(async () => (await fetch(`${origin}/ready`)).ok, 45_000);
    };
    await orExplain(child, ready());
  }
  const url = `${origin}/mcp`;
  return withMembers(child, {
    cwd,
    origin,
    url,
    post: (body: string | Uint8Array, headers: Record<string, string> = {}, path = '/mcp') =>
      fetch(origin + path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      }),
    connect: ({ path = '/mcp', headers = {}, capabilities, name }: ConnectOptions = {}) =>
      connectHttp(origin + path, headers, capabilities, name),
    connectModern: (headers?: Record<string, string>) => connectModernHttp(url, headers),
  });
}

function spawnGateway(command: string[], options: GatewayOptions, ending: Ending): { child: Child; cwd: string } {
  const cwd = options.cwd ?? tempFolder();
  writeFiles(cwd, { ...(options.config !== undefined && { 'tools.toml': options.config }), ...options.files });
  const env = childEnv({ HOME: tempFolder(), ...options.env });
  const { process, bin } = options;
  const child = startToolgate([...command, ...(options.args ?? [])], { cwd, env, ending, process, bin });
  return { child, cwd };
}

/** Adds the log to an error: without it, an early exit says nothing. */
async function orExplain<T>(child: Child, promise: Promise<T>): Promise<T> {
  const ended = child.exited.then(({ code, signal }) => {
    throw new Error(`the gateway ended early (${code ?? signal})`);
  });
  try {
    return await Promise.race([promise, ended]);
  } catch (error) {
    throw new Error(`${(error as Error).message}\nIts output:\n${child.stdout()}${child.stderr()}`, { cause: error });
  }
}
