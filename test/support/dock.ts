/** A gateway with folders of tools in both languages, in environments that already exist. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withMembers } from './child.ts';
import { type HttpGateway, startHttp } from './gateway.ts';
import { waitFor } from './processes.ts';
import { basePython } from './python.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

export interface Called {
  readonly text: string;
  readonly isError: boolean;
}

export interface Dock extends HttpGateway {
  /** The folder of the namespaces. */
  readonly tools: string;
  call(name: string, args?: Record<string, unknown>): Promise<Called>;
  names(): Promise<string[]>;
  /** Calls a tool until it gives this answer, and returns how many milliseconds that took. */
  until(name: string, fits: (called: Called) => boolean, ms?: number): Promise<number>;
}

export interface DockOptions {
  readonly config?: string;
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** Default: a folder in `cwd`. */
  readonly dataDir?: string;
  /** Whether it contains Python tools. */
  readonly python?: boolean;
}

/** `files` by their path below the folder of the namespaces. */
export async function startDock(files: Files, options: DockOptions = {}): Promise<Dock> {
  const { config = 'controls = []\n', env, cwd = tempFolder(), python = true } = options;
  const data = options.dataDir ?? join(cwd, '.toolgate');
  const tools = join(data, 'tools');
  writeFiles(tools, files);
  mkdirSync(join(data, 'venvs'), { recursive: true });
  if (python) symlinkSync(await sharedPython(), join(data, 'venvs/_base'));
  const gateway = await startHttp({ config, cwd, args: ['--log-level', 'info'], env: { ...dockEnv(), ...env } });
  const { client } = await gateway.connect();
  const call = (name: string, given: Record<string, unknown> = {}) => callTool(gateway.url, name, given);
  return withMembers(gateway, {
    tools,
    call,
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    async until(name: string, fits: (called: Called) => boolean, ms = 45_000) {
      const start = performance.now();
      await waitFor(async () => fits(await call(name)) || null, ms);
      return performance.now() - start;
    },
  });
}

/** The variables that the environment of the tests was built with. */
export function dockEnv(): Record<string, string> {
  const installer = Object.entries(process.env).filter(([name]) => /^(PIP|UV)_/.test(name)) as [string, string][];
  return { ...Object.fromEntries(installer), TOOLGATE_UV: 'off' };
}

/** A plain request without a session, because the SDK's client is too slow for thousands of calls. */
export async function callTool(
  url: string,
  name: string,
  args: Record<string, unknown> = {},
  signal?: AbortSignal,
): Promise<Called> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const response = await fetch(url, {
    method: 'POST',
    ...(signal !== undefined && { signal }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta } }),
  });
  const body = await response.text();
  const json = body.startsWith('{') ? body : body.slice(body.lastIndexOf('data: ') + 'data: '.length);
  const { result, error } = JSON.parse(json) as {
    result?: { content: { text: string }[]; isError?: boolean };
    error?: { message: string };
  };
  if (result === undefined) return { text: error?.message ?? json, isError: true };
  return { text: result.content[0]?.text ?? '', isError: result.isError === true };
}

const REVISION = '2026-07-28';

/** Saves a file as editors do: by replacing it with another. */
export function save(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const draft = join(dirname(file), '.draft~');
  writeFileSync(draft, text);
  renameSync(draft, file);
}

/** The environment that Python folders without requirements share. */
export async function sharedPython(): Promise<string> {
  const python = (await basePython()).command[0]!;
  return python.slice(0, python.indexOf('/venvs/_base/') + '/venvs/_base'.length);
}

export interface Neighbours {
  /** Stops the calls, and returns their number, the longest duration in milliseconds, and the failures. */
  stop(): Promise<{ calls: number; slowest: number; failures: string[] }>;
}

/** Calls these tools continuously, each again shortly after its last answer. */
export function callAlways(url: string, expected: Record<string, string>): Neighbours {
  let stopped = false;
  let calls = 0;
  let slowest = 0;
  const failures: string[] = [];
  const loops = Object.entries(expected).map(async ([name, answer]) => {
    while (!stopped) {
      const start = performance.now();
      const { text } = await callTool(url, name).catch((error: Error) => ({ text: error.message }));
      slowest = Math.max(slowest, performance.now() - start);
      calls++;
      if (text !== answer) failures.push(`${name}: ${text}`);
      await sleep(50);
    }
  });
  return {
    async stop() {
      stopped = true;
      await Promise.all(loops);
      return { calls, slowest: Math.round(slowest), failures };
    },
  };
}

/** The source of a tool in one line. */
export const tsTool = (name: string, body: string) => `export const ${name} = {
  description: 'Tool ${name}',
  inputSchema: { type: 'object', properties: {} },
  async execute(input: any, ctx: any) { ${body} },
};
`;

export const pyTool = (name: string, body: string, before = '') => `
@tool
${before}def ${name}() -> str:
    """Tool ${name}."""
    ${body.split('\n').join('\n    ')}
`;

export const PY_HEAD = 'from fastmcp.tools import tool\n';
