// npm run bench:search: how well the search finds tools, and what it costs.
//   --sets FOLDER      sets of queries, a folder each with tools.jsonl and queries.jsonl (or SEARCH_SETS=FOLDER); without it
//                      only the cost is measured
//   --examples NUMBER  takes so many queries of each tool as its examples, and asks the others
//   --vectors FILE     vectors of words, as toolgate vectors makes them, mixed into the scores
//   --weight NUMBER    how much they count (0.2)
//   --tools NUMBER     the size of the catalog whose cost is measured (10000)
//   --json             JSON on stdout in place of the tables
//
// A line of tools.jsonl is { id, server, name, description, params: { name: description } }, one of queries.jsonl
// { id, text, gold: [id], groups?: [[id]], task? }. With groups, one tool of each is needed. Queries of one task are asked one
// after the other, and what they find together counts.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'rolldown';

const { values: flags } = parseArgs({
  options: {
    sets: { type: 'string', default: process.env.SEARCH_SETS ?? '' },
    examples: { type: 'string', default: '0' },
    tools: { type: 'string', default: '10000' },
    vectors: { type: 'string', default: '' },
    weight: { type: 'string', default: '0.2' },
    json: { type: 'boolean', default: false },
  },
});

const engine = await loadEngine();
const vectors =
  flags.vectors === ''
    ? null
    : { words: engine.readVectors(readFileSync(flags.vectors), flags.vectors), weight: Number(flags.weight) };

/** The parts of Toolgate that are measured, as they are in src/. */
async function loadEngine() {
  const source = (path) => JSON.stringify(fileURLToPath(new URL(`../src/${path}`, import.meta.url)));
  const folder = mkdtempSync(join(tmpdir(), 'bench-search-'));
  const file = join(folder, 'engine.mjs');
  const id = 'engine';
  await build({
    input: id,
    platform: 'node',
    logLevel: 'silent',
    output: { file, format: 'esm', codeSplitting: false },
    plugins: [
      {
        name: 'engine',
        resolveId: (asked) => (asked === id ? id : null),
        load: (asked) =>
          asked === id
            ? `export { buildCatalog } from ${source('catalog/catalog.ts')};
               export { readItems } from ${source('catalog/item.ts')};
               export { searchOf } from ${source('catalog/search/search.ts')};
               export { readVectors } from ${source('catalog/search/vectors/word-vectors.ts')};
               export { printBrief } from ${source('controls/signature.ts')};`
            : null,
      },
    ],
  });
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readSets(folder) {
  if (!existsSync(folder)) throw new Error(`There is no folder ${folder}.`);
  const lines = (file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'queries.jsonl')))
    .sort()
    .map((name) => ({
      name,
      tools: lines(join(folder, name, 'tools.jsonl')),
      queries: lines(join(folder, name, 'queries.jsonl')),
    }));
}

/** A catalog with one server for each server of the set, and the id of each tool by its exposed name. */
function catalogFrom(tools) {
  const servers = new Map();
  for (const tool of tools) {
    // A server cannot have two tools of the same name.
    let key = tool.server || 'tools';
    while (servers.get(key)?.some(({ name }) => name === tool.name)) key += '+';
    servers.set(key, [...(servers.get(key) ?? []), tool]);
  }
  const contributions = [...servers].map(([key, own], at) => ({
    ...contribution(key, at + 1, own),
    description: [own[0].serverTitle, own[0].serverDescription].filter(Boolean).join('. '),
  }));
  const catalog = engine.buildCatalog(1, contributions, []);
  const known = new Map([...servers].map(([key, own]) => [key, new Map(own.map(({ name, id }) => [name, id]))]));
  const ids = new Map(
    [...catalog.entries.tool].map(([name, { sourceKey, item }]) => [name, known.get(sourceKey).get(item.name)]),
  );
  return { catalog, ids };
}

function contribution(key, id, tools) {
  const definitions = tools.map(({ name, description = '', params = {}, schema }) => ({
    name,
    description,
    inputSchema: schema ?? {
      type: 'object',
      properties: Object.fromEntries(
        Object.entries(params ?? {}).map(([one, text]) => [one, { type: 'string', description: text ?? '' }]),
      ),
    },
  }));
  const { items, problems } = engine.readItems('tool', Buffer.from(JSON.stringify({ tools: definitions })));
  return { id, key, namespace: key, present: true, offer: { items, problems, instructions: '' } };
}

