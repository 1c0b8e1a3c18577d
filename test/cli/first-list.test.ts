/** The start, `doctor` and the library say what a client sees at first, and how to change that. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli, startCli } from '../support/cli.ts';
import { runDoctorIn } from '../support/doctor.ts';
import { startStdio } from '../support/gateway.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const entry = (name: string, tools: string) => serverEntry('basic', '--name', name, '--tools', tools);
const mcpServers = { git: entry('git', 'status,log'), docker: entry('docker', 'ps') };
const MCP_JSON = { '.mcp.json': JSON.stringify({ mcpServers }) };
const toml = serversToml({
  git: server('basic', '--name', 'git', '--tools', 'status,log'),
  docker: server('basic', '--name', 'docker', '--tools', 'ps'),
});
const EQUIP_HOW = 'To show more from the start: --equip-toolset NAME, where NAME is a server, a saved toolset, or all.';
const ACTIVATE_HOW = 'To show more from the start: active_toolsets = ["NAME_*"], or controls = [] for all.';

async function servedText(files: Record<string, string>, args: string[] = []): Promise<string> {
  const child = startCli(['serve', '--port', '0', ...args], { files });
  await waitFor(() => / sees? .*\n/.test(child.stdout()));
  return child.stdout();
}

describe('toolgate serve says after its servers', () => {
  it('how many tools a client sees until a toolset is equipped', async () => {
    const text = await servedText(MCP_JSON);
    expect(text).toMatch(/^A client sees 9 of 12 tools until a toolset is equipped; about [\d,]+ tokens\. To show/m);
    expect(text).toContain(EQUIP_HOW);
    expect(text.indexOf('Serving:')).toBeLessThan(text.indexOf('A client sees'));
    const equipped = await servedText(MCP_JSON, ['--equip-toolset', 'git']);
    expect(equipped).toMatch(
      /^A client sees 11 of 12 tools until another toolset is equipped; about [\d,]+ tokens\. /m,
    );
    expect(await servedText(MCP_JSON, ['--equip-toolset', 'all'])).toMatch(/^A client sees all 12 tools; about/m);
  });

  it('how many tools a client sees until one is activated', async () => {
    const text = await servedText({ 'tools.toml': toml });
    expect(text).toMatch(/^A client sees 1 of 4 tools until one is activated; about [\d,]+ tokens\. /m);
    expect(text).toContain(ACTIVATE_HOW);
    const some = await servedText({ 'tools.toml': `active_toolsets = ["git_*"]\n${toml}` });
    expect(some).toMatch(/^A client sees 3 of 4 tools until more are activated; about [\d,]+ tokens\. /m);
    const all = await servedText({ 'tools.toml': `controls = []\n${toml}` });
    expect(all).toMatch(/^A client sees all 3 tools; about [\d,]+ tokens\.$/m);
    expect(all).not.toContain('To show more');
  });

  it('that many tools are better searched, and what a client that searches sees', async () => {
    const many = server('basic', '--tools', Array.from({ length: 61 }, (_, i) => `t${i}`).join());
    const advice = 'For so many tools controls = "auto" is better: a model then searches them.';
    expect(await servedText({ 'tools.toml': `controls = ["activate"]\n${serversToml({ big: many })}` })).toContain(
      advice,
    );
    expect(await servedText({ 'toolgate.toml': serversToml({ big: many }) })).toContain(`tokens. ${advice}`);
    const auto = await servedText({ 'tools.toml': `controls = "auto"\n${serversToml({ big: many })}` });
    expect(auto).toMatch(/^A client sees 3 of 64 tools and finds the others by search; about [\d,]+ tokens\. To show/m);
    expect(auto).not.toContain('For so many tools');
  });

  it('the same once only, if it is stopped while a server is still starting', async () => {
    const held = { slow: server('basic', '--start-when', join(tempFolder(), 'never')) };
    const files = { 'tools.toml': `start_wait = "2s"\n${toml}\n${serversToml(held)}` };
    const child = startCli(['serve', '--port', '0'], { files });
    await waitFor(() => / sees? .*\n/.test(child.stdout()));
    expect((await child.stop('SIGINT')).code).toBe(0);
    expect(child.stdout().match(/A client sees/g)).toHaveLength(1);
  });

  it('it again only if it has changed, when a server that took longer has been tried', async () => {
    const file = join(tempFolder(), 'go');
    const later = async (last: string) => {
      const command = `/bin/sh -c 'until [ -e ${file} ]; do sleep 0.1; done; ${last}'`;
      const files = { 'tools.toml': `start_wait = "2s"\n${toml}\n${serversToml({ slow: command })}` };
      const child = startCli(['serve', '--port', '0'], { files });
      await waitFor(() => / sees? .*\n/.test(child.stdout()), 15_000);
      writeFileSync(file, '');
      await waitFor(() => /[✓✗] slow.*\n/.test(child.stdout()), 15_000);
      await child.stop('SIGTERM');
      rmSync(file);
      return child.stdout().match(/A client sees \d+ of \d+/g);
    };
    expect(await later('exit 1')).toEqual(['A client sees 1 of 4']);
    const up = await later(`exec ${server('basic', '--name', 'slow', '--tools', 'one')}`);
    expect(up).toEqual(['A client sees 1 of 4', 'A client sees 1 of 5']);
  });

  it('the same for each agent, if policies differ', async () => {
    const policy =
      '[agent_policies.dev]\nallowed_servers = ["*"]\n[agent_policies.qa]\nallowed_servers = ["*"]\n' +
      '[agent_policies.guest]\nallowed_servers = ["git"]\n[default_policy]\nallow_unknown_tools = true\n';
    const text = await servedText({ 'tools.toml': `${toml}\n${policy}` });
    expect(text).toMatch(/^Agents dev, qa see 1 of 4 tools until one is activated; about [\d,]+ tokens\.$/m);
    expect(text).toMatch(/^Agent guest sees 1 of 3 tools until one is activated; about [\d,]+ tokens\. To/m);
  });
});

describe('toolgate on stdio logs it', () => {
  it('with the name of the client, if it is known', async () => {
    const gateway = await startStdio({ files: MCP_JSON, connect: false });
    const info = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'claude-code', version: '2' } };
    await gateway.request('initialize', JSON.stringify(info));
    await waitFor(() => gateway.stderr().includes('tokens'));
    expect(gateway.stderr()).toMatch(
      /"Claude Code sees 9 of 12 tools until a toolset is equipped; about [\d,]+ tokens\. To show more/,
    );
  });

  it('unless only errors are logged', async () => {
    const quiet = await startStdio({ files: MCP_JSON, args: ['--log-level', 'error'] });
    const { tools } = await quiet.client.listTools();
    expect(tools).toHaveLength(9);
    await quiet.stop();
    expect(quiet.stderr()).toBe('');
    const usual = await startStdio({ files: MCP_JSON });
    await waitFor(() => usual.stderr().includes('A client sees 9 of 12 tools'));
  });
});

it('toolgate doctor says it, which is no warning', async () => {
  const { code, findings } = await runDoctorIn(tempFolder(MCP_JSON));
  const said = findings.filter(({ about }) => about === 'clients');
  expect(said).toMatchObject([
    { level: 'ok', message: expect.stringMatching(/^A client sees 9 of 12 tools until a /) },
  ]);
  expect(said[0]!.message).toContain(EQUIP_HOW);
  expect(code).toBe(0);
  expect((await runCli(['doctor'], { config: '' })).stdout).not.toContain('clients');
});

it('a program gets the figures from the gateway, by the same estimate as everywhere', async () => {
  const config = { mcpServers, controls: ['equip'], agent_policies: { guest: { allowed_servers: ['git'] } } };
  const cwd = tempFolder();
  const gateway = createGateway(
    configFromValue({ ...config, default_policy: { allow_unknown_tools: true } }, { cwd, env: {} }),
  );
  atEnd(() => gateway.close());
  await gateway.tried();
  const before = gateway.firstList();
  expect(before).toMatchObject({ shown: 9, own: 9, tools: 12, toolset: null, until: 'equip' });
  expect(gateway.firstList('guest')).toMatchObject({ shown: 9, own: 9, tools: 11 });
  await gateway.equip('git');
  const after = gateway.firstList();
  expect(after).toMatchObject({ shown: 11, toolset: 'git' });
  const defined = [...gateway.catalog.entries.tool.values()].filter(({ sourceKey }) => sourceKey === 'git');
  const tokens = defined.map(({ name, item }) => {
    const definition = JSON.stringify({ ...JSON.parse(item.bytes.toString()), name });
    return Math.ceil(definition.length / 4);
  });
  expect(after.tokens - before.tokens).toBe(tokens[0]! + tokens[1]!);
});
