/**
 * Checks the entries of docs/clients.md for programs that are not installed: connects the way each of them would with
 * its entry.
 */
import { expect } from 'vitest';
import { parse } from 'yaml';
import { toolsOf } from '../support/client-entries.ts';
import type { Check } from '../support/docs-page.ts';

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

const desktop: Check = (text, { env }) =>
  connectAll((JSON.parse(text) as { mcpServers: Record<string, Entry> }).mcpServers, env);

const litellm: Check = async (text, { env }) => {
  const { mcp_servers } = parse(text) as { mcp_servers: Record<string, Entry> };
  for (const { transport } of Object.values(mcp_servers)) expect(transport).toBe('http');
  await connectAll(mcp_servers, env);
};

export const entryChecks: Record<string, Check> = { 'claude_desktop_config.json': desktop, 'litellm.yaml': litellm };
