/** The fixture servers of test/fixtures, as configurations name them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, childEnv, startChild } from './child.ts';
import { openPipe, type PipeConnection } from './connection.ts';
import { waitFor } from './processes.ts';
import { tempFolder } from './temp.ts';

const sources = fileURLToPath(new URL('../fixtures', import.meta.url));

/** The absolute path of a fixture: `fixture('basic')`. Fixtures in other folders are not bundled. */
export function fixture(name: string): string {
  const folder = name.startsWith('.') ? sources : (process.env.TOOLGATE_FIXTURES ?? sources);
  return join(folder, `${name}.mjs`);
}

/** The shell command line of a fixture: `server('basic', '--name', 'a b')`. */
export function server(name: string, ...args: (string | number)[]): string {
  return [process.execPath, fixture(name), ...args].map(quote).join(' ');
}

/** The same as an executable with arguments, for `mcpServers`. */
export function serverEntry(name: string, ...args: (string | number)[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [fixture(name), ...args.map(String)] };
}

/** The `[[servers]]` tables of a tools.toml, from command lines by namespace. */
export function serversToml(commands: Record<string, string>): string {
  return Object.entries(commands)
    .map(([namespace, command]) => {
      return `[[servers]]\nnamespace = ${JSON.stringify(namespace)}\ncommand = ${JSON.stringify(command)}\n`;
    })
    .join('\n');
}

/** A fixture with a client and no gateway in between, to see an original result. */
export async function startServer(name: string, ...args: (string | number)[]): Promise<PipeConnection & Child> {
  const child = startChild(process.execPath, [fixture(name), ...args.map(String)], {
    cwd: tempFolder(),
    env: childEnv(),
    ending: 'stdin',
  });
  const connection = openPipe(child, {}, 'ignored');
  await connection.connect();
  return { ...child, ...connection };
}

export interface HttpLog {
  readonly sessions: string[];
  readonly deleted: string[];
  readonly requests: { verb: string; status: number; headers: Record<string, string>; body: string }[];
}

/** Starts test/fixtures/http.mjs with these flags. `log()` returns the requests that it has seen. It is stopped at the end. */
export async function startHttpServer(...args: (string | number)[]) {
  const child = startChild(process.execPath, [fixture('http'), ...args.map(String)], {
    cwd: tempFolder(),
    env: childEnv(),
  });
  const port = await waitFor(() => {
    if (child.process.exitCode !== null) throw new Error(`http.mjs ended: ${child.stderr()}`);
    return /listening (\d+)/.exec(child.stdout())?.[1];
  });
  const origin = `http://127.0.0.1:${port}`;
  const log = async (): Promise<HttpLog> => (await (await fetch(`${origin}/log`)).json()) as HttpLog;
  return { url: `${origin}/mcp`, port: Number(port), pid: child.pid, log, stop: () => child.stop() };
}

function quote(argument: string | number): string {
  const text = String(argument);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
