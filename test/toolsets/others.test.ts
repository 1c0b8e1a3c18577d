/** Toolsets and personas saved by another program, in the format that program documents. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { control, equippedNames, THREE, toolsetsToml } from '../support/toolsets.ts';

const reference = (namespacedName: string) => ({ namespacedName, refId: 'f'.repeat(64) });
const SAVED = {
  toolsets: {
    'dev-essentials': {
      name: 'dev-essentials',
      description: 'Daily work',
      version: '1.0.0',
      createdAt: '2025-01-01T00:00:00.000Z',
      lastModified: '2025-01-02T00:00:00.000Z',
      tools: [reference('git.status'), reference('docker.ps')],
      toolNotes: [{ toolRef: reference('git.status'), notes: [{ name: 'hint', note: 'Short form.' }] }],
    },
    broken: { name: 'broken' },
  },
  lastEquippedToolset: 'dev-essentials',
};

describe('toolsets saved by hypertool-mcp', () => {
  it('are imported with their notes; an invalid one is skipped and named', async () => {
    const cwd = tempFolder();
    const config = toolsetsToml(THREE);
    writeFiles(cwd, { 'tools.toml': config, 'config.json': JSON.stringify(SAVED) });
    const { code, stdout, stderr } = await runCli(['toolsets', 'import', 'config.json'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain('Saved "dev-essentials" with 2 tools.');
    expect(stderr).toContain('"broken" was left out');
    const { client } = await startStdio({ config, cwd });
    await control(client, 'equip-toolset', { name: 'dev-essentials' });
    expect(await equippedNames(client)).toEqual(['git_status', 'docker_ps']);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === 'git_status')!.description).toContain('- hint: Short form.');
  });
});

describe('a persona package', () => {
  const persona = `name: developer
description: Writes code
version: "1.0"
toolsets:
  - name: reading
    toolIds: [git.log]
  - name: writing
    description: Changes things
    toolIds:
      - git.commit
      - docker.ps
  - name: 7
defaultToolset: writing
metadata:
  author: somebody
`;
  const mcp = {
    mcpServers: {
      git: { type: 'stdio', ...serverEntry('basic', '--tools', 'status,commit,log') },
      docker: { type: 'stdio', ...serverEntry('basic', '--tools', 'ps') },
    },
  };

  it('works as a configuration: its servers, its toolsets, and its default toolset equipped', async () => {
    const cwd = tempFolder();
    writeFiles(cwd, { 'dev/persona.yaml': persona, 'dev/mcp.json': JSON.stringify(mcp) });
    const gateway = await startStdio({ cwd, args: ['--config', join('dev', 'persona.yaml')] });
    expect(await equippedNames(gateway.client)).toEqual(['git_commit', 'docker_ps']);
    await control(gateway.client, 'equip-toolset', { name: 'reading' });
    expect(await equippedNames(gateway.client)).toEqual(['git_log']);
  });

  it('without its mcp.json fails with an error that names the file', async () => {
    const cwd = tempFolder();
    writeFiles(cwd, { 'persona.yaml': persona });
    const { code, stderr } = await runCli(['list', '--config', 'persona.yaml'], { cwd });
    expect(code).toBe(2);
    expect(stderr).toContain('mcp.json: there is no such file');
  });
});
