/** Tools from other servers and from folders, which loaders may return instead of functions. */
import { isObject } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import { configFromValue } from '../config/load.ts';
import type { ServerConfig } from '../config/servers.ts';
import { scanFolders } from '../gateway/folders.ts';
import type { ToolSource } from './types.ts';

/** A server, written as in a configuration of Toolgate: a program or a URL, with any further settings. */
export type ServerWords = (
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }
) & { readonly [setting: string]: unknown };

/**
 * The tools of an MCP server, for a loader to return.
 *
 * @example
 * const moduleLoaders = { files: () => fromServer({ command: 'npx', args: ['-y', 'some-mcp-server'] }) };
 */
export function fromServer(server: ServerWords): ToolSource {
  return { kind: 'server', words: server };
}

/**
 * The tools of a folder of tool files, for a loader to return.
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

/** The servers behind a source: a folder has one for each language. Throws if the settings are wrong. */
export async function serversOf({ kind, words }: ToolSource, config: Config): Promise<readonly ServerConfig[]> {
  const { args, command, ...more } = words;
  // With `args`, `command` is a program and not a shell line.
  const server = command === undefined ? words : { ...more, command, args: args ?? [] };
  const value = { data_dir: config.dataDir, servers: [{ namespace: '', ...server }] };
  const read = configFromValue(value, { cwd: process.cwd(), env: process.env });
  if (kind === 'server') return read.servers;
  const { servers, problems } = await scanFolders(read);
  const own = new Set(read.folders.named.map(({ folder }) => folder));
  const found = servers.filter(({ launch }) => launch.kind === 'folder' && own.has(launch.folder));
  if (found.length === 0) throw new Error(problems[0]?.message ?? `${String(words.folder)} contains no tools`);
  return found;
}
