/** Where other clients keep their servers in their files, and their entries in the usual form: `command`, `args`, `env`, `url`, `headers`. */
import { isObject, type JsonObject } from '../base/objects.ts';
import type { Path } from './issues.ts';

/** A map of servers in the file of a client. */
export interface ServerMap {
  readonly path: Path;
  readonly servers: JsonObject;
}

/** `mcp.servers` is in settings of VS Code, `mcp` in those of opencode, `mcp_servers` of Codex, `context_servers` of Zed. */
const PLACES: readonly Path[] = [
  ['mcpServers'],
  ['servers'],
  ['mcp', 'servers'],
  ['mcp'],
  ['mcp_servers'],
  ['context_servers'],
];

export function serverMapsIn(root: JsonObject): ServerMap[] {
  const maps = PLACES.flatMap((path) => {
    const servers = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), root);
    return isObject(servers) ? [{ path, servers }] : [];
  });
  // `mcp` with `servers` in it is that of VS Code.
  const isVsCode = maps.some(({ path }) => path.length === 2);
  return maps.filter(({ path }) => !(isVsCode && path.length === 1 && path[0] === 'mcp'));
}

/** The entry with the usual keys. Keys that nobody knows stay, so that they can be reported. */
export function usualEntry(entry: JsonObject): JsonObject {
  const usual: Record<string, unknown> = { ...entry };
  const take = (key: string): unknown => {
    const value = usual[key];
    delete usual[key];
    return value;
  };
  // opencode
  if (Array.isArray(usual.command)) {
    const [command, ...args] = usual.command as unknown[];
    Object.assign(usual, { command, args });
  }
  if (usual.type === 'local' || usual.type === 'remote') delete usual.type;
  if ('environment' in usual) usual.env = { ...(usual.env as JsonObject), ...(take('environment') as JsonObject) };
  // Zed
  if (isObject(usual.command)) {
    const { path, args, env } = usual.command;
    Object.assign(usual, { command: path, ...(args !== undefined && { args }), ...(env !== undefined && { env }) });
  }
  if (usual.source === 'custom' || usual.source === 'extension') delete usual.source;
  // Windsurf, Gemini CLI, and extensions of VS Code
  const address = take('httpUrl') ?? take('serverUrl');
  if (address !== undefined) usual.url = address;
  if ('transportType' in usual) usual.type ??= take('transportType');
  if (usual.type === 'streamableHttp' || usual.type === 'streamable_http') usual.type = 'http';
  // Codex
  const headers = {
    ...(usual.headers as JsonObject | undefined),
    ...(take('http_headers') as JsonObject | undefined),
    ...fromVariables(take('env_http_headers'), ''),
    ...fromVariables({ Authorization: take('bearer_token_env_var') }, 'Bearer '),
  };
  if (Object.keys(headers).length > 0) usual.headers = headers;
  const seconds = (from: string, to: string) => {
    const value = take(from);
    if (typeof value === 'number' && value > 0) usual[to] ??= `${Math.round(value * 1000)}ms`;
  };
  seconds('startup_timeout_sec', 'start_timeout');
  seconds('tool_timeout_sec', 'timeout');
  const inherited = take('env_vars');
  if (Array.isArray(inherited) && inherited.every((one) => typeof one === 'string')) usual.inherit_env ??= inherited;
  return usual;
}

function fromVariables(names: unknown, before: string): Record<string, string> {
  if (!isObject(names)) return {};
  return Object.fromEntries(
    Object.entries(names).flatMap(([header, name]) =>
      typeof name === 'string' ? [[header, `${before}\${${name}}`]] : [],
    ),
  );
}
