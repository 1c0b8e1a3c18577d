/**
 * Files that other programs own: `.mcp.json`, the `{"servers": {…}}` of VS Code, policies in JSON, and persona
 * packages. Keys that Toolgate knows are read, the others are ignored with a notice. An invalid entry is left out, and
 * the rest is served.
 */
import { basename } from 'node:path';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { similarNames } from '../base/text.ts';
import type { BadEntry } from './broken.ts';
import { serverMapsIn, usualEntry } from './client-entry.ts';
import { translateVariables } from './client-variables.ts';
import { forbiddenKeys, type Issue, issueText, type Path, schemaIssues } from './issues.ts';
import { policyShape } from './policy.ts';
import { type Settings, settingsSchema, settingsShape } from './schema.ts';
import { keysWithout, type ServerEntry, type ServerSection, serverSchema, serverShape } from './servers.ts';

/** What was read from a foreign file. */
export interface ForeignConfig {
  readonly settings: Settings;
  /** The settings as they are written. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly entries: readonly (ServerEntry | BadEntry)[];
  readonly notices: readonly string[];
  /** Mistakes that must not be ignored. */
  readonly issues: readonly Issue[];
}

/** Whether the file is one that other programs write: `.mcp.json`, `mcp.json`, `cursor.mcp.json`. */
export function isForeign(file: string): boolean {
  return /(?:^|\.)mcp\.json$/i.test(basename(file));
}

const POLICY_KEYS = ['exposed_tools', 'agent_policies', 'default_policy'] satisfies (keyof typeof policyShape)[];

/**
 * Whether the file is a policy as other programs write it: JSON under a name that is not ours. `command` is one
 * executable there, and unknown keys are not mistakes.
 */
export function isPolicyFile(file: string, root: unknown): boolean {
  const isOther = /\.json$/i.test(file) && basename(file) !== 'toolgate.json' && !isForeign(file);
  return isOther && isObject(root) && POLICY_KEYS.some((key) => Object.hasOwn(root, key));
}

/** Files that only clients have. Their settings may have names that Toolgate knows too, such as `security`. */
const CLIENT_FILE =
  /^(?:settings\.json|opencode\.jsonc?|\.claude\.json|claude_desktop_config\.json|mcp[_-]config\.json|(?:cline_)?mcp_settings\.json)$/i;

/**
 * Whether the file is the configuration of a client under a name of its own, such as claude_desktop_config.json: it has a
 * map of servers where clients have one, and no setting of ours. A file with one of those is ours, and its other keys are
 * checked.
 */
export function isClientFile(file: string, root: unknown): boolean {
  if (!/\.(?:jsonc?|toml)$/i.test(file) || /^(?:toolgate\.json|(?:toolgate|tools)\.toml)$/.test(basename(file)))
    return false;
  if (!isObject(root)) return false;
  const places = serverMapsIn(root).map(({ path }) => path[0]!);
  if (CLIENT_FILE.test(basename(file))) return places.length > 0;
  // Files of ours have the first two as well.
  const isTheirs = places.some((place) => place !== 'servers' && (place !== 'mcpServers' || !file.endsWith('.toml')));
  return isTheirs && Object.keys(root).every((key) => key === '$schema' || !Object.hasOwn(settingsShape, key));
}

/** Reads the root map of a foreign file; `name` is the file's name in notices. */
export function readForeign(root: Record<string, unknown>, name: string, file = name): ForeignConfig {
  const notices: string[] = [];
  const entries: (ServerEntry | BadEntry)[] = [];
  const settings: Record<string, unknown> = {};
  const issues: Issue[] = [];
  const hasPolicy = Object.keys(root).some((key) => Object.hasOwn(policyShape, key));
  const notice = (path: Path, message: string) => notices.push(`${name}: ${issueText({ path, message })}`);

  const readMap = (place: Path, servers: JsonObject) => {
    for (const [name, entry] of Object.entries(servers)) {
      const path = [...place, name];
      const server = readServer(name, entry, { file }, (message) => notice(path, message));
      if (Array.isArray(server)) {
        const issues = server.map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
        entries.push({ path, name, written: entry, issues });
      } else entries.push({ path, name, ...server, isShellLine: false });
    }
  };

  // Everything else in the file of a client is its own business.
  if (!isForeign(file) && isClientFile(file, root)) {
    for (const { path, servers } of serverMapsIn(root)) readMap(path, servers);
    return { settings: settingsSchema.parse({}), written: {}, entries, notices, issues };
  }
  for (const [key, value] of Object.entries(root)) {
    if (key === 'mcpServers' || key === 'servers') {
      if (isObject(value)) readMap([key], value);
      else notice([key], 'left out: it is not a map of servers');
    } else if (!Object.hasOwn(settingsShape, key)) {
      if (hasPolicy && restricts(key)) issues.push({ path: [key], message: restriction(key) });
      else notice([], `ignored "${key}"${misspelled(key)}`);
    } else if (Object.hasOwn(policyShape, key)) {
      settings[key] = readRules(key, value, notice, issues);
    } else {
      const part = { [key]: value };
      const { error } = settingsSchema.safeParse(part);
      if (!error) settings[key] = value;
      else
        for (const issue of schemaIssues(settingsSchema, error, part)) notice(issue.path, `ignored: ${issue.message}`);
    }
  }
  if (!('mcpServers' in root) && !('servers' in root)) notice([], 'has no "mcpServers" and no "servers"');
  const parsed = settingsSchema.parse(issues.length > 0 ? {} : settings);
  return { settings: parsed, written: settings, entries, notices, issues };
}

