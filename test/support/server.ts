/** The fixture servers of test/fixtures, as configurations name them. */
import type { ServerProcess } from '../../src/sources/spawn.ts';
import { type Child, childEnv, type Ending, type Exit, startChild, untilPrinted, withMembers } from './child.ts';
import { atEnd } from './cleanup.ts';
import { openPipe, type PipeConnection } from './connection.ts';
import { fixture } from './fixtures.ts';
import { runsHere, startHere } from './in-process-server.ts';
import { tempFolder } from './temp.ts';

export { fixture };

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

/** A fixture by itself: in the process of the test if it can run there. */
function startFixture(name: string, args: readonly (string | number)[], ending: Ending): Child {
  const launch = {
    kind: 'stdio',
    file: process.execPath,
    args: [fixture(name), ...args.map(String)],
    cwd: tempFolder(),
    env: childEnv(),
  } as const;
  return runsHere(launch)
    ? childOf(startHere(launch), ending)
    : startChild(launch.file, launch.args, { ...launch, ending });
}

/** A fixture with a client and no gateway in between, to see an original result. */
export async function startServer(name: string, ...args: (string | number)[]): Promise<PipeConnection & Child> {
  const child = startFixture(name, args, 'stdin');
  const connection = openPipe(child, {}, 'ignored');
  await connection.connect();
  return withMembers(child, connection);
}

export interface HttpLog {
  readonly sessions: string[];
  readonly deleted: string[];
  readonly requests: { verb: string; status: number; headers: Record<string, string>; body: string }[];
}

export interface Listening {
  readonly origin: string;
  readonly port: number;
  readonly pid: number;
  stop(): Promise<unknown>;
}

/** Starts a fixture that serves HTTP, and returns when it listens. It is stopped at the end. */
export async function startListening(name: string, ...args: (string | number)[]): Promise<Listening> {
  const child = startFixture(name, args, 'SIGTERM');
  const ended = child.exited.then(() => {
    throw new Error(`${name}.mjs ended: ${child.stderr()}`);
  });
  const [, port] = await Promise.race([untilPrinted(child, /listening (\d+)\n/), ended]);
  return { origin: `http://127.0.0.1:${port}`, port: Number(port), pid: child.pid, stop: () => child.stop() };
}

/** Starts test/fixtures/http.mjs with these flags. `log()` returns the requests that it has seen. */
export async function startHttpServer(...args: (string | number)[]) {
  const { origin, ...started } = await startListening('http', ...args);
  const log = async (): Promise<HttpLog> => (await (await fetch(`${origin}/log`)).json()) as HttpLog;
  return { ...started, url: `${origin}/mcp`, log };
}

/** A server of this process, as programs are seen by tests. */
function childOf(server: ServerProcess, ending: Ending): Child {
  let stdout = '';
  let stderr = '';
  server.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  server.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  let exit: Exit = { code: null, signal: null };
  const exited = new Promise<Exit>((resolve) => {
    server.watch({
      failed: () => {},
      exited: (code, signal) => {
        exit = { code, signal };
      },
      closed: () => resolve(exit),
    });
  });
  const child: Child = {
    get process(): never {
      throw new Error('The fixture runs in the process of the test. Call useProcesses() at the top of the test file.');
    },
    pid: server.pid!,
    stdin: server.stdin,
    output: server.stdout,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    signal: server.kill,
    stop(how = ending) {
      if (how === 'stdin') server.stdin.end();
      else server.kill(how);
      return exited;
    },
  };
  atEnd(() => child.stop());
  return child;
}

function quote(argument: string | number): string {
  const text = String(argument);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
