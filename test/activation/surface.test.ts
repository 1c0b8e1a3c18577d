/**
 * What a client sees of a large catalog: a description and instructions that no client cuts, and a way from there to
 * every tool. With CATALOGS=FOLDER the catalogs of real servers are used, one JSON file each.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { root } from '../support/docs-page.ts';
import {
  activate,
  activated,
  call,
  callText,
  doorsOf,
  enter,
  type Guest,
  ownError,
  resourceUris,
  toolNames,
} from '../support/doors.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const doors = doorsOf('surface');

const LIMIT = 2_000;

interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: object;
  readonly outputSchema?: object;
}

interface ServedCatalog {
  readonly name: string;
  readonly instructions: string;
  readonly tools: readonly Tool[];
}

function realCatalogs(folder: string): ServedCatalog[] {
  return readdirSync(folder).map((file) => {
    const { name, initialize, tools } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    return { name, instructions: initialize.instructions ?? '', tools };
  });
}

/** As many servers and tools as the real ones have, with names and descriptions of the same kind. */
function madeUpCatalogs(): ServedCatalog[] {
  const verbs = ['get', 'list', 'create', 'update', 'delete', 'search', 'add', 'remove'];
  const sizes = [340, 200, 200, ...Array.from({ length: 40 }, (_, i) => 1 + ((i * 7) % 30))];
  return sizes.map((size, i) => ({
    name: `service-${i}`,
    instructions: i % 6 === 0 ? `Handles the things of service ${i}. ${'Read the manual first. '.repeat(40)}` : '',
    tools: Array.from({ length: size }, (_, n) => ({
      name: `${verbs[n % verbs.length]}_thing_${n}`,
      description: `Does something with thing ${n}. ${'It takes some arguments and returns a result. '.repeat(n % 6)}`,
      inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
    })),
  }));
}

const folder = process.env.CATALOGS ?? '';
const isReal = folder !== '' && existsSync(folder);
const catalogs = isReal ? realCatalogs(folder) : madeUpCatalogs();
/** How many tools a client of each kind finds, activates and calls. */
const PICKED = isReal || isWide ? 30 : 5;
const toolCount = catalogs.reduce((sum, { tools }) => sum + tools.length, 0);

/** Each server answers a call with its own name and the name of the tool. */
function servedCatalogs() {
  const files = Object.fromEntries(catalogs.map(({ name, tools }) => [`${name}.json`, JSON.stringify(tools)]));
  const cwd = tempFolder(files);
  const commands = catalogs.map(({ name, tools, instructions }) => [
    name,
    server(
      'basic',
      ...['--name', name, '--raw-tools', join(cwd, `${name}.json`), '--tools', tools.map((one) => one.name).join(',')],
      ...(instructions === '' ? [] : ['--instructions', instructions]),
    ),
  ]);
  return { cwd, config: `controls = ["activate"]\n${serversToml(Object.fromEntries(commands))}` };
}

const describedBy = async ({ client }: Pick<Guest, 'client'>) =>
  (await client.listTools()).tools.find(({ name }) => name === 'toolman_activate')!.description!;
const instructionsOf = ({ client }: Pick<Guest, 'client'>) =>
  (client as unknown as { getInstructions(): string }).getInstructions();
const show = ({ client }: Pick<Guest, 'client'>, patterns: string[], page = 1) =>
  callText(client, 'toolman_activate', {
    ...{ tools_on: [], tools_off: [], resources_on: [], resources_off: [] },
    ...{ show: patterns, page },
  });

/** The tools that a test can call: SDK v1 insists on the output that a schema promises, and the fixture does not know it. */
const callable = catalogs.flatMap(({ name, tools }) =>
  tools.filter((tool) => tool.outputSchema === undefined).map((tool) => ({ from: name, tool: tool.name })),
);
const pick = (count: number) => fc.sample(fc.constantFrom(...callable), count);

