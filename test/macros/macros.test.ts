/** Macros over public servers: listed, governed and audited like any other tool. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, explainName, type Gateway, openHttpDoor, openLocalDoor } from '../../src/index.ts';
import { waitForLines } from '../support/audit-records.ts';
import { childEnv } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp } from '../support/connection.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const program = (name: string) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url))],
});

const home = tempFolder({ 'notes/list.txt': 'milk', 'notes/data.json': '{"deep":[{"n":7}],"name":"x"}' });

const MACROS = {
  remember_file: {
    description: 'Remembers what is in a file',
    input_schema: {
      type: 'object',
      properties: { path: { type: 'string' }, name: { type: 'string' }, loud: { type: 'boolean', default: false } },
      required: ['path'],
    },
    steps: [
      {
        id: 'note',
        tool: 'memory.create_entities',
        arguments: {
          entities: [{ name: '${input.name:-nameless}', entityType: 'file', observations: ['from ${input.path}'] }],
        },
      },
      { id: 'read', tool: 'files.read_text_file', arguments: { path: '${input.path}' } },
      { id: 'say', tool: 'everything.echo', arguments: { message: 'It says: ${texts.read}' }, when: '${input.loud}' },
    ],
    output: { text: '${texts.read}', entities: '${steps.note.entities}', said: '${texts.say}' },
  },
  sum: {
    description: 'Adds a number of a file to another',
    input_schema: {
      type: 'object',
      properties: { b: { type: 'number' } },
      required: ['b'],
      additionalProperties: false,
    },
    steps: [
      { id: 'read', tool: 'plain.raw', arguments: { file: join(home, 'notes/data-result.json') } },
      { id: 'add', tool: 'everything.get-sum', arguments: { a: '${steps.read.deep.0.n}', b: '${input.b}' } },
    ],
  },
  twice: {
    description: 'Calls another macro',
    input_schema: { type: 'object', properties: { b: { type: 'number' } }, required: ['b'] },
    steps: [
      { id: 'one', tool: 'macros.sum', arguments: { b: '${input.b}' } },
      { id: 'two', tool: 'everything.echo', arguments: { message: '$${x} ${texts.one}' }, when: '${input.b} != 3' },
    ],
  },
  lost: {
    description: 'Refers to what is not there',
    steps: [
      { id: 'who', tool: 'plain.whoami' },
      { id: 'say', tool: 'everything.echo', arguments: { message: '${steps.who.nobody}' } },
    ],
  },
  wait: { description: 'Waits', timeout: '200ms', steps: [{ id: 'hang', tool: 'slow.hang' }] },
  wait_long: {
    description: 'Waits',
    steps: [
      { id: 'hang', tool: 'slow.hang' },
      { id: 'say', tool: 'plain.echo' },
    ],
  },
  away: { description: 'Lacks a tool', steps: [{ id: 'a', tool: 'plain.ecko' }] },
  stray: { description: 'Lacks a server', steps: [{ id: 'a', tool: 'plane.echo' }] },
};

let gateway: Gateway;
let url: string;
beforeAll(async () => {
  const text = readFileSync(join(home, 'notes/data.json'), 'utf8');
  writeFileSync(join(home, 'notes/data-result.json'), JSON.stringify({ content: [{ type: 'text', text }] }));
  const config = configFromValue(
    {
      servers: {
        memory: { ...program('server-memory'), env: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') } },
        files: { ...program('server-filesystem'), args: [...program('server-filesystem').args, 'notes'] },
        everything: program('server-everything'),
        plain: serverEntry('basic'),
        slow: serverEntry('hang'),
      },
      macros: MACROS,
      http: { trust_agent_header: true },
      agent_policies: {
        worker: { tool_overrides: { '*': ['*'] }, limits: { concurrency: 1 } },
        half: { tool_overrides: { '*': ['*'] }, denied_tools: { everything: ['echo'] } },
        only: { tool_overrides: { macros: ['sum'] } },
        local: {
          tool_overrides: { '*': ['*'] },
          conditions: [{ tools: ['files.read_text_file'], arguments: { path: '*.md' } }],
        },
      },
      audit: { arguments: true },
    },
    { cwd: home, env: childEnv({ HOME: home }) },
  );
  gateway = createGateway(config, { audit: true });
  atEnd(() => gateway.close());
  await gateway.tried();
  const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => http.close());
  url = http.url;
}, 30_000);

const connect = (agent = 'worker') => connectHttp(url, { 'x-agent-id': agent });

type Result = { content: { text: string }[]; structuredContent?: unknown; isError?: boolean };

async function call(name: string, args: object = {}, agent = 'worker'): Promise<Result> {
  const { client } = await connect(agent);
  return (await client.callTool({ name, arguments: { ...args } })) as Result;
}

async function failure(name: string, args: object = {}, agent = 'worker'): Promise<{ code: string; message: string }> {
  const result = await call(name, args, agent);
  expect(result.isError).toBe(true);
  return JSON.parse(result.content[0]!.text) as { code: string; message: string };
}

async function toolsOf(agent: string): Promise<string[]> {
  return (await (await connect(agent)).client.listTools()).tools.map(({ name }) => name);
}

describe('a macro', () => {
  it('uses three servers, with typed references, and answers with its output', async () => {
    const result = await call('remember_file', { path: 'list.txt', name: 'shopping', loud: true });
    expect(result.structuredContent).toEqual({
      text: 'milk',
      entities: [{ name: 'shopping', entityType: 'file', observations: ['from list.txt'] }],
      said: 'Echo: It says: milk',
    });
    expect(JSON.parse(result.content[0]!.text)).toEqual(result.structuredContent);
  });

  it('skips a step whose condition is false, and leaves its result empty', async () => {
    const { structuredContent } = await call('remember_file', { path: 'list.txt' });
    expect(structuredContent).toEqual({ text: 'milk', entities: [expect.objectContaining({ name: 'nameless' })] });
  });

  it('says which step failed, which steps were done before, and which were not', async () => {
    const { code, message } = await failure('remember_file', { path: 'none.txt', name: 'half', loud: true });
    expect(code).toBe('macro_failed');
    const [first, ...rest] = message.split('\n');
    expect(first).toMatch(
      /^The macro "remember_file" failed in step 2 of 3, "read" \(files.read_text_file\): .*none.txt/,
    );
    expect(rest).toEqual(['Done before it: "note" (memory.create_entities).', 'Not done: "say" (everything.echo).']);
    const graph = await call('memory_search_nodes', { query: 'half' });
    expect(graph.content[0]!.text).toContain('from none.txt');
  });

  it('keeps the type of a single reference, and answers with its last step by default', async () => {
    const { content } = await call('sum', { b: 1.5 });
    expect(content[0]!.text).toBe('The sum of 7 and 1.5 is 8.5.');
  });

  it('can call another macro, and writes $${ as ${', async () => {
    expect((await call('twice', { b: 1 })).content[0]!.text).toBe('Echo: ${x} The sum of 7 and 1 is 8.');
    expect((await call('twice', { b: 3 })).content[0]!.text).toBe('The sum of 7 and 3 is 10.');
  });

  it('refuses wrong arguments before any step runs', async () => {
    expect(await failure('sum', { b: 'x' })).toMatchObject({
      code: 'arguments_invalid',
      message: expect.stringMatching(/"b": .*expected number.*Nothing was done/),
    });
    expect(await failure('sum', { b: 1, c: 2 })).toMatchObject({ code: 'arguments_invalid' });
    expect(await failure('lost', { x: 1 })).toMatchObject({ code: 'arguments_invalid' });
  });

  it('does not call a step with incomplete arguments', async () => {
    const { message } = await failure('lost');
    expect(message).toMatch(
      /step 2 of 2, "say".*There is nothing for \$\{steps.who.nobody\}: that step answered with name, /s,
    );
  });

  it('works for clients of both eras', async () => {
    const { client } = await connectModernHttp(url, { 'x-agent-id': 'worker' });
    expect(await client.callTool({ name: 'sum', arguments: { b: 2 } })).toMatchObject({
      content: [{ text: 'The sum of 7 and 2 is 9.' }],
    });
  });

  it('reports progress for its steps', async () => {
    const { client } = await connect();
    const told: unknown[] = [];
    await client.callTool({ name: 'twice', arguments: { b: 1 } }, undefined, { onprogress: (one) => told.push(one) });
    expect(told).toEqual([
      { progress: 0, total: 2, message: 'one' },
      { progress: 1, total: 2, message: 'two' },
    ]);
  });

  it('times out, and cancels its step', async () => {
    const { message } = await failure('wait');
    expect(message).toContain('step 1 of 1, "hang" (slow.hang): The macro took longer than 200 ms.');
    await waitFor(() => gateway.metrics.inFlight === 0);
  });

  it('ends when its caller cancels, and runs no further step', async () => {
    const door = openLocalDoor(gateway, 'all', 'worker');
    const ending = new AbortController();
    const result = door.callTool('wait_long', {}, { signal: ending.signal });
    await waitFor(() => gateway.metrics.inFlight >= 2);
    ending.abort();
    await expect(result).rejects.toThrow(/cancelled/);
    await waitFor(() => gateway.metrics.inFlight === 0);
    expect(gateway.metrics.entries().find((one) => one.server === 'plain' && one.name === 'echo')).toBeUndefined();
  });
});

describe('policies', () => {
  it('apply to the macro and to each of its steps', async () => {
    expect(await toolsOf('worker')).toEqual(expect.arrayContaining(['remember_file', 'sum', 'twice']));
    const half = await toolsOf('half');
    expect(half).toContain('sum');
    for (const name of ['remember_file', 'twice']) expect(half).not.toContain(name);
    expect(await toolsOf('only')).toEqual([]);
    expect(await failure('twice', { b: 1 }, 'half')).toMatchObject({ code: 'item_unknown' });
  });

  it('are explained', () => {
    const [decision] = explainName(gateway.catalog, gateway.config.policy, 'half', 'twice', new Date());
    expect(decision?.allowed).toBe(false);
    expect(decision?.findings.at(-1)).toEqual({
      rule: 'macros.twice',
      verdict: 'deny',
      text: 'calls "everything.echo", which the agent may not use',
    });
  });

  it('also check the arguments of a step', async () => {
    const { message } = await failure('remember_file', { path: 'list.txt', name: 'denied' }, 'local');
    expect(message).toMatch(/step 2 of 3, "read".*The policy does not allow this call/s);
  });

  it('judge the effect of a macro by its steps', async () => {
    const { tools } = await (await connect()).client.listTools();
    const hints = (name: string) => tools.find((tool) => tool.name === name)?.annotations;
    expect(hints('sum')).toMatchObject({ readOnlyHint: false });
    expect(hints('remember_file')).toEqual({ readOnlyHint: false, destructiveHint: false });
  });
});

it('writes every step to the audit, under the id of its macro', async () => {
  await call('sum', { b: 41 });
  const lines = await waitForLines(
    home,
    2,
    (line) => JSON.stringify(line.arguments ?? '').includes('41') && line.kind === 'call',
  );
  expect(lines.map(({ server, tool, agent, status }) => [server, tool, agent, status])).toEqual([
    ['everything', 'get-sum', 'worker', 'ok'],
    ['macros', 'sum', 'worker', 'ok'],
  ]);
  expect(lines[0]?.request).toBe(`${lines[1]?.request}#add`);
});

describe('a dry run', () => {
  it('calls nothing, and shows what would be called', async () => {
    const door = openLocalDoor(gateway, 'all', 'worker');
    const bytes = await door.callTool('remember_file', { path: 'a.txt', name: 'dry' }, { dryRun: true });
    expect((JSON.parse(bytes.toString()) as Result).structuredContent).toEqual({
      macro: 'remember_file',
      dryRun: true,
      steps: [
        {
          id: 'note',
          tool: 'memory_create_entities',
          runs: true,
          arguments: { entities: [{ name: 'dry', entityType: 'file', observations: ['from a.txt'] }] },
        },
        { id: 'read', tool: 'files_read_text_file', runs: true, arguments: { path: 'a.txt' } },
        { id: 'say', tool: 'everything_echo', runs: false, arguments: { message: 'It says: ${texts.read}' } },
      ],
    });
    expect((await call('memory_search_nodes', { query: 'dry' })).content[0]!.text).not.toContain('a.txt');
  });

  it('is refused for other tools, which would be called', () => {
    const door = openLocalDoor(gateway, 'all', 'worker');
    expect(() => door.callTool('plain_echo', {}, { dryRun: true })).toThrow(/is not a macro/);
  });
});

it('leaves out macros that lack a tool, and reports it', () => {
  expect(gateway.catalog.entries.tool.has('away')).toBe(false);
  const told = gateway.catalog.problems.filter(({ source }) => source === 'macros').map(({ message }) => message);
  expect(told).toEqual([
    'macro "away" is left out: it calls "plain.ecko", and the server "plain" has no such tool. Did you mean "echo"?',
    'macro "stray" is left out: it calls "plane.echo", and there is no such server. Did you mean "plain"?',
  ]);
});

describe('mistakes that are found when the configuration is read', () => {
  const step = { id: 'a', tool: 'plain.echo' };
  const load =
    (macro: object, others: object = {}) =>
    () =>
      configFromValue({ macros: { m: { description: 'x', ...macro }, ...others } }, { cwd: home, env: {} });

  it.each<[object, RegExp]>([
    [{ steps: [] }, /macros.m.steps: needs at least one step/],
    [
      { steps: [{ ...step, arguments: { x: '${input.y}' } }] },
      /macros.m.steps\[0\].arguments: "\$\{input.y\}": there is no argument "y"/,
    ],
    [
      {
        steps: [
          { ...step, arguments: { x: '${steps.b.z}' } },
          { ...step, id: 'b' },
        ],
      },
      /the step "b" does not come before/,
    ],
    [{ steps: [{ ...step, arguments: { x: '${steps.q.z}' } }] }, /there is no earlier step "q"/],
    [{ steps: [{ ...step, arguments: { x: 'a ${HOME}' } }] }, /arguments.x: "\$\{HOME\}" refers to nothing/],
    [{ steps: [{ ...step, arguments: { x: 'a ${input.y' } }] }, /is not closed/],
    [{ steps: [{ ...step, when: 'sometimes' }] }, /steps\[0\].when: is not a condition/],
    [{ steps: [step, step] }, /another step is called "a" already/],
    [{ steps: [{ ...step, tool: 'echo' }] }, /names no tool. Write "server.tool"/],
    [{ steps: [{ ...step, tool: 'macros.n' }] }, /there is no macro "n"/],
    [{ steps: [{ ...step, tool: 'macros.m' }] }, /macros.m: calls itself through its steps/],
    [{ steps: [{ ...step, tooll: 1 }] }, /unknown key. Did you mean "tool"\?/],
    [
      { steps: [step], input_schema: { type: 'object', properties: { a: { type: 'strin' } } } },
      /input_schema: is not a JSON Schema/,
    ],
    [{ steps: [step], input_schema: { type: 'string' } }, /its "type" has to be "object"/],
    [{ steps: [step], output: '${steps.none}' }, /output: "\$\{steps.none\}": there is no earlier step "none"/],
  ])('%j', (macro, why) => {
    expect(load(macro)).toThrow(why);
  });

  it('include longer cycles, and a server of the same name', () => {
    const n = { description: 'x', steps: [{ id: 'a', tool: 'macros.m' }] };
    expect(load({ steps: [{ ...step, tool: 'macros.n' }] }, { n })).toThrow(/macros.n: calls itself/);
    const value = { macros: { m: { description: 'x', steps: [step] } }, servers: { macros: { command: 'x' } } };
    expect(() => configFromValue(value, { cwd: home, env: {} })).toThrow(/a server is called "macros" too/);
  });
});
