/** Connects the way an MCP client would with an entry from a page. */
import { expect } from 'vitest';
import { startChild } from './child.ts';
import { connectHttp, openPipe } from './connection.ts';
import { tempFolder } from './temp.ts';

/** The configuration that clients keep for a server. */
export interface Entry {
  readonly type?: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly url?: string;
  readonly headers?: Record<string, string>;
}

/** The entry named `toolgate` in a client's file, or undefined if it is not a client's file. */
export function entryOf(file: unknown): Entry | undefined {
  const { mcpServers, servers } = file as Record<string, Record<string, Entry> | undefined>;
  return (mcpServers ?? servers)?.toolgate;
}

/**
 * The entry that the arguments of `claude` add. Claude Code is not installed for the tests, so this follows its
 * documentation.
 */
export function entryOfClaude(args: readonly string[]): Entry {
  const end = args.indexOf('--');
  const [own, command] = end < 0 ? [args, []] : [args.slice(0, end), args.slice(end + 1)];
  const given = [...own];
  const headers: Record<string, string> = {};
  let transport = 'stdio';
  for (let at = given.findIndex(isOption); at >= 0; at = given.findIndex(isOption)) {
    const [option, value = ''] = given.splice(at, 2);
    if (option === '--transport') transport = value;
    else if (option === '--header') headers[value.split(': ')[0]!] = value.split(': ')[1]!;
    else throw new Error(`claude mcp add has no option ${option} that these tests know`);
  }
  const [mcp, add, name, url] = given;
  expect([mcp, add, name]).toEqual(['mcp', 'add', 'toolgate']);
  if (transport === 'http') return { type: 'http', url: url!, headers };
  expect([transport, url]).toEqual(['stdio', undefined]);
  return { type: 'stdio', command: command[0]!, args: command.slice(1) };
}

function isOption(word: string): boolean {
  return word.startsWith('-');
}

/** The names of the tools that a client with this entry sees. */
export async function toolsOf(entry: Entry, env: Record<string, string>, token: string): Promise<string[]> {
  const { client } = entry.url === undefined ? await openStdio(entry, env) : await openHttp(entry, token);
  const { tools } = await client.listTools();
  return tools.map((tool) => tool.name);
}

async function openStdio(entry: Entry, env: Record<string, string>) {
  // An arbitrary folder, because clients decide where they start their servers.
  const cwd = tempFolder();
  const child = startChild(entry.command!, entry.args ?? [], { cwd, env: { ...env, ...entry.env }, ending: 'stdin' });
  const pipe = openPipe(child);
  await pipe.connect();
  return pipe;
}

function openHttp(entry: Entry, token: string) {
  const secret = /\$\{(?:BEARER_TOKEN|env:BEARER_TOKEN|input:token)\}/;
  const headers = Object.entries(entry.headers ?? {}).map(([name, value]) => [name, value.replace(secret, token)]);
  return connectHttp(entry.url!, Object.fromEntries(headers) as Record<string, string>);
}
