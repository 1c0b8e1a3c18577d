/** A real gateway in a process of its own: dist/ through bin/toolgate.mjs. At its door are the official SDK's clients, v1 or, where it says modern, v2. */
import { fileURLToPath } from 'node:url';
import type { ClientCapabilities as ModernCapabilities } from '@modelcontextprotocol/client';
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import { type Child, childEnv, type Ending, startChild } from './child.ts';
import { connectHttp, type HttpConnection, openPipe, type PipeConnection } from './connection.ts';
import { connectModernHttp, type ModernConnection, type ModernPipe, openModernPipe } from './modern.ts';
import { waitFor } from './processes.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

/** The command line program. */
export const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

export interface GatewayOptions {
  /** Text of tools.toml. Another kind of configuration goes into `files` under its own name. */
  readonly config?: string;
  readonly files?: Files;
  /** Instead of a fresh folder, for instance that of an earlier gateway. */
  readonly cwd?: string;
  /** On top of PATH, the locale and a fresh HOME; the variables of whoever runs the tests are not passed on. */
  readonly env?: Record<string, string | undefined>;
  /** Instead of this tree's own program. */
  readonly bin?: string;
  /** Further arguments of the command. */
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
  /** Of the MCP endpoint. */
  readonly url: string;
  /** A new client with its own session; its GET stream is open. */
  connect(options?: ConnectOptions): Promise<HttpConnection>;
  /** A new client without a session; it is listening. */
  connectModern(headers?: Record<string, string>): Promise<ModernConnection>;
  /** Posts a body as it is, with the headers that MCP wants unless told otherwise. */
  post(body: string | Uint8Array, headers?: Record<string, string>, path?: string): Promise<Response>;
}

export interface ConnectOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly capabilities?: ClientCapabilities;
}

/** `toolgate stdio` with a connected client; with `connect: false` only the pipe, for a test that speaks itself. Ends by closing stdin. */
export async function startStdio(
  options: GatewayOptions & { readonly capabilities?: ClientCapabilities; readonly connect?: boolean } = {},
): Promise<StdioGateway> {
  const { child, cwd } = spawnGateway(['stdio'], options, 'stdin');
  const connection = openPipe(child, options.capabilities);
  if (options.connect !== false) await orExplain(child, connection.connect());
  return { ...child, ...connection, cwd };
}

/** `toolgate stdio` with a connected client that speaks the revision without sessions. Ends by closing stdin. */
export async function startModernStdio(
  options: GatewayOptions & { readonly capabilities?: ModernCapabilities } = {},
): Promise<ModernStdioGateway> {
  const { child, cwd } = spawnGateway(['stdio'], options, 'stdin');
  return { ...child, ...(await orExplain(child, openModernPipe(child, options.capabilities))), cwd };
}

/** `toolgate serve` on a free port, ready (or, with `ready: false`, only listening). Ends by SIGTERM. */
export async function startHttp(options: GatewayOptions & { readonly ready?: boolean } = {}): Promise<HttpGateway> {
  const { child, cwd } = spawnGateway(['serve', '--port', '0'], options, 'SIGTERM');
  const origin = await orExplain(
    child,
    waitFor(() => /http:\/\/127\.0\.0\.1:\d+/.exec(child.stdout() + child.stderr())?.[0], 20_000),
  );
  if (options.ready !== false) {
    await orExplain(
      child,
      waitFor(async () => (await fetch(`${origin}/ready`)).ok, 20_000),
    );
  }
  const url = `${origin}/mcp`;
  return {
    ...child,
    cwd,
    origin,
    url,
    post: (body, headers = {}, path = '/mcp') =>
      fetch(origin + path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      }),
    connect: ({ path = '/mcp', headers = {}, capabilities }: ConnectOptions = {}) =>
      connectHttp(origin + path, headers, capabilities),
    connectModern: (headers) => connectModernHttp(url, headers),
  };
}

function spawnGateway(command: string[], options: GatewayOptions, ending: Ending): { child: Child; cwd: string } {
  const cwd = options.cwd ?? tempFolder();
  writeFiles(cwd, { ...(options.config !== undefined && { 'tools.toml': options.config }), ...options.files });
  const env = childEnv({ HOME: tempFolder(), ...options.env });
  const child = startChild(process.execPath, [options.bin ?? bin, ...command, ...(options.args ?? [])], {
    cwd,
    env,
    ending,
  });
  return { child, cwd };
}

/** An early end, or a failure, says nothing without the log. */
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
