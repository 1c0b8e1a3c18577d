/** Tools and schemas built with published third-party libraries. */
import { beforeAll, expect, it } from 'vitest';
import { isWide } from '../support/wide.ts';
import { describeOnNodes, startWorker, type TestWorker, textOf } from './worker.ts';

/** Those with packages that npm installs, which takes long. */
const installed = {
  'package.json': JSON.stringify({
    private: true,
    dependencies: {
      ai: '6.0.10',
      zod: '4.1.12',
      arktype: '2.2.9',
      valibot: '1.5.0',
      '@valibot/to-json-schema': '1.8.0',
    },
  }),
  'ai-sdk.ts': `
    import { tool, jsonSchema } from 'ai';
    import { z } from 'zod';
    export const weather = tool({
      description: 'The weather.',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }, { abortSignal, toolCallId }) => ({ city, aborted: abortSignal!.aborted, id: toolCallId }),
    });
    export const plain = tool({
      description: 'By JSON Schema.',
      inputSchema: jsonSchema<{ n: number }>({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }),
      execute: async ({ n }) => n * 2,
    });
    export const steps = tool({
      description: 'Tells how far it is.',
      inputSchema: z.object({}),
      async *execute() { yield { state: 'loading' }; yield { state: 'done' }; },
    });`,
  'arktype.ts': `
    import { type } from 'arktype';
    export const ark = { description: 'x', inputSchema: type({ age: 'number >= 18' }), execute: ({ age }) => age };`,
  'valibot.ts': `
    import * as v from 'valibot';
    import { toStandardJsonSchema } from '@valibot/to-json-schema';
    const schema = v.object({ name: v.pipe(v.string(), v.minLength(2)) });
    export const vali = { description: 'x', inputSchema: toStandardJsonSchema(schema), execute: ({ name }) => name };
    export const bare = { description: 'x', inputSchema: schema, execute: ({ name }) => name };`,
};

const files = {
  ...(isWide && installed),
  'mini.ts': `
    import * as z from 'zod/mini';
    export const mini = { description: 'x', inputSchema: z.object({ a: z.optional(z.string()) }), execute: ({ a }) => a };`,
  'old-zod.ts': `
    import { z } from 'zod/v3';
    export const old = { description: 'x', inputSchema: z.object({ a: z.string() }), execute: ({ a }) => a };`,
  // The shapes that FastMCP for TypeScript and Mastra 1 use.
  'shapes.ts': `
    import { z } from 'zod';
    export const fast = { name: 'fast-one', description: 'x', parameters: z.object({ a: z.string() }),
      async execute(args, { log, reportProgress }) { log.info('at it', { step: 1 }); await reportProgress({ progress: 1, total: 2 }); return args.a; } };
    class Tool { id = 'mastra-one'; description = 'x'; inputSchema = z.object({ a: z.string() }); #b = 'b';
      async execute(input, context) { return input.a + this.#b; } }
    export const mastra = new Tool();`,
};

describeOnNodes((node) => {
  let worker: TestWorker;
  beforeAll(async () => {
    worker = await startWorker(files, { node });
  }, 180_000);

  const schemaOf = (name: string) => worker.tools.find((listed) => listed.name === name)!.inputSchema;

  it('accepts schemas of zod/mini', async () => {
    expect(schemaOf('mini')).toMatchObject({ type: 'object', properties: { a: { type: 'string' } } });
    expect(textOf(await worker.result('mini', { a: 'x' }))).toBe('x');
  });

  it('runs tools in the shapes of FastMCP and Mastra', async () => {
    expect(textOf(await worker.result('fast-one', { a: 'x' }, { progress: true, id: 'f' }))).toBe('x');
    expect(worker.events.filter(({ id }) => id === 'f')).toEqual([
      { op: 'log', id: 'f', level: 'info', logger: 'shapes.ts', data: { message: 'at it', data: { step: 1 } } },
      { op: 'progress', id: 'f', progress: 1, total: 2 },
    ]);
    expect(textOf(await worker.result('mastra-one', { a: 'x' }))).toBe('xb');
  });

  if (!isWide) return;

  it('runs tools of the AI SDK', async () => {
    const made = await worker.result('weather', { city: 'Rome' }, { id: 'call' });
    expect(made.structuredContent).toEqual({ city: 'Rome', aborted: false, id: 'call' });
    expect((await worker.error('weather', {})).code).toBe('invalid_arguments');
    expect(textOf(await worker.result('plain', { n: 4 }))).toBe('8');
    expect((await worker.error('plain', { n: 'x' })).message).toContain('n: must be number');
    expect((await worker.result('steps')).structuredContent).toEqual({ state: 'done' });
  });

  it('accepts schemas of arktype and valibot', async () => {
    expect(schemaOf('ark')).toMatchObject({ properties: { age: { type: 'number', minimum: 18 } } });
    expect(textOf(await worker.result('ark', { age: 20 }))).toBe('20');
    expect((await worker.error('ark', { age: 3 })).message).toContain('at least 18');
    expect(schemaOf('vali')).toMatchObject({ properties: { name: { type: 'string', minLength: 2 } } });
    expect(textOf(await worker.result('vali', { name: 'ab' }))).toBe('ab');
    expect((await worker.error('vali', { name: 'a' })).message).toMatch(/^The arguments do not fit: name: /);
  });

  it('reports schemas that cannot be converted to JSON Schema', () => {
    expect(worker.failed.map(({ file, message }) => [file, message])).toEqual([
      ['valibot.ts', expect.stringContaining('toStandardJsonSchema() of @valibot/to-json-schema')],
    ]);
  });
});
