/** Vectors of words: a file makes the search find what means the same, within what a caller may know, and only then. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import type { ToolResult } from '../support/doors.ts';
import { connectAs } from '../support/named-client.ts';
import { basic, open } from '../support/open-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const TOOLS = [
  { name: 'stargaze', description: 'Shows constellations', inputSchema: { type: 'object' } },
  { name: 'telescope', description: 'Points at nebulae', inputSchema: { type: 'object' } },
  { name: 'pay', description: 'Pays an invoice', inputSchema: { type: 'object' } },
];
const TABLE = 'galaxy 1 0.1\nconstellations 0.9 0\nnebulae 0.95 0.05\ninvoice 0 1\n';

async function openWith(search: object) {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.json': JSON.stringify(TOOLS), 'table.txt': TABLE });
  const made = await runCli(['vectors', 'table.txt', 'words.vectors', '--json'], { cwd });
  expect(JSON.parse(made.stdout)).toMatchObject({ pieces: 4, dimensions: 2 });
  const { gateway } = await open(
    { a: basic('--name', 'a', '--raw-tools', join(cwd, 'tools.json')) },
    {
      controls: ['search'],
      data_dir: join(cwd, 'data'),
      agent_policies: {
        default: { tool_overrides: { '*': ['*'] } },
        narrow: { allowed_servers: ['a'], tool_overrides: { a: ['telescope', 'pay'] } },
      },
      search: Object.fromEntries(
        Object.entries(search).map(([key, value]) => [key, key === 'vectors' ? join(cwd, value) : value]),
      ),
    },
  );
  const ask = async (query: string, agent?: string) => {
    const client = await connectAs(gateway, 'any', agent === undefined ? {} : { agent });
    const found = (await client.callTool({ name: 'search_tools', arguments: { queries: [query] } })) as unknown;
    return (found as ToolResult).content[0]!.text;
  };
  return { gateway, ask, cwd };
}

it('finds what has no word of the query, and only what is open to the agent', async () => {
  const { ask } = await openWith({ vectors: 'words.vectors' });
  const found = await ask('galaxy');
  expect(found).toContain('a_stargaze');
  expect(found).toContain('a_telescope');
  expect(found).not.toContain('a_pay');
  const narrow = await ask('galaxy', 'narrow');
  expect(narrow).toContain('a_telescope');
  expect(narrow).not.toContain('stargaze');
});

it('is off without a file, and goes on by words if the file cannot be used', async () => {
  expect(await (await openWith({})).ask('galaxy')).toContain('Nothing matches');
  const { gateway, ask } = await openWith({ vectors: 'missing.vectors' });
  expect(await ask('galaxy')).toContain('Nothing matches');
  expect(await ask('invoice')).toContain('a_pay');
  expect(await gateway.learning.vectorProblem()).toMatch(/missing\.vectors cannot be read: there is no such file/);
  const wrong = await openWith({ vectors: 'table.txt' });
  expect(await wrong.ask('invoice')).toContain('a_pay');
  expect(await wrong.gateway.learning.vectorProblem()).toMatch(/table\.txt is not a file in the format safetensors/);
});

it('the command says what is wrong, and writes nothing then', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'bad.txt': 'word 1 2\nword 1\n' });
  const run = async (...args: string[]) => {
    const { code, stderr } = await runCli(['vectors', ...args], { cwd });
    expect(code).not.toBe(0);
    return stderr;
  };
  expect(await run('bad.txt', 'out.vectors')).toContain('line 2 is not a word with 2 numbers');
  expect(await run('none.txt', 'out.vectors')).toContain('there is no such file');
  expect(await run('none.txt')).toContain('toolgate vectors MODEL FILE');
  expect(await run('bad.txt', 'out.vectors', '--dimensions', '1')).toContain('--dimensions is a number from 2');
  expect(() => readFileSync(join(cwd, 'out.vectors'))).toThrow();
});

it('is reported by doctor if its file is missing or bad, and not if it can be used', async () => {
  const cwd = tempFolder();
  const config = (file: string) => `${serversToml({ up: server('basic') })}\n[search]\nvectors = "${file}"\n`;
  writeFiles(cwd, { 'table.txt': TABLE, 'bad.vectors': 'no vectors', 'tools.toml': config('words.vectors') });
  await runCli(['vectors', 'table.txt', 'words.vectors'], { cwd });
  const examine = async () => {
    const { code, stdout } = await runCli(['doctor', '--json'], { cwd });
    const { findings } = JSON.parse(stdout) as { findings: { level: string; about: string; message: string }[] };
    return { code, found: findings.filter(({ about }) => about === 'search') };
  };
  expect(await examine()).toEqual({ code: 0, found: [] });
  for (const [file, why] of [
    ['missing.vectors', 'there is no such file'],
    ['bad.vectors', 'bad.vectors'],
  ] as const) {
    writeFiles(cwd, { 'tools.toml': config(file) });
    const message = expect.stringContaining(why) as unknown;
    expect(await examine()).toEqual({ code: 1, found: [{ level: 'warning', about: 'search', message }] });
  }
});
