/** Tools that come from elsewhere: what loaders may give instead of functions, and how that is served. */

import { isObject } from '../base/objects.ts';
import type { Config, ServerConfig } from '../config/config.ts';
import { configFromValue } from '../config/load.ts';
import { scanFolders } from '../gateway/folders.ts';
import type { ToolSource } from './types.ts';

/** A server as a configuration of Toolgate has it: a program or an address, and what else may stand beside. */
export type ServerWords = (
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }
) & { readonly [setting: string]: unknown };

/**
 * The tools of an MCP server, for a loader to give.
 *
 * @example
 * const moduleLoaders = { files: () => fromServer({ command: 'npx', args: ['-y', 'some-mcp-server'] }) };
 */
export function fromServer(server: ServerWords): ToolSource {
  return { kind: 'server', words: server };
}

/**
 * The tools of a folder of tool files, for a loader to give.
 *
 * @example
 * const moduleLoaders = { own: () => fromFolder('./tools') };
 */
export function fromFolder(folder: string, settings: Readonly<Record<string, unknown>> = {}): ToolSource {
  return { kind: 'folder', words: { ...settings, folder } };
}

export function isToolSource(value: unknown): value is ToolSource {
  return isObject(value) && (value.kind === 'server' || value.kind === 'folder') && isObject(value.words);
}

/** The servers that it stands for: a folder has one for each language. Throws where its words make no sense. */
export async function serversOf({ kind, words }: ToolSource, config: Config): Promise<readonly ServerConfig[]> {
  const { args, command, ...more } = words;
  // A program with its arguments, and no line for a shell.
  const server = command === undefined ? words : { ...more, command, args: args ?? [] };
  const value = { data_dir: config.dataDir, servers: [{ namespace: '', ...server }] };
  const read = configFromValue(value, { cwd: process.cwd(), env: process.env });
  if (kind === 'server') return read.servers;
  const { servers, problems } = await scanFolders(read);
  const own = new Set(read.folders.named.map(({ folder }) => folder));
  const found = servers.filter(({ launch }) => launch.kind === 'folder' && own.has(launch.folder));
  if (found.length === 0) throw new Error(problems[0]?.message ?? `there are no tools in ${String(words.folder)}`);
  return found;
}
