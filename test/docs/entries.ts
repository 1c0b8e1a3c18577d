/**
 * Checks the entries of docs/clients.md for programs that are not installed: connects the way each of them would with
 * its entry.
 */
import { parse as parseToml } from 'smol-toml';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { toolsOf } from '../support/client-entries.ts';
import type { Check, Sandbox } from '../support/docs-page.ts';

interface Entry {
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly transport?: string;
  readonly static_headers?: Record<string, string>;
}

async function connectAll(entries: Record<string, Entry>, env: Record<string, string>): Promise<void> {
  expect(Object.keys(entries)).not.toEqual([]);
  for (const { url, headers, static_headers } of Object.values(entries)) {
    const names = await toolsOf({ url, headers: headers ?? static_headers ?? {} }, env, '');
    expect(names.some((name) => name.endsWith('list_issues'))).toBe(true);
  }
}

const namespaced: Check = (text, { env }) =>
  connectAll((JSON.parse(text) as { mcpServers: Record<string, Entry> }).mcpServers, env);

const litellm: Check = async (text, { env }) => {
  const { mcp_servers } = parse(text) as { mcp_servers: Record<string, Entry> };
  for (const { transport } of Object.values(mcp_servers)) expect(transport).toBe('http');
  await connectAll(mcp_servers, env);
};

/** Connects with an entry for all of Toolgate. */
async function connects(entry: unknown, { env }: Sandbox): Promise<void> {
  const { httpUrl, type, command, ...rest } = entry as Record<string, unknown>;
  const [program, ...args] = Array.isArray(command) ? (command as string[]) : [command as string];
  const started = Array.isArray(command) ? { command: program, args } : command === undefined ? {} : { command };
  const url = httpUrl === undefined ? {} : { url: httpUrl };
  const names = await toolsOf({ ...rest, ...url, ...started } as Parameters<typeof toolsOf>[0], env, '');
  expect(names.length).toBeGreaterThan(0);
}

type Servers = Record<string, Record<string, unknown>>;

const underMcpServers: Check = async (text, sandbox) => {
  for (const entry of Object.values((JSON.parse(text) as { mcpServers: Servers }).mcpServers))
    await connects(entry, sandbox);
};

const codex: Check = (text, sandbox) => {
  const { required, ...entry } = (parseToml(text) as { mcp_servers: { toolgate: Record<string, unknown> } }).mcp_servers
    .toolgate;
  expect(required).toBe(true);
  return connects(entry, sandbox);
};

const opencode: Check = (text, sandbox) => connects((JSON.parse(text) as { mcp: Servers }).mcp.toolgate, sandbox);

/** The commands are those that test/clients/published-libraries.test.ts runs. */
const inspector: Check = (text) => {
  for (const line of text.trim().split('\n'))
    expect(line).toMatch(/^npx @modelcontextprotocol\/inspector --cli .* --method tools\/list$/);
};

export const entryChecks: Record<string, Check> = {
  'namespace.mcp.json': namespaced,
  'litellm.yaml': litellm,
  'claude_desktop_config.json': underMcpServers,
  'mcporter.json': underMcpServers,
  '.gemini/settings.json': underMcpServers,
  '.codex/config.toml': codex,
  'opencode.json': opencode,
  inspector,
};
