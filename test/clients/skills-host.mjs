/**
 * A program that loads skills with the SDK, through Toolgate on stdio, from the server of the official suite. It lists
 * skills, and unless it is only to list them, loads the first one with all of its files. Usage: skills-host.mjs URL
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { SkillsClient, SkillVerificationError } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const url = process.argv.at(-1);
const onlyLists = process.env.MCP_CONFORMANCE_SCENARIO === 'sep-2640-client-no-prefetch';
const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

const cwd = mkdtempSync(join(tmpdir(), 'toolgate-skills-'));
const config = join(cwd, 'tools.json');
writeFileSync(config, JSON.stringify({ controls: [], servers: [{ namespace: '', url }] }));

const client = new Client({ name: 'skills-host', version: '1' }, { versionNegotiation: { mode: 'auto' } });
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [bin, 'stdio', '--no-shared', '--config', config],
  cwd,
  env: { PATH: process.env.PATH, HOME: cwd },
  stderr: 'inherit',
});

let code = 1;
try {
  await client.connect(transport);
  code = await drive(new SkillsClient(client));
} catch (error) {
  console.error(error);
} finally {
  await client.close();
  rmSync(cwd, { recursive: true, force: true });
}
process.exit(code);

async function drive(host) {
  let skills = [];
  // On a busy machine the first list may come before the server is up.
  for (let tries = 0; skills.length === 0 && tries < 300; tries++) {
    ({ skills } = await host.list());
    if (skills.length === 0) await new Promise((resolve) => setTimeout(resolve, 200));
  }
  if (skills.length === 0) return 1;
  if (onlyLists) return 0;
  try {
    for (const { uri } of [{ uri: skills[0].uri }, ...skills[0].resources]) await host.read(skills[0], uri);
  } catch (error) {
    // The suite serves what differs from its list.
    if (error instanceof SkillVerificationError) return 0;
    throw error;
  }
  return 1;
}