async function measureSet({ name, tools, queries }) {
  const { catalog, ids } = catalogFrom(tools);
  const { examples, asked } = takeExamples(queries, catalog, ids, Number(flags.examples));
  const search = await engine.searchOf(catalog, examples, vectors);
  const found = asked.map(({ text }) => search.find(text, 10).best);
  const tokens = found.map((best) =>
    Math.ceil(
      best
        .slice(0, 5)
        .map((one) => engine.printBrief(one.name, one.entry))
        .join('\n').length / 4,
    ),
  );
  const lists = found.map((best) => best.map((one) => ids.get(one.name)));
  const tasks = groupTasks(asked, lists);
  const recall = (most) => mean(tasks.map(({ groups, results }) => recallOf(groups, results, most)));
  return {
    set: name,
    tools: catalog.entries.tool.size,
    queries: asked.length,
    ...(asked.some(({ task }) => task !== undefined) && { tasks: tasks.length, 'r@3': recall(3) }),
    'r@1': recall(1),
    'r@5': recall(5),
    'r@10': recall(10),
    'nDCG@10': mean(asked.map((query, at) => gainOf(query, lists[at]))),
    tokens: mean(tokens),
  };
}

const idOf = (gold) => (typeof gold === 'string' ? gold : gold.id);
const groupsOf = ({ gold, groups }) => groups ?? gold.map((one) => [idOf(one)]);

/** The first queries of each tool become its examples, if it is the only one that they need. */
function takeExamples(queries, catalog, ids, count) {
  const texts = new Map();
  const asked = [];
  for (const query of queries) {
    const only = query.gold.length === 1 ? idOf(query.gold[0]) : null;
    const own = only === null ? undefined : (texts.get(only) ?? []);
    if (own === undefined || own.length >= count) asked.push(query);
    else texts.set(only, [...own, query.text]);
  }
  const examples = new Map(
    [...catalog.entries.tool].flatMap(([name, { sourceKey, item }]) => {
      const own = texts.get(ids.get(name));
      return own === undefined ? [] : [[`${sourceKey}.${item.name}`, own]];
    }),
  );
  return { examples, asked };
}

/** The lists of what the queries of each task found. A query without a task is one of its own. */
function groupTasks(queries, lists) {
  const tasks = new Map();
  queries.forEach((query, at) => {
    const key = query.task ?? `query ${at}`;
    const task = tasks.get(key) ?? { groups: groupsOf(query), results: [] };
    task.results.push(lists[at]);
    tasks.set(key, task);
  });
  return [...tasks.values()];
}

function recallOf(groups, results, most) {
  const found = new Set(results.flatMap((list) => list.slice(0, most)));
  return groups.filter((any) => any.some((id) => found.has(id))).length / Math.max(1, groups.length);
}

function gainOf({ gold }, list) {
  const grades = new Map(gold.map((one) => [idOf(one), one.grade ?? one.relevance ?? 1]));
  const sum = (all) => all.reduce((total, grade, at) => total + grade / Math.log2(at + 2), 0);
  const ideal = sum([...grades.values()].sort((a, b) => b - a).slice(0, 10));
  return ideal === 0 ? 0 : sum(list.slice(0, 10).map((id) => grades.get(id) ?? 0)) / ideal;
}

function mean(values) {
  return values.length === 0 ? 0 : values.reduce((sum, one) => sum + one, 0) / values.length;
}

// What it costs

const VERBS = 'get list create update delete search send read write run stop check export import merge compare'.split(
  ' ',
);
const THINGS =
  'issue branch file folder message channel user team invoice payment order product image video page comment label event calendar task project build pipeline container cluster table record query report chart alert metric log token role'.split(
    ' ',
  );

/** A number from 0 to 1 that follows from its seed. */
function chance(seed) {
  let mixed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
}

const pick = (list, seed) => list[Math.floor(chance(seed) * list.length)];

/** The tools of a made-up server. Their words are as often and as rare as those of real ones. */
function serverTools(server, count, edition = 0) {
  return Array.from({ length: count }, (_, i) => {
    const seed = server * 10_007 + i * 31 + edition * 7;
    const [verb, thing, other] = [pick(VERBS, seed), pick(THINGS, seed + 1), pick(THINGS, seed + 2)];
    const rare = `term${Math.floor(chance(seed + 3) ** 3 * 20_000)}`;
    return {
      name: `${verb}_${thing}_${other}_${i}`,
      description: `${verb} a ${thing} of the ${other} by its ${rare}. Use it before you ${pick(VERBS, seed + 4)} the ${pick(THINGS, seed + 5)}; it returns the ${thing} with its ${other} and what belongs to ${rare}${edition}.`,
      params: {
        [`${thing}_id`]: `The id of the ${thing}`,
        [`${other}_name`]: `The name of the ${other}, as the service shows it`,
        limit: 'How many results to return at most',
        filter: `Only those whose ${pick(THINGS, seed + 6)} matches`,
      },
    };
  });
}

const QUERIES = Array.from({ length: 400 }, (_, i) =>
  [
    pick(VERBS, i * 3 + 1),
    pick(THINGS, i * 3 + 2),
    'by',
    pick(THINGS, i * 3 + 3),
    i % 3 === 0 ? `term${i * 13}` : '',
  ].join(' '),
);

