/** The fixture servers of test/fixtures, as a configuration names them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, childEnv, startChild } from './child.ts';
import { openPipe, type PipeConnection } from './connection.ts';
import { waitFor } from './processes.ts';
import { tempFolder } from './temp.ts';

const sources = fileURLToPath(new URL('../fixtures', import.meta.url));

/** The absolute path of a fixture: `fixture('basic')`. One that stands elsewhere is not bundled. */
export function fixture(name: string): string {
  const folder = name.startsWith('.') ? sources : (process.env.TOOLGATE_FIXTURES ?? sources);
  return join(folder, `${name}.mjs`);
}

/** The shell command line of a fixture: `server('basic', '--name', 'a b')`. */
export function server(name: string, ...args: (string | number)[]): string {
  return [process.execPath, fixture(name), ...args].map(quote).join(' ');
}

/** The same as an executable with arguments, as `mcpServers` has it. */
export function serverEntry(name: string, ...args: (string | number)[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [fixture(name), ...args.map(String)] };
}

/** `[[servers]]` tables of a tools.toml, from namespace to command line. */
export function serversToml(commands: Record<string, string>): string {
  return Object.entries(commands)
    .map(([namespace, command]) => {
      return `[[servers]]\nnamespace = ${JSON.stringify(namespace)}\ncommand = ${JSON.stringify(command)}\n`;
    })
    .join('\n');
}

/** A fixture with a client on it and no gateway between: for what a result looks like at its origin. */
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

/** Starts test/fixtures/http.mjs with these flags. `log()` is what it has seen; `stop()` is also done at the end. */
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
