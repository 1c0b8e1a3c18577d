/** TypeScript and JavaScript files as tools: which tools are found, how they are listed, and what calls return. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Message, startWorker, type TestWorker, textOf } from './worker.ts';

const zodFile = `
import { z } from 'zod';
import { defineTool } from 'toolgate';

export const add = defineTool({
  title: 'Add',
  description: 'Adds two numbers.',
  inputSchema: z.object({ a: z.number().describe('One'), b: z.number().default(10) }),
  outputSchema: z.object({ sum: z.number() }),
  annotations: { readOnlyHint: true },
  _meta: { colour: 'blue' },
  execute: async ({ a, b }) => ({ sum: a + b, extra: 'not in the schema' }) as { sum: number },
});
`;

describe('a tool with a zod schema', () => {
  let worker: TestWorker;
  beforeAll(async () => {
    worker = await startWorker({ 'math.ts': zodFile });
  });

  it('is listed with its full definition, without zod or toolgate installed', async () => {
    expect(worker.failed).toEqual([]);
    expect(worker.tools).toEqual([
      {
        name: 'add',
        title: 'Add',
        description: 'Adds two numbers.',
        inputSchema: {
          type: 'object',
          properties: { a: { type: 'number', description: 'One' }, b: { type: 'number', default: 10 } },
          required: ['a'],
        },
        outputSchema: {
          type: 'object',
          properties: { sum: { type: 'number' } },
          required: ['sum'],
          additionalProperties: false,
        },
        annotations: { readOnlyHint: true },
        _meta: { colour: 'blue', 'toolgate/file': 'math.ts' },
      },
    ]);
    const list = (await worker.ask('tools.list')).result as Message;
    expect(list.tools).toEqual(worker.tools);
    const schema = (await worker.ask('tools.get_schema', { tool: 'add' })).result as Message;
    expect(schema.inputSchema).toEqual(worker.tools[0]!.inputSchema);
  });

  it('gets parsed arguments and returns a result that matches its output schema', async () => {
    expect(await worker.result('add', { a: 1 })).toEqual({
      content: [{ type: 'text', text: '{"sum":11}' }],
      structuredContent: { sum: 11 },
    });
    // The gateway relies on the position of the result in the line.
    expect(worker.lines.at(-1)).toMatch(/^\{"id":"\d+","ok":true,"result":\{.*\},"latency_ms":\d+\}$/);
  });

  it('rejects arguments that do not match, and names them', async () => {
    const error = await worker.error('add', { a: 'one', b: null });
    expect(error.code).toBe('invalid_arguments');
    expect(error.message).toMatch(/^The arguments do not fit: a: .*expected number.*; b: .*expected number/);
    expect(error.details.issues).toHaveLength(2);
    expect(worker.lines.at(-1)).toMatch(/^\{"id":"\d+","ok":false,"error":\{"code":/);
  });
});

describe('a tool with a JSON Schema', () => {
  const tool = (schema: object) => `
    export const f = { description: 'Gives its arguments.', inputSchema: ${JSON.stringify(schema)}, execute: (input) => input };`;

  it('has its arguments checked against it, with defaults applied', async () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        mode: { enum: ['fast', 'slow'], default: 'fast' },
        pair: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
        mail: { type: 'string', format: 'email' },
      },
      required: ['pair'],
      additionalProperties: false,
    };
    const worker = await startWorker({ 'a.mjs': tool(schema) });
    expect(worker.failed).toEqual([]);
    expect((await worker.result('f', { pair: ['a', 1], mail: 'any' })).structuredContent).toEqual({
      pair: ['a', 1],
      mail: 'any',
      mode: 'fast',
    });
    const error = await worker.error('f', { mode: 'x', pair: [1, 'a'], other: 1 });
    expect(error.code).toBe('invalid_arguments');
    expect(error.message).toContain('mode: must be one of ["fast","slow"]');
    expect(error.message).toContain('pair.0: must be string');
    expect(error.message).toContain('other: is not known');
    expect((await worker.error('f', {})).message).toContain('pair: is missing');
  });

  it('may use an older draft', async () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
    };
    const worker = await startWorker({ 'a.js': tool(schema) });
    expect(worker.failed).toEqual([]);
    expect((await worker.error('f', { pair: [1] })).message).toContain('pair.0: must be string');
  });

  it('is rejected if the schema is invalid', async () => {
    const worker = await startWorker({ 'a.js': tool({ type: 'nothing' }), 'b.js': tool({ type: 'string' }) });
    expect(worker.tools).toEqual([]);
    expect(worker.failed.map(({ file }) => file)).toEqual(['a.js', 'b.js']);
    expect(worker.failed[0]!.message).toMatch(/^The tool "f": its inputSchema .*type/);
    expect(worker.failed[1]!.message).toContain('describes "string", but the arguments of a tool are an object');
  });
});

describe('the return value of a tool', () => {
  const one = (name: string, body: string) =>
    `export const ${name} = { description: 'x', inputSchema: { type: 'object' }, execute: async () => { ${body} } };\n`;

  const values: [string, string, object][] = [
    ['a string', `return 'hi';`, { content: [{ type: 'text', text: 'hi' }] }],
    ['nothing', '', { content: [{ type: 'text', text: '' }] }],
    ['null', 'return null;', { content: [{ type: 'text', text: 'null' }] }],
    ['a number', 'return 7;', { content: [{ type: 'text', text: '7' }] }],
    ['an array', 'return [1, "ü"];', { content: [{ type: 'text', text: '[1,"ü"]' }] }],
    ['a date', 'return new Date(0);', { content: [{ type: 'text', text: '"1970-01-01T00:00:00.000Z"' }] }],
    ['an object', 'return { a: 1 };', { content: [{ type: 'text', text: '{"a":1}' }], structuredContent: { a: 1 } }],
    [
      'a result of its own',
      `return { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }], isError: true };`,
      { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }], isError: true },
    ],
    [
      'an object with an empty member `content`',
      `return { title: 't', content: [] };`,
      {
        content: [{ type: 'text', text: '{"title":"t","content":[]}' }],
        structuredContent: { title: 't', content: [] },
      },
    ],
    [
      'an object with a member `content` that is none of MCP',
      `return { content: ['a'] };`,
      { content: [{ type: 'text', text: '{"content":["a"]}' }], structuredContent: { content: ['a'] } },
    ],
  ];
  let worker: TestWorker;
  beforeAll(async () => {
    worker = await startWorker({ 'a.ts': values.map(([, body], i) => one(`f${i}`, body)).join('') });
  });
  it.each(values.map(([name, , result], i) => [name, `f${i}`, result] as const))('%s', async (_, tool, result) => {
    expect(await worker.result(tool)).toEqual(result);
  });

  it('is wrapped in `result` if the output schema is not an object', async () => {
    const worker = await startWorker({
      'a.ts': `import { z } from 'zod';
        const Node = z.object({ get next() { return Node.optional(); } });
        export const list = { description: 'x', inputSchema: z.object({}), outputSchema: z.array(Node), execute: () => [{ next: {} }] };
        export const word = { description: 'x', inputSchema: z.object({}), outputSchema: z.string(), execute: () => 'hi' };
        export const wrong = { description: 'x', inputSchema: z.object({}), outputSchema: z.object({ a: z.string() }), execute: () => ({ a: 1 }) };`,
    });
    expect(worker.failed).toEqual([]);
    expect(worker.tools.find(({ name }) => name === 'word')!.outputSchema).toEqual({
      type: 'object',
      properties: { result: { type: 'string' } },
      required: ['result'],
      'x-fastmcp-wrap-result': true,
    });
    expect((await worker.result('list')).structuredContent).toEqual({ result: [{ next: {} }] });
    expect(await worker.result('word')).toEqual({
      content: [{ type: 'text', text: 'hi' }],
      structuredContent: { result: 'hi' },
    });
    const error = await worker.error('wrong');
    expect(error.code).toBe('internal_error');
    expect(error.message).toContain(`does not fit the tool's outputSchema: a: `);
  });

  it('is rejected if it is not serializable as JSON or is too large', async () => {
    const worker = await startWorker(
      { 'a.ts': one('big', 'return 7n;') + one('long', `return 'x'.repeat(2000);`) },
      { args: ['--max-line', '1000'] },
    );
    expect(await worker.error('big')).toMatchObject({ code: 'internal_error' });
    expect((await worker.error('big')).message).toContain('cannot be written as JSON');
    expect((await worker.error('long')).code).toBe('too_large');
  });
});

describe('tool detection', () => {
  it('accepts every export with the shape of a tool, named by its own name, its export or its file', async () => {
    const worker = await startWorker({
      'a-b.ts': `
        const make = (text: string) => ({ description: text, inputSchema: { type: 'object' }, execute: () => text });
        export const first = make('1');
        export const second = { ...make('2'), name: 'other.name' };
        export const third = { ...make('3'), id: 'by_id' };
        export const helper = { execute() {} };
        export function notATool() {}
        export const number = 7;
        export default make('4');`,
      'again.ts': `export { first } from './a-b.ts';`,
      'cjs.js': `exports.old = { description: 'x', inputSchema: { type: 'object' }, execute: () => 'old' };`,
      'record.ts': `const t = { description: 'x', inputSchema: { type: 'object' }, execute: () => 'r' };
        export const tools = { in_record: t, 'in-record-2': { ...t } };
        export const mixed = { not: { ...t }, n: 1 };`,
      'nothing.ts': 'export const x = 1;',
      '_helper.ts': 'throw new Error("not loaded");',
      'a.test.ts': 'throw new Error("not loaded");',
      'types.d.ts': 'export type A = string;',
      'node_modules/x/index.js': 'throw new Error("not loaded");',
    });
    expect(worker.failed).toEqual([]);
    expect(worker.tools.map(({ name }) => name).sort()).toEqual([
      'a-b',
      'by_id',
      'first',
      'in-record-2',
      'in_record',
      'old',
      'other.name',
    ]);
    expect(textOf(await worker.result('a-b'))).toBe('4');
    expect(textOf(await worker.result('old'))).toBe('old');
  });

  it('reports an invalid tool and keeps the others', async () => {
    const body = `inputSchema: { type: 'object' }, execute: () => 'x'`;
    const worker = await startWorker({
      'a.ts': `export const fine = { description: 'x', ${body} }; export const dup = { description: 'x', ${body} };`,
      'b.ts': `import { z } from 'zod';
        export const dup = { description: 'x', ${body} };
        export const noText = { ${body} };
        export const bad = { name: 'not a name', description: 'x', ${body} };
        export const shape = { description: 'x', inputSchema: { a: z.string() }, execute() {} };
        export const date = { description: 'x', inputSchema: z.object({ at: z.date() }), execute() {} };`,
    });
    expect(worker.tools.map(({ name }) => name)).toEqual(['dup', 'fine', 'shape']);
    expect(worker.failed.map(({ line }) => line)).toEqual([4, 6, 3, 2]);
    expect(worker.failed.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The tool "not a name": its name is not valid/),
      expect.stringContaining('cannot be written as JSON Schema: Date'),
      expect.stringContaining('The tool "noText": has no description'),
      'The tool "dup" is in a.ts already; rename one.',
    ]);
    expect(worker.tools[2]!.inputSchema).toEqual({
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
    });
    expect((await worker.error('shape', { a: 1 })).message).toMatch(/^The arguments do not fit: a: /);
  });
});

describe('the context of a call', () => {
  it('logs, reports progress and identifies the call', async () => {
    const worker = await startWorker(
      {
        'a.ts': `export const f = { description: 'x', inputSchema: { type: 'object' },
          async execute(_: unknown, { log, progress, env, requestId, namespace, signal }) {
            log('warning', { a: 1 });
            log.info('two');
            log.error('three', { b: 2 });
            progress(1, 3, 'one of three');
            progress(2);
            return { key: env.KEY, requestId, namespace, aborted: signal.aborted };
          } };`,
      },
      { env: { KEY: 'value' } },
    );
    const result = await worker.result('f', {}, { id: 'mine', progress: true });
    expect(result.structuredContent).toEqual({ key: 'value', requestId: 'mine', namespace: 'demo', aborted: false });
    expect(worker.events.slice(1)).toEqual([
      { op: 'log', id: 'mine', level: 'warning', logger: 'a.ts', data: { a: 1 } },
      { op: 'log', id: 'mine', level: 'info', logger: 'a.ts', data: 'two' },
      { op: 'log', id: 'mine', level: 'error', logger: 'a.ts', data: { message: 'three', data: { b: 2 } } },
      { op: 'progress', id: 'mine', progress: 1, total: 3, message: 'one of three' },
      { op: 'progress', id: 'mine', progress: 2 },
    ]);
    worker.events.length = 0;
    await worker.result('f');
    expect(worker.events.every(({ op }) => op === 'log')).toBe(true);
  });
});