const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

const memory = () => {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

async function measureCost(count) {
  const size = 100;
  const contributions = Array.from({ length: Math.ceil(count / size) }, (_, at) =>
    contribution(`service-${at}`, at + 1, serverTools(at, size)),
  );
  const catalog = engine.buildCatalog(1, contributions, []);
  const before = memory();
  let start = cpu();
  const search = await engine.searchOf(catalog, undefined, vectors);
  const build = cpu() - start;
  const bytes = memory() - before;
  for (const query of QUERIES) search.find(query, 5);
  start = cpu();
  for (let round = 0; round < 5; round++) for (const query of QUERIES) search.find(query, 5);
  const query = (cpu() - start) / (5 * QUERIES.length);
  const again = [];
  for (let edition = 1; edition <= 9; edition++) {
    contributions[0] = contribution('service-0', 1, serverTools(0, size, edition));
    const next = engine.buildCatalog(1 + edition, contributions, []);
    start = cpu();
    await engine.searchOf(next, undefined, vectors);
    again.push(cpu() - start);
  }
  return {
    tools: catalog.entries.tool.size,
    'CPU-ms per query': query,
    'CPU-ms for the index': build,
    'MB of the index': bytes / 2 ** 20,
    'CPU-ms after 100 tools changed': again.sort((a, b) => a - b)[4],
  };
}

/** CPU of this process for a call through the gateway, in microseconds: before the first search, and after searches. */
async function measureCalls(count) {
  const { configFromValue, createGateway, openLocalDoor } = await import('../dist/index.js');
  const upstream = fileURLToPath(new URL('./upstream-stdio.mjs', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'bench-search-'));
  const openAs = async (name) => {
    const servers = { up: { command: process.execPath, args: [upstream, '--tools', String(count)] } };
    const settings = { controls: ['search'], active_toolsets: ['up_echo'], audit: { enabled: false } };
    const gateway = createGateway(configFromValue({ servers, ...settings, data_dir: join(folder, name) }));
    await gateway.tried();
    return { gateway, door: openLocalDoor(gateway, 'own', 'default') };
  };
  const [without, searched] = [await openAs('without'), await openAs('searched')];
  await searched.door.callTool('search_tools', { queries: ['list records', 'echo'] });
  const args = { text: 'x' };
  const ways = {
    without: () => without.door.callTool('up_echo', args),
    searched: () => searched.door.callTool('up_echo', args),
    through: () => searched.door.callTool('call_tool', { name: 'up_echo', arguments: args }),
  };
  const spent = { without: [], searched: [], through: [] };
  // In turns, so that other load on the machine affects all of them alike.
  for (let round = 0; round < 24; round++)
    for (const [way, call] of round % 2 === 0 ? Object.entries(ways) : Object.entries(ways).reverse()) {
      const start = cpu();
      for (let i = 0; i < 500; i++) await call();
      if (round > 3) spent[way].push(((cpu() - start) * 1_000) / 500);
    }
  await Promise.all([without.gateway.close(), searched.gateway.close()]);
  rmSync(folder, { recursive: true });
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  return {
    'CPU-µs per call': median(spent.without),
    'after searches': median(spent.searched),
    'with call_tool': median(spent.through),
  };
}

function print(all, cost, calls) {
  const digits = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 3 : 1));
  const table = (rows) => {
    const keys = [...new Set(rows.flatMap(Object.keys))];
    const cells = [
      keys,
      ...rows.map((row) =>
        keys.map((key) => (row[key] === undefined ? '' : typeof row[key] === 'string' ? row[key] : digits(row[key]))),
      ),
    ];
    const widths = keys.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
    return cells
      .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  '))
      .join('\n');
  };
  if (all.length > 0)
    process.stdout.write(
      `${table(all)}\n\nRecall is the share of the tools needed; tokens are those of five results, one for every four characters.\n\n`,
    );
  else process.stdout.write('No sets of queries: give their folder with --sets or SEARCH_SETS.\n\n');
  process.stdout.write(`${table([cost])}\n\n`);
  if (calls !== null) process.stdout.write(`${table([calls])}\n`);
  else process.stdout.write('What a call costs is measured with a build: npm run build.\n');
}

const sets = flags.sets === '' ? [] : await Promise.all(readSets(flags.sets).map(measureSet));
const cost = await measureCost(Number(flags.tools));
const isBuilt = existsSync(new URL('../dist/index.js', import.meta.url));
const calls = isBuilt ? await measureCalls(Number(flags.tools)) : null;
if (flags.json) process.stdout.write(`${JSON.stringify({ sets, cost, calls })}\n`);
else print(sets, cost, calls);