/** Words in the keys of other programs that limit what an agent may do. */
const RESTRICTING =
  /secur|approv|confirm|danger|destructive|den(y|ied)|block|restrict|forbid|permission|allow|max_tools|tool_selection/i;

function restricts(key: string): boolean {
  return RESTRICTING.test(key);
}

function restriction(key: string): string {
  const isAboutPeople = /secur|approv|confirm|danger/i.test(key);
  const instead = isAboutPeople
    ? 'Write security.dangerous_tools or security.confirm instead'
    : 'Write the same with exposed_tools, denied_tools, conditions or limits';
  return `is not known here, and leaving out a rule could allow too much. ${instead}, or remove it`;
}

/** A key that is nearly one of ours was probably meant to be it. */
function misspelled(key: string): string {
  const [meant] = similarNames(key, Object.keys(settingsShape), 1);
  const isNear = meant !== undefined && Math.abs(meant.length - key.length) <= 2;
  return isNear ? `. Did you mean "${meant}"?` : '';
}

/**
 * A part of a policy without its unknown keys. Any other mistake becomes an issue, because ignoring it could allow too
 * much.
 */
function readRules(
  key: string,
  value: unknown,
  notice: (path: Path, message: string) => void,
  issues: Issue[],
): unknown {
  const part = structuredClone({ [key]: value });
  const { error } = settingsSchema.safeParse(part);
  for (const issue of error?.issues ?? []) {
    if (issue.code !== 'unrecognized_keys') continue;
    const path = issue.path as (string | number)[];
    const map = path.reduce<unknown>((at, step) => (at as Record<string | number, unknown>)[step], part);
    for (const unknown of issue.keys) {
      delete (map as Record<string, unknown>)[unknown];
      if (restricts(unknown)) issues.push({ path: [...path, unknown], message: restriction(unknown) });
      else notice(path, `ignored "${unknown}"`);
    }
  }
  const { error: left } = settingsSchema.safeParse(part);
  if (left) issues.push(...schemaIssues(settingsSchema, left, part));
  return part[key];
}

export interface ForeignServer {
  readonly server: ServerSection;
  /** What was kept of it. */
  readonly written: Readonly<Record<string, unknown>>;
}

/** The server in `entry`, or what is wrong with it. */
export function readServer(
  name: string,
  written: unknown,
  { file, workspace }: { readonly file: string; readonly workspace?: string },
  notice: (message: string) => void,
): ForeignServer | Issue[] {
  const leaveOut = (message: string) => [{ path: [], message }];
  const [forbidden] = forbiddenKeys({ [name]: written });
  if (forbidden) return [{ ...forbidden, path: forbidden.path.slice(1) }];
  if (!isObject(written)) return leaveOut('it is not a map');
  const entry = usualEntry(written);
  const { type, disabled, transport: named, ...rest } = entry;
  const transport = readTransport(type ?? named);
  if (transport === 'unknown') return leaveOut('its "type" is not "stdio", "http", "streamable-http" or "sse"');

  const draft: Record<string, unknown> = { namespace: namespaceOf(name), transport };
  const unused = unusedKeys(transport, rest);
  for (const [key, value] of Object.entries(rest)) {
    // Other programs write null and empty maps for what is not set.
    if (value === null || (unused.includes(key) && isEmpty(value))) continue;
    if (unused.includes(key) || !Object.hasOwn(serverShape, key)) {
      notice(`ignored "${key}"`);
    } else if (key === 'timeout' && typeof value === 'number' && value < 1000) {
      notice(
        `ignored "timeout", because some programs mean seconds by ${value} and some milliseconds. Write "${value}s" or "${value}ms"`,
      );
    } else if (key === 'tools' && !serverShape.tools.safeParse(value).success) {
      // In files of other programs it lists which tools they show, or when they ask.
      notice('ignored "tools", which is not a map of limits');
    } else draft[key] = key === 'env' || key === 'headers' ? withTexts(value) : value;
  }
  if (typeof disabled === 'boolean') draft.enabled = !disabled;
  const unknowable = translateAll(draft, file, workspace);
  // A disabled server needs no values.
  if (unknowable.length > 0 && draft.enabled !== false) return unknowable;
  const { data: server, error } = serverSchema.safeParse(draft);
  if (error) return schemaIssues(serverSchema, error, draft);
  if (server.namespace !== name && !('namespace' in rest)) notice(`its namespace is "${server.namespace}"`);
  return { server, written: draft };
}

