/** Helpers for these tests: configuration, calls and log of a gateway. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { stringify } from 'smol-toml';
import type { Child } from './child.ts';
import { killServer } from './in-process-server.ts';
import { waitFor } from './processes.ts';

export interface ServerEntry {
  readonly namespace: string;
  readonly command?: string;
  readonly url?: string;
  readonly [key: string]: unknown;
}

/** A tools.toml in which everything is active unless `settings` says otherwise. */
export function toml(servers: readonly ServerEntry[], settings: Record<string, unknown> = {}): string {
  return stringify({ active_toolsets: ['*'], ...settings, servers });
}

export interface Answer {
  readonly text: string;
  readonly isError: boolean;
}

/** A call with its outcome, good or bad. */
export async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Answer> {
  const result = await client.callTool({ name, arguments: args });
  const [first] = result.content as { text: string }[];
  return { text: first?.text ?? '', isError: result.isError === true };
}

/** The text of a call that must succeed. */
export async function callText(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { text, isError } = await call(client, name, args);
  if (isError) throw new Error(`${name} failed: ${text}`);
  return text;
}

/** Toolgate's own error, from a call that must fail. */
export async function callError(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<{ code: string; message: string }> {
  const { text, isError } = await call(client, name, args);
  if (!isError) throw new Error(`${name} went well: ${text}`);
  return JSON.parse(text) as { code: string; message: string };
}

/** The pid of a server that has `whoami` (basic, http). */
export async function pidOf(client: Client, namespace: string): Promise<number> {
  return JSON.parse(await callText(client, `${namespace}_whoami`)).pid;
}

/** Kills a server that tells its pid, and waits for the one after it. Its tools may be away for only a moment in between. */
export async function killAndReturn(client: Client, tool: string): Promise<void> {
  const before = await callText(client, tool);
  killServer(Number(before));
  await waitFor(async () => (await callText(client, tool).catch(() => before)) !== before);
}

/** The listed tools without the control. */
export async function toolNames(client: Client): Promise<string[]> {
  const { tools } = await client.listTools();
  return tools.map(({ name }) => name).filter((name) => name !== 'toolman_activate');
}

/** Waits until exactly these tools are listed, in any order: a client keeps the order in which it saw them first. */
export async function toolsToBe(client: Client, names: readonly string[], ms?: number): Promise<void> {
  let seen: string[] = [];
  await waitFor(async () => {
    seen = await toolNames(client);
    return seen.toSorted().join() === names.toSorted().join();
  }, ms).catch((error: Error) => {
    throw new Error(`${error.message}\nlast seen: ${seen.join()}\nwanted: ${names.join()}`);
  });
}

export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly source?: string;
  readonly message: string;
}

export function logOf(gateway: Pick<Child, 'stderr'>): LogLine[] {
  const lines = gateway.stderr().split('\n');
  return lines.filter((line) => line.startsWith('{')).flatMap((line) => parseLine(line));
}

function parseLine(line: string): LogLine[] {
  try {
    return [JSON.parse(line) as LogLine];
  } catch {
    // The last line may not be complete yet.
    return [];
  }
}

/** Waits for a log line whose message contains `text`. */
export async function logged(gateway: Pick<Child, 'stderr'>, text: string, ms?: number): Promise<LogLine> {
  return waitFor(() => logOf(gateway).find(({ message }) => message.includes(text)), ms).catch((error: Error) => {
    throw new Error(`${error.message}\nno ${JSON.stringify(text)} in the log:\n${gateway.stderr().slice(-2000)}`);
  });
}

/** Replaces a file as editors do: a new file is renamed over it. */
export function replaceFile(folder: string, content: string, name = 'tools.toml'): void {
  writeFileSync(join(folder, `${name}.new`), content);
  renameSync(join(folder, `${name}.new`), join(folder, name));
}

/** Every message that a fixture with `--log FILE` has received. */
export function received(file: string): { id?: number; method: string; params?: Record<string, unknown> }[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/** Resident memory of a process, in MB. */
export function memoryOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

export async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const start = performance.now();
  const value = await work;
  return { value, ms: performance.now() - start };
}