/** Reads the pages of the catalog that a pattern shows, until one of them names the tool. */
async function find(guest: Pick<Guest, 'client'>, from: string, exposed: string): Promise<void> {
  let found = '';
  for (let page = 1; !found.split('\n').some((line) => line.replace(/^\*/, '').split(' ')[0] === exposed); page++)
    found = await show(guest, [`${from}_*`], page);
}

/** Arguments as a schema wants them at its first level. */
function fitting({ required = [], properties = {} }: Schema): Record<string, unknown> {
  const values: Record<string, unknown> = { object: {}, array: [], boolean: true, integer: 1, number: 1, null: null };
  const sample = (key: string) => values[[properties[key]?.type].flat()[0] ?? ''] ?? 'x';
  return Object.fromEntries(required.map((key) => [key, sample(key)]));
}

interface Schema {
  readonly required?: readonly string[];
  readonly properties?: Record<string, { readonly type?: string | string[] }>;
}

describe.each(doors)(`${catalogs.length} servers with ${toolCount} tools over %s`, (door) => {
  it('fit into 2,000 characters, and every tool can be found, activated and called', async () => {
    const guest = await enter(door, servedCatalogs());
    const { client, changes } = guest;
    const lines = catalogs.map(({ name, tools }) => `\n${name}_* (${tools.length})`);
    // Over stdio a client may list before all servers have started.
    const description = await waitFor(async () => {
      const text = await describedBy(guest);
      expect(text.length).toBeLessThanOrEqual(LIMIT);
      return lines.every((line) => text.includes(line)) && text;
    }, 30_000);
    expect(description).toMatch(/\nand \d+ more: call with show$/);
    expect(instructionsOf(guest).length).toBeLessThanOrEqual(LIMIT);
    expect(instructionsOf(guest).startsWith('Toolgate offers the tools of several servers.')).toBe(true);

    const picked = pick(2 * PICKED);
    for (const [index, { from, tool }] of picked.entries()) {
      const exposed = `${from}_${tool}`;
      await find(guest, from, exposed);
      const listed = await toolNames(client);
      const before = changes('tools');
      await activated(client, { tools_on: [exposed] });
      // Half of the time it waits for the notification, as clients do that refresh; else it lists by hand.
      if (index % 2 === 0 && !listed.includes(exposed)) await waitFor(() => changes('tools') > before);
      expect(await toolNames(client)).toContain(exposed);
      expect(JSON.parse(await callText(client, exposed, { id: 'x' }))).toMatchObject({ server: from, tool });
    }
    const { from, tool } = picked[0]!;
    expect(await activated(client, { tools_on: [`${from}_${tool}`] })).toBe('1 item was already active.');
    expect((await describedBy(guest)).length).toBeLessThanOrEqual(LIMIT);
    expect(await describedBy(guest)).toMatch(/\n\nItems \(\* is active\):\n(.+\n)*\*/);

    // It can be read, but the list has what servers offer and nothing else.
    expect(await resourceUris(client)).not.toContain('toolgate://catalog');
    const { contents } = await client.readResource({ uri: 'toolgate://catalog' });
    const [{ text, mimeType }] = contents as [{ text: string; mimeType: string }];
    expect(mimeType).toBe('text/markdown');
    for (const one of callable) expect(text).toContain(`${one.from}_${one.tool}`);
    for (const { instructions } of catalogs) expect(text).toContain(instructions.trim().slice(0, 8_000));
  }, 60_000);
});

