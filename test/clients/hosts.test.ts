/** The way applications connect: the SDK starts the gateway or gets its address, and negotiates the revision itself. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { childEnv } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { activated, callText, toolNames } from '../support/doors.ts';
import { bin, startHttp } from '../support/gateway.ts';
import { MODERN } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

const config = serversToml({ git: server('basic', '--tools', 'status,push') });

async function transportTo(door: 'stdio' | 'http') {
  if (door === 'http') return new StreamableHTTPClientTransport(new URL((await startHttp({ config })).url));
  return new StdioClientTransport({
    command: process.execPath,
    args: [bin, 'stdio'],
    cwd: tempFolder({ 'tools.toml': config }),
    env: childEnv({ HOME: tempFolder() }),
  });
}

const MODES = [
  { mode: { pin: MODERN }, era: 'modern' },
  { mode: 'auto', era: 'modern' },
  { mode: 'legacy', era: 'legacy' },
] as const;

describe.each(['stdio', 'http'] as const)('an SDK v2 client over %s', (door) => {
  // On stdio the SDK starts a process each time.
  it.each(door === 'stdio' ? onePart(MODES.length, MODES) : MODES)(
    'negotiating by $mode activates a tool, is notified and calls it ($era)',
    async ({ mode, era }) => {
      let told = 0;
      const client = new Client(
        { name: 'host', version: '1.0.0' },
        { versionNegotiation: { mode }, listChanged: { tools: { autoRefresh: false, onChanged: () => void told++ } } },
      );
      atEnd(() => client.close());
      await client.connect(await transportTo(door));
      expect(client.getProtocolEra()).toBe(era);
      expect(client.getServerVersion()?.name).toBe('toolgate');
      expect(await toolNames(client)).toEqual([]);
      await activated(client, { tools_on: ['git_push'] });
      await waitFor(() => told === 1);
      expect(await toolNames(client)).toEqual(['git_push']);
      expect(JSON.parse(await callText(client, 'git_push'))).toMatchObject({ tool: 'push' });
    },
  );
});
