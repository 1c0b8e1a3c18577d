/** Coding agents as published have a server of their own. After `toolgate init` they list its tools through Toolgate. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { isMissingClients } from '../support/needs.ts';
import { writeFiles } from '../support/temp.ts';
import { run } from './rig/measure.ts';
import { openPlace } from './rig/place.ts';
import { codingAgents } from './rig/published.ts';

const memory = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-memory/dist/index.js', import.meta.url),
);

/** The entry of a page for Toolgate, as one for the memory server. */
function withMemory(entry: string): string {
  return entry
    .replace(/(?:~|\/home\/you)\/toolgate\/tools\.toml/, memory)
    .replace(/"--config", |--config /, '')
    .replace('-- toolgate', `-- ${process.execPath}`)
    .replace(/(command(?:"?: \[?| = ))"toolgate"/, `$1${JSON.stringify(process.execPath)}`)
    .replace('mcp add toolgate', 'mcp add memory')
    .replace(/"toolgate": \{/, '"memory": {')
    .replace('mcp_servers.toolgate', 'mcp_servers.memory');
}

describe.each(codingAgents)('$title', (client) => {
  it.skipIf(isMissingClients())(
    'lists the tools of its server through Toolgate after init, and has it back after undo',
    async () => {
      const place = await openPlace('stdio');
      const { argv, env, files, before = [] } = client.start({ ...place, real: withMemory });
      writeFiles(place.home, files ?? {});
      for (const command of before) await run(place, command, { ...place.env, ...env });
      const started = { cwd: place.work, env: { ...place.env, ...env } };
      const done = await runCli(['init', '--yes', '--point'], started);
      expect(done.code, done.stdout + done.stderr).toBe(0);
      expect(readFileSync(join(place.work, 'tools.toml'), 'utf8')).toContain('namespace = "memory"');
      const output = await run(place, argv, { ...place.env, ...env });
      const { turns } = place.model;
      const names = turns.flatMap(({ tools }) => tools.map(({ name }) => name));
      expect(
        names.filter((name) => name.includes('toolman_')),
        output.slice(-2000),
      ).not.toEqual([]);
      // The memory server keeps its file next to itself, so what it answers depends on earlier runs.
      expect(JSON.stringify(place.said())).toContain('memory_create_entities');
      const undone = await runCli(['init', '--undo'], started);
      expect(undone.code, undone.stdout + undone.stderr).toBe(0);
      const again = await runCli(['init', '--dry-run'], started);
      expect(again.stdout).toContain('memory');
    },
    400_000,
  );
});
