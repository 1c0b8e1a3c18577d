/** Calls of Toolgate's own tools that ask for much, with a catalog of 5,000 tools: none may hold up everybody else. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { startSession } from '../support/raw-http.ts';
import { toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const TOOLS = 5_000;
/** Milliseconds of computing for one request. Without limits some of these take minutes. */
const MOST = 100;
/** Characters of an answer. */
const LONGEST = 500_000;

const x = (count: number) => 'x'.repeat(count);
const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));
const some = Object.fromEntries(many(40_000, (i) => [`k${i}`, 1]));
const keys = Object.fromEntries(many(100_000, (i) => [`k${i}`, 1]));
const lists = { tools_on: [], tools_off: [], resources_on: [], resources_off: [] };
const near = (i: number) => `pub_tool_${i}_creat_issu`;

type Calls = readonly (readonly [name: string, args: object])[];

const SEARCH: Calls = [
  [x(3_900_000), {}],
  ['a_b.c:'.repeat(500_000), {}],
  ['search_tools', { queries: many(10, (i) => `create issue ${i} `.repeat(60)), limit: 20 }],
  ['search_tools', { queries: many(10, () => 'a b c d e f g h i j k '.repeat(45)), limit: 20 }],
  ['search_tools', { queries: many(10, (i) => `pubtool${i}creatissu`), limit: 20 }],
  ['search_tools', { queries: many(10, (i) => `pubtool${i}creatissu zzq zzw zze zzr zzt zzy zzu`), limit: 20 }],
  ['search_tools', { queries: ['issue'], server: '*a'.repeat(500) }],
  ['describe_tools', { names: many(20, near) }],
  ['describe_tools', { names: many(20, (i) => x(900) + i) }],
  ['call_tool', { name: x(3_900_000) }],
  ['call_tool', keys],
  ['call_tool', { name: 'pub_tool_1_create_issue', arguments: keys }],
  ['build-toolset', { name: 'abc', tools: many(100, near) }],
  ['build-toolset', { name: 'abc', tools: many(100, (i) => `*tool_*${i}*zz*`) }],
  ['build-toolset', { name: 'abc', tools: many(100, () => ({ refId: 'a'.repeat(64) })) }],
  ['equip-toolset', { name: x(3_900_000) }],
  ['discover-all-tools', keys],
  ['discover-all-tools', some],
];

const ACTIVATE: Calls = [
  ['toolman_activate', { ...lists, tools_on: many(100_000, (i) => `nope${i}`) }],
  ['toolman_activate', { ...lists, tools_on: many(10_000, near) }],
  ['toolman_activate', { ...lists, tools_on: many(20_000, (i) => `*tool_${i}*`) }],
  ['toolman_activate', { ...lists, resources_off: many(1_000, (i) => `*a*a*${i}*`) }],
  ['toolman_activate', { ...lists, tools_on: ['*a'.repeat(500_000)] }],
  ['toolman_activate', { ...lists, tools_on: many(10_000, () => 'mixed') }],
  ['toolman_activate', { ...lists, tools_on: many(10_000, () => 'mixed'), tools_off: many(9_000, () => 'mixed') }],
  ['toolman_activate', { ...lists, tools_on: [x(3_900_000)] }],
  ['toolman_activate', { show: many(100, (i) => `${near(i)}`) }],
  ['toolman_activate', { show: many(100, (i) => `*tool_*${i}*`) }],
  ['toolman_activate', keys],
  ['toolman_activate', some],
  ['toolman_call', keys],
  ['toolman_call', { name: x(3_900_000) }],
  ['enable_toolset', { name: x(3_900_000) }],
];

it.each([
  ['search and equip', ['search', 'equip'], SEARCH],
  ['activate and toolsets', ['activate', 'toolsets'], ACTIVATE],
])('no call of the tools of %s takes long, or has a long answer', async (_, controls, calls) => {
  const cwd = tempFolder();
  const offer = many(TOOLS, (i) => ({ name: `tool_${i}_create_issue`, inputSchema: { type: 'object' } }));
  writeFileSync(join(cwd, 'offer.json'), JSON.stringify(offer));
  const gateway = await startHttp({
    cwd,
    config: toml([{ namespace: 'pub', command: server('basic', '--raw-tools', join(cwd, 'offer.json')) }], {
      controls,
      active_toolsets: undefined,
      call_through: 'always',
      toolsets: { mixed: { tools: ['pub.*'] } },
    }),
  });
  const session = await startSession(gateway);
  const send = async (name: string, args: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
    const before = process.cpuUsage();
    const response = await session.post(body);
    const text = await response.text();
    const { user, system } = process.cpuUsage(before);
    return { text, ms: (user + system) / 1_000 };
  };
  const wrong: string[] = [];
  for (const [name, args] of calls) {
    const shown = `${name.slice(0, 40)} ${JSON.stringify(args).slice(0, 80)}`;
    const { text, ms } = await send(name, args);
    if (text.length > LONGEST) wrong.push(`${text.length} characters for ${shown}`);
    let least = ms;
    for (let again = 0; again < 4 && least > MOST; again++) least = Math.min(least, (await send(name, args)).ms);
    if (least > MOST) wrong.push(`${Math.round(least)} ms for ${shown}: ${text.slice(0, 300)}`);
  }
  expect(wrong).toEqual([]);
});