it(`a client that never lists again reaches each of ${toolCount} tools with toolman_call`, async () => {
  const gateway = await startHttp(servedCatalogs());
  const guest = await gateway.connect({ name: 'codex-mcp-client' });
  const { client } = guest;
  expect(await toolNames(client)).toEqual(['toolman_call']);
  for (const { from, tool } of pick(PICKED)) {
    const name = `${from}_${tool}`;
    await find(guest, from, name);
    const { content } = await activate(client, { tools_on: [name] });
    // A tool that was picked twice is active already.
    expect(content.map(({ text }) => text).join('\n')).toMatch(/with toolman_call: \{|already active/);
    const definition = JSON.parse(await callText(client, 'toolman_call', { name, describe: true }));
    const args = fitting(definition.inputSchema);
    const answer = await callText(client, 'toolman_call', { name, arguments: args });
    expect(JSON.parse(answer), answer).toMatchObject({ server: from, tool });
  }
}, 60_000);

const LONG = 'A long description that says the same thing again and again. '.repeat(2);

/** Two servers, whose tools together do not fit into the description. */
function twoServers() {
  const definitions = (prefix: string) =>
    JSON.stringify(
      Array.from({ length: 20 }, (_, i) => ({
        name: `${prefix}_${i}`,
        description: LONG,
        inputSchema: { type: 'object' },
      })),
    );
  const cwd = tempFolder({ 'open.json': definitions('read'), 'vault.json': definitions('canary') });
  const entry = (name: string) =>
    server(
      'basic',
      '--raw-tools',
      join(cwd, `${name}.json`),
      '--instructions',
      `How to use ${name}. ${'x'.repeat(1500)}`,
    );
  return { cwd, servers: serversToml({ open: entry('open'), vault: entry('vault') }) };
}

describe.each(doors)('over %s', (door) => {
  it('a hidden server is neither named nor counted', async () => {
    const { cwd, servers } = twoServers();
    const policy =
      '\n[agent_policies."*"]\ntool_overrides = { open = ["*"] }\nallowed_servers = ["open"]\n[toolsets.locked]\ntools = ["vault.*"]\n';
    const guest = await enter(door, { cwd, config: servers + policy });
    const texts = [
      await describedBy(guest),
      instructionsOf(guest),
      await show(guest, ['*']),
      ...(await resourceUris(guest.client)),
      JSON.stringify(ownError(await call(guest.client, 'toolman_activate', { show: ['vault'] }))).replace('vault', ''),
    ];
    expect(texts[0]).toContain('open_* (20)');
    for (const text of texts) expect(text).not.toMatch(/vault|canary|locked|\b40\b/);
  });

  it('a client can have the whole catalog by configuration', async () => {
    const { cwd, servers } = twoServers();
    const guest = await enter(door, { cwd, config: `catalog = "full"\n${servers}` });
    const description = await describedBy(guest);
    for (let i = 0; i < 20; i++) expect(description).toContain(`\nvault_canary_${i} - ${LONG.slice(0, 120)}`);
    expect(instructionsOf(guest)).toContain('x'.repeat(1500));
    expect(await resourceUris(guest.client)).toEqual([]);
  });

  it('Toolgate’s own tools are always loaded', async () => {
    const { client } = await enter(door, {
      config: `controls = ["activate", "equip", "request"]\n${serversToml({ a: server('basic', '--tools', 'x') })}`,
    });
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(8);
    for (const tool of tools) expect(tool).toMatchObject({ _meta: { 'anthropic/alwaysLoad': true } });
  });
});

describe('the demo', () => {
  it('says in 2,000 characters that memory exists and how to activate it', async () => {
    const demo = readFileSync(join(root, 'examples/demo/toolgate.toml'), 'utf8')
      .replace(/^data_dir = .*$/m, '')
      .replaceAll('../../node_modules', join(root, 'node_modules'))
      .replaceAll(/"\.\.\/basic-tool(-ts)?"/g, (path) =>
        JSON.stringify(join(root, 'examples', JSON.parse(path).slice(3))),
      )
      .replace(/index\.js files"/, `index.js ${join(root, 'examples/demo/files')}"`)
      // The virtual environment of the Python folder takes long to make.
      .replace(/\[\[servers\]\]\nnamespace = "python"[^[]*/, '');
    const cwd = tempFolder({ 'toolgate.toml': demo });
    const guest = await startStdio({ cwd });
    const description = await describedBy(guest);
    expect(description.length).toBeLessThanOrEqual(LIMIT);
    expect(description).toContain('\nmemory_* (9');
    expect(description).toContain('A knowledge graph that outlives the conversation.');
    expect(instructionsOf(guest)).toContain('call toolman_activate');
    await activated(guest.client, { tools_on: ['memory_*'] });
    expect(await toolNames(guest.client)).toContain('memory_create_entities');
  }, 60_000);
});
