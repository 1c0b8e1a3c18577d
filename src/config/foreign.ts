/**
 * Files that other programs own: `.mcp.json` and the `{"servers": {…}}` of VS Code. What Toolgate knows is kept,
 * the rest is ignored and said; an entry that makes no sense is left out, and the others serve on.
 */

import { basename } from 'node:path';
import { isMap } from './fields.ts';
import { forbiddenKeys, type Issue, issueText, type Path, schemaIssues } from './issues.ts';
import { policyShape } from './policy-schema.ts';
import { type Entry, type Settings, settingsSchema } from './schema.ts';
import { keysWithout, type ServerFile, serverSchema, serverShape } from './server-schema.ts';

export interface Foreign {
  readonly settings: Settings;
  /** The same as they are written. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly entries: readonly Entry[];
  readonly notices: readonly string[];
  /** Mistakes that are not passed over. */
  readonly issues: readonly Issue[];
}

/** Whether the file is one that other programs write: `.mcp.json`, `mcp.json`, `cursor.mcp.json`. */
export function isForeign(file: string): boolean {
  return /(?:^|\.)mcp\.json$/i.test(basename(file));
}

const POLICY_KEYS = ['exposed_tools', 'agent_policies', 'default_policy'];

/**
 * Whether the file is a policy as other programs write it: JSON under a name that is not ours. `command` is one executable
 * there, and keys that Toolgate does not know are no mistakes.
 */
export function isPolicyFile(file: string, root: unknown): boolean {
  const isOther = /\.json$/i.test(file) && basename(file) !== 'toolgate.json' && !isForeign(file);
  return isOther && isMap(root) && POLICY_KEYS.some((key) => Object.hasOwn(root, key));
}

/** Reads the root map of a foreign file; `name` is the file's name in notices. */
export function readForeign(root: Record<string, unknown>, name: string): Foreign {
  const notices: string[] = [];
  const entries: Entry[] = [];
  const settings: Record<string, unknown> = {};
  const issues: Issue[] = [];
  const notice = (path: Path, message: string) => notices.push(`${name}: ${issueText({ path, message })}`);

  for (const [key, value] of Object.entries(root)) {
    if (key === 'mcpServers' || key === 'servers') {
      if (isMap(value)) {
        for (const [name, entry] of Object.entries(value)) {
          const path = [key, name];
          const server = readServer(name, entry, (message) => notice(path, message));
          if (server) entries.push({ path, name, ...server, shellLine: false });
        }
      } else notice([key], 'left out: it is not a map of servers');
    } else if (!Object.hasOwn(settingsSchema.shape, key)) {
      notice([], `ignored "${key}"`);
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

/** Part of a policy without the keys that nobody knows. What is wrong otherwise is not passed over: that could open a door. */
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
      notice(path, `ignored "${unknown}"`);
    }
  }
  const { error: left } = settingsSchema.safeParse(part);
  if (left) issues.push(...schemaIssues(settingsSchema, left, part));
  return part[key];
}

/** The server in `entry`, or null where there is none to be made of it. */
function readServer(name: string, entry: unknown, notice: (message: string) => void): Read | null {
  const leaveOut = (reason: string) => {
    notice(`left out: ${reason}`);
    return null;
  };
  const [forbidden] = forbiddenKeys({ [name]: entry });
  if (forbidden) return leaveOut(issueText(forbidden));
  if (!isMap(entry)) return leaveOut('it is not a map');
  const { type, disabled, transport, ...rest } = entry;
  const kind = kindOf(type ?? transport);
  if (kind.problem !== undefined) return leaveOut(kind.problem);

  const draft: Record<string, unknown> = { namespace: namespaceOf(name), transport: kind.transport };
  const useless = uselessKeys(kind.transport, rest);
  for (const [key, value] of Object.entries(rest)) {
    // Other programs write null and empty maps for what is not set.
    if (value === null || (useless.includes(key) && isEmpty(value))) continue;
    if (useless.includes(key) || !Object.hasOwn(serverShape, key)) {
      notice(`ignored "${key}"`);
    } else if (key === 'timeout' && typeof value === 'number' && value < 1000) {
      notice(
        `ignored "timeout", because some programs mean seconds by ${value} and some milliseconds. Write "${value}s" or "${value}ms"`,
      );
    } else if (key === 'tools' && !serverShape.tools.safeParse(value).success) {
      // Others say there which tools they show, or when they ask.
      notice('ignored "tools", which is no map of limits');
    } else draft[key] = key === 'env' || key === 'headers' ? withTexts(value) : value;
  }
  if (typeof disabled === 'boolean') draft.enabled = !disabled;
  const { data: server, error } = serverSchema.safeParse(draft);
  if (error) return leaveOut(schemaIssues(serverSchema, error, draft).map(issueText).join(' '));
  if (server.namespace !== name && !('namespace' in rest)) notice(`its namespace is "${server.namespace}"`);
  return { server, written: draft };
}

interface Read {
  readonly server: ServerFile;
  /** What of it was kept. */
  readonly written: Readonly<Record<string, unknown>>;
}

function namespaceOf(name: string): string {
  return name.replace(/[^A-Za-z0-9_.-]/g, '_');
}

type Transport = 'stdio' | 'http' | 'sse' | undefined;
type Kind = { readonly transport: Transport; readonly problem?: undefined } | { readonly problem: string };

function kindOf(type: unknown): Kind {
  switch (type) {
    case undefined:
    case null:
      return { transport: undefined };
    case 'stdio':
      return { transport: 'stdio' };
    case 'http':
    case 'streamable-http':
      return { transport: 'http' };
    case 'sse':
      return { transport: 'sse' };
    default:
      return { problem: 'its "type" is none of "stdio", "http", "streamable-http" and "sse"' };
  }
}

/** The keys that say nothing, because the entry is of the other kind. */
function uselessKeys(transport: Transport, { command, url }: Record<string, unknown>): readonly string[] {
  const isHttp = transport === undefined ? command === undefined : transport !== 'stdio';
  if (isHttp) return url === undefined ? [] : ['command', ...keysWithout('url')];
  return command === undefined ? [] : ['url', ...keysWithout('command')];
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Numbers and truth values as the text that a variable or header can hold. */
function withTexts(map: unknown): unknown {
  if (!isMap(map)) return map;
  const text = (value: unknown) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value);
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, text(value)]));
}
