/** `toolgate add`, `remove`, `enable` and `disable`: edit the configuration. No server is started. */
import { GatewayError } from '../base/errors.ts';
import { type JsonObject, toObject } from '../base/objects.ts';
import { matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/text.ts';
import { exposedName } from '../catalog/names.ts';
import type { Config } from '../config/config.ts';
import {
  addServers,
  editConfig,
  isServerIn,
  removeServer,
  switchServer,
  type WrittenServer,
} from '../config/edit-servers.ts';
import { type FoundConfig, findConfig, findOrNewConfig } from '../config/find.ts';
import { loadConfig } from '../config/load.ts';
import { plainSecrets } from '../config/plain-secrets.ts';
import type { ServerConfig } from '../config/servers.ts';
import { parseCommandLine } from '../config/shell.ts';
import { scanFolders } from '../gateway/folders.ts';
import { openOfferStore } from '../store/offers.ts';
import { onlyName } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { plain, printResult, warn } from './terminal.ts';
import { trustServers } from './trust.ts';

export async function add(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const server = readServer(args, options);
  const { namespace } = server;
  const found = findOrNewConfig(loadOptions(options, io));
  const config = await addServers(found, [server], { ...place(io), beforeWrite: trustServers([namespace], io) });
  for (const { place: where, name } of plainSecrets(server))
    warn(
      `${where} of "${namespace}" looks like a secret, and is in ${found.file} in plain text. Better: write \${secret:${name}} there, and run toolgate secrets set ${name}`,
      io,
    );
  for (const { key, problem } of config.broken)
    if (key === namespace) warn(`"${namespace}" cannot start yet: ${problem}`, io);
  return printResult(
    options,
    { name: namespace, file: found.file, server },
    plain(`Added "${namespace}" to ${found.file}. A running gateway starts it at once; toolgate doctor checks it.`),
    io,
  );
}

const ADD_USAGE =
  'Name the server and how to reach it: toolgate add files -- npx -y @modelcontextprotocol/server-filesystem . or toolgate add docs https://example.com/mcp';

function readServer([namespace = '', first, ...rest]: readonly string[], options: Options): WrittenServer {
  if (namespace === '' || first === undefined) throw new GatewayError('usage', ADD_USAGE);
  const { transport, cwd, description } = options;
  const isUrl = rest.length === 0 && /^https?:\/\//i.test(first);
  const kind = transport ?? (isUrl ? 'http' : 'stdio');
  if (!['stdio', 'http', 'sse'].includes(kind))
    throw new GatewayError('usage', `--transport is stdio, http or sse, not "${kind}".`);
  if (isUrl !== (kind !== 'stdio'))
    throw new GatewayError(
      'usage',
      isUrl ? 'A URL needs --transport http or sse.' : `--transport ${kind} needs a URL, not a command.`,
    );
  const unused = isUrl ? ['env', 'cwd'] : ['header'];
  for (const name of unused as readonly ('env' | 'cwd' | 'header')[])
    if (options[name] !== undefined)
      throw new GatewayError('usage', `--${name} is for servers with ${isUrl ? 'a command' : 'a URL'}.`);
  const env = pairs(options.env ?? [], /^([^=]+)=(.*)$/s, '--env is KEY=VALUE, such as --env API_KEY=…');
  const headers = pairs(
    options.header ?? [],
    /^([^:=\s]+)\s*[:=]\s*(.*)$/s,
    '--header is "NAME: VALUE", such as --header "Authorization: Bearer …"',
  );
  // One word with spaces is a line as it is typed in a terminal.
  const { file, args } = rest.length === 0 && /\s/.test(first) ? parseCommandLine(first) : { file: first, args: rest };
  return {
    namespace,
    ...(description !== undefined && { description }),
    ...(isUrl
      ? { url: first, ...(kind === 'sse' && { transport: 'sse' as const }) }
      : { command: file, args, ...(cwd !== undefined && { cwd }) }),
    ...(env !== null && { env }),
    ...(headers !== null && { headers }),
  };
}

function pairs(given: readonly string[], form: RegExp, usage: string): Record<string, string> | null {
  if (given.length === 0) return null;
  return Object.fromEntries(
    given.map((one) => {
      const [, name, value] = form.exec(one) ?? [];
      if (name === undefined) throw new GatewayError('usage', `${usage}.`);
      return [name, value ?? ''];
    }),
  );
}

export async function remove(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate remove github');
  const found = findConfig(loadOptions(options, io));
  await removeServer(found, name, place(io));
  return printResult(options, { name, file: found.file }, plain(`Removed "${name}" from ${found.file}.`), io);
}

export const enable = switchTo(true);
export const disable = switchTo(false);

function switchTo(enabled: boolean) {
  return async (args: readonly string[], options: Options, io: CommandIo): Promise<number> => {
    const name = onlyName(args, `toolgate ${enabled ? 'enable' : 'disable'} github`);
    const found = findConfig(loadOptions(options, io));
    const config = await loadConfig(loadOptions(options, io));
    const isServer = await isServerIn(found.file, name);
    const tool = isServer ? null : await findTool(name, config, found.file);
    const isChanged =
      tool === null
        ? await switchServer(found, name, enabled, place(io))
        : await switchTool(found, tool, enabled, place(io));
    const state = enabled ? 'enabled' : 'disabled';
    const what = tool === null ? `"${name}"` : `The tool "${tool.name}" of "${tool.server}"`;
    return printResult(
      options,
      { name, ...(tool === null ? {} : tool), enabled, changed: isChanged, file: found.file },
      plain(isChanged ? `${what} is ${state} in ${found.file}.` : `${what} is ${state} already.`),
      io,
    );
  };
}

/** A tool by its server and the server's own name for it. */
interface NamedTool {
  readonly server: string;
  readonly name: string;
}

/** `github_create_issue` or `github.create_issue`. What servers offered last tells which tools there are. */
async function findTool(name: string, config: Config, file: string): Promise<NamedTool> {
  const servers = [...config.servers, ...(await scanFolders(config)).servers];
  const offers = openOfferStore(config.dataDir);
  const naming = { names: config.names, nameLimit: config.nameLimit };
  const candidates: string[] = servers.map(({ key }) => key);
  for (const server of servers) {
    const offer = offers.read(server.launchHash)?.offer;
    for (const { kind, name: own } of offer?.items ?? []) {
      if (kind !== 'tool') continue;
      const exposed = exposedName('tool', server.namespace, own, naming);
      if (exposed === name || `${server.key}.${own}` === name) return { server: server.key, name: own };
      candidates.push(exposed);
    }
  }
  // The longest namespace first: `git_hub` before `git`.
  const unknown = servers
    .filter((server) => offers.read(server.launchHash) === null)
    .sort((a, b) => b.namespace.length - a.namespace.length)
    .flatMap((server) => ownName(name, server) ?? []);
  const [guess] = unknown;
  if (guess !== undefined) return guess;
  throw new GatewayError(
    'usage',
    `${file} has no server "${name}", and no server in it has a tool "${name}".${didYouMean(name, candidates)}`,
  );
}

/** For a server that has not been started yet, and may have any tool. */
function ownName(name: string, { key, namespace }: ServerConfig): NamedTool | null {
  for (const prefix of [`${key}.`, `${namespace}_`])
    if (prefix.length > 1 && name.startsWith(prefix) && name.length > prefix.length)
      return { server: key, name: name.slice(prefix.length) };
  return null;
}

/** Tools are switched off in `denied_tools`. */
async function switchTool(
  found: FoundConfig,
  tool: NamedTool,
  enabled: boolean,
  options: Parameters<typeof editConfig>[1],
): Promise<boolean> {
  let isChanged = false;
  await editConfig(found, options, (value) => {
    const denied = toObject(value.denied_tools);
    const path = ['denied_tools', tool.server];
    const rule = ruleAgainst(denied, tool);
    if (!enabled) {
      isChanged = rule === null;
      return isChanged ? [{ kind: 'append', path, value: tool.name }] : [];
    }
    const list = denied[tool.server];
    const at = Array.isArray(list) ? list.indexOf(tool.name) : -1;
    if (at < 0) {
      if (rule === null) return [];
      throw new GatewayError(
        'usage',
        `"${tool.name}" of "${tool.server}" is denied by ${rule} in ${found.file}, which may be about other tools too. Edit it yourself.`,
      );
    }
    isChanged = true;
    return [{ kind: 'remove', path: (list as unknown[]).length === 1 ? path : [...path, at] }];
  });
  return isChanged;
}

/** The rule of `denied_tools` that is about the tool, as it is written. */
function ruleAgainst(denied: JsonObject, { server, name }: NamedTool): string | null {
  for (const [servers, tools] of Object.entries(denied)) {
    if (!matchesPattern(servers, server) || !Array.isArray(tools)) continue;
    const rule = tools.find((one) => typeof one === 'string' && matchesPattern(one, name));
    if (rule !== undefined) return `denied_tools.${servers} = "${rule}"`;
  }
  return null;
}

function place(io: CommandIo) {
  return { cwd: io.cwd(), env: io.env };
}
