/** A core and its manager, as `toolgate serve` and `toolgate manager` start them, with a client of the manager. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type Child, untilPrinted } from './child.ts';
import { startCli } from './cli.ts';
import { connectHttp, type HttpConnection } from './connection.ts';
import { dockEnv, sharedPython } from './dock.ts';
import { type HttpGateway, startHttp } from './gateway.ts';
import { type Files, tempFolder, writeFiles } from './temp.ts';

export interface ManagedDock {
  readonly core: HttpGateway;
  readonly manager: Child;
  /** The URL of the manager's MCP endpoint. */
  readonly url: string;
  readonly cwd: string;
  /** The folder of the namespaces. */
  readonly tools: string;
  readonly env: Record<string, string>;
  readonly connection: HttpConnection;
  /** Calls a tool of the manager. The answer is its JSON. */
  call(name: string, args?: Record<string, unknown>): Promise<unknown>;
  /** The same for a call that fails: its code and message. */
  fails(name: string, args?: Record<string, unknown>): Promise<{ code: string; message: string }>;
}

export interface ManagedDockOptions {
  readonly config?: string;
  readonly files?: Files;
  readonly env?: Record<string, string>;
  /** Whether there are Python tools. */
  readonly python?: boolean;
  readonly token?: string;
}

export const TOKEN = 'of-the-client';

export async function startManaged(options: ManagedDockOptions = {}): Promise<ManagedDock> {
  const { config = 'controls = []\nfolders.watch = false\n', files = {}, python = false, token = TOKEN } = options;
  const cwd = tempFolder();
  const tools = join(cwd, '.toolgate/tools');
  mkdirSync(tools, { recursive: true });
  mkdirSync(join(cwd, '.toolgate/venvs'), { recursive: true });
  if (python) symlinkSync(await sharedPython(), join(cwd, '.toolgate/venvs/_base'));
  writeFiles(tools, files);
  const env = {
    ...dockEnv(),
    BEARER_TOKEN: TOKEN,
    MANAGER_INTERNAL_TOKEN: 'of-the-manager',
    SECRETS_KEY: 'a-key-of-more-than-16-characters',
    HOME: tempFolder(),
    ...options.env,
  };
  const core = await startHttp({ config, cwd, env });
  const manager = startCli(['manager', '--port', '0'], { cwd, env: { ...env, CORE_URL: core.origin } });
  const [, url] = await untilPrinted(manager, /listening on (http\S+)/).catch((error: Error) => {
    throw new Error(`${error.message}\n${manager.stderr()}`);
  });
  const connection = await connectHttp(url!, { authorization: `Bearer ${token}` });
  const ask = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError } = await connection.client.callTool({ name, arguments: args }, undefined, {
      timeout: 300_000,
    });
    const [{ text }] = content as [{ text: string }];
    let value: unknown = text;
    try {
      value = JSON.parse(text);
    } catch {}
    return { value, isError: isError === true };
  };
  return {
    core,
    manager,
    url: url!,
    cwd,
    tools,
    env,
    connection,
    async call(name, args) {
      const { value, isError } = await ask(name, args);
      if (isError) throw new Error(`${name} failed: ${JSON.stringify(value)}`);
      return value;
    },
    async fails(name, args) {
      const { value, isError } = await ask(name, args);
      if (!isError) throw new Error(`${name} did not fail: ${JSON.stringify(value)}`);
      return value as { code: string; message: string };
    },
  };
}