/** Translates the variables in all texts of an entry. Returns what nobody but the client can fill in. */
function translateAll(draft: Record<string, unknown>, file: string, workspace: string | undefined): Issue[] {
  const issues: Issue[] = [];
  const translate = (value: unknown, path: Path): unknown => {
    if (Array.isArray(value)) return value.map((one, i) => translate(one, [...path, i]));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, translate(one, [...path, key])]));
    if (typeof value !== 'string') return value;
    const translated = translateVariables(value, file, workspace);
    if ('text' in translated) return translated.text;
    issues.push({ path, message: translated.problem });
    return value;
  };
  for (const key of ['command', 'args', 'env', 'cwd', 'url', 'headers'])
    if (draft[key] !== undefined) draft[key] = translate(draft[key], [key]);
  return issues;
}

function namespaceOf(name: string): string {
  return name.replace(/[^A-Za-z0-9_.-]/g, '_');
}

type Transport = 'stdio' | 'http' | 'sse' | undefined;

function readTransport(type: unknown): Transport | 'unknown' {
  switch (type) {
    case undefined:
    case null:
      return undefined;
    case 'stdio':
    case 'http':
    case 'sse':
      return type;
    case 'streamable-http':
      return 'http';
    default:
      return 'unknown';
  }
}

/** The keys that mean nothing, because the entry is of the other kind. */
function unusedKeys(transport: Transport, { command, url }: Record<string, unknown>): readonly string[] {
  const isHttp = transport === undefined ? command === undefined : transport !== 'stdio';
  if (isHttp) return url === undefined ? [] : ['command', ...keysWithout('url')];
  return command === undefined ? [] : ['url', ...keysWithout('command')];
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Turns numbers and booleans into strings, because variables and headers hold strings. */
function withTexts(map: unknown): unknown {
  if (!isObject(map)) return map;
  const text = (value: unknown) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value);
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, text(value)]));
}

/** A persona package: a folder with `persona.yaml`, which has toolsets, and `mcp.json`, which has the servers. */
export interface Persona {
  /** In the form of a configuration. */
  readonly toolsets: Readonly<Record<string, { readonly description: string; readonly tools: string[] }>>;
  /** The toolset to begin with. */
  readonly equipped: string | null;
  readonly problems: readonly string[];
}

export function isPersona(file: string): boolean {
  return /^persona\.ya?ml$/.test(basename(file));
}

export function readPersona(root: Record<string, unknown>): Persona {
  const problems: string[] = [];
  const toolsets: Record<string, { description: string; tools: string[] }> = {};
  const listed = Array.isArray(root.toolsets) ? root.toolsets : [];
  if (listed.length === 0) problems.push('has no "toolsets"');
  for (const [i, entry] of listed.entries()) {
    const { name, description, toolIds } = toObject(entry);
    if (typeof name === 'string' && Array.isArray(toolIds) && toolIds.every((id) => typeof id === 'string'))
      toolsets[name] = { description: typeof description === 'string' ? description : '', tools: toolIds };
    else problems.push(`toolsets[${i}]: left out: it needs a "name" and a list "toolIds"`);
  }
  const wanted = root.defaultToolset;
  const equipped = typeof wanted === 'string' && Object.hasOwn(toolsets, wanted) ? wanted : null;
  if (wanted !== undefined && equipped === null) problems.push(`"defaultToolset" is not one of its toolsets`);
  return { toolsets, equipped, problems };
}
