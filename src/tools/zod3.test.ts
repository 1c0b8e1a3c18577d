import { describe, expect, it } from 'vitest';
import * as z from 'zod/v3';
import { readSchema } from './schema.ts';
import { zod3Json } from './zod3.ts';

enum Side {
  Left = 0,
  Right = 1,
}

type Tree = { readonly children: readonly Tree[] };
const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));

const TREE = { type: 'object', required: ['children'] };

describe('the JSON Schema of a zod 3 schema', () => {
  it.each([
    [
      'a string',
      z.string().min(1).max(5).regex(/^a/).describe('A text'),
      { type: 'string', minLength: 1, maxLength: 5, pattern: '^a', description: 'A text' },
    ],
    ['a URL', z.string().url(), { type: 'string', format: 'uri' }],
    [
      'a number',
      z.number().gt(1).lte(9).multipleOf(2),
      { type: 'number', exclusiveMinimum: 1, maximum: 9, multipleOf: 2 },
    ],
    ['an integer', z.number().int().nonnegative(), { type: 'integer', minimum: 0 }],
    ['a boolean', z.boolean(), { type: 'boolean' }],
    ['a literal', z.literal('x'), { type: 'string', const: 'x' }],
    ['a literal null', z.literal(null).describe('None'), { const: null, description: 'None' }],
    ['a literal BigInt', z.literal(5n), { type: 'integer', const: 5 }],
    ['an enum', z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
    ['an enum of TypeScript', z.nativeEnum(Side), { type: 'number', enum: [0, 1] }],
    ['an array', z.array(z.string()).min(1), { type: 'array', items: { type: 'string' }, minItems: 1 }],
    ['a tuple', z.tuple([z.string()]), { type: 'array', minItems: 1, prefixItems: [{ type: 'string' }], items: false }],
    [
      'a tuple with a rest',
      z.tuple([z.string()]).rest(z.number()),
      { type: 'array', minItems: 1, prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    ],
    ['a record', z.record(z.number()), { type: 'object', additionalProperties: { type: 'number' } }],
    ['a union of plain types', z.union([z.string(), z.null()]), { type: ['string', 'null'] }],
    [
      'a union',
      z.union([z.string().min(1), z.null(), z.undefined()]),
      { anyOf: [{ type: 'string', minLength: 1 }, { type: 'null' }] },
    ],
    ['a nullable plain type', z.string().nullable(), { type: ['string', 'null'] }],
    [
      'a nullable',
      z.array(z.string()).nullable(),
      { anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] },
    ],
    ['null that is nullable', z.null().nullable(), { type: ['null'] }],
    [
      'an optional',
      z.string().describe('Inner').optional().describe('Outer'),
      { type: 'string', description: 'Outer' },
    ],
    ['an intersection', z.object({}).and(z.object({})), { allOf: [expect.anything(), expect.anything()] }],
    ['a pipeline, by its input', z.string().transform(Number).pipe(z.number()), { type: 'string' }],
    [
      'a refined, branded, readonly string',
      z
        .string()
        .refine(() => true)
        .brand('b')
        .readonly(),
      { type: 'string' },
    ],
    ['anything', z.any(), {}],
    ['a pattern with flags, without the pattern', z.string().min(1).regex(/^a\S/i), { type: 'string', minLength: 1 }],
    [
      'a schema that contains itself, up to that point',
      tree,
      { type: 'object', properties: { children: { type: 'array', items: {} } }, required: ['children'] },
    ],
    [
      'a schema that is used twice, in full both times',
      z.object({ a: tree, b: tree }),
      {
        type: 'object',
        properties: { a: expect.objectContaining(TREE), b: expect.objectContaining(TREE) },
        required: ['a', 'b'],
      },
    ],
  ])('describes %s', async (_, schema, json) => {
    expect(await zod3Json(schema as never)).toEqual(json);
  });

  it('says which properties of an object are required', async () => {
    const schema = z
      .object({
        a: z.string(),
        b: z.number().optional(),
        c: z.boolean().default(true),
        d: z.preprocess((value) => value, z.string().optional()),
        e: z.array(z.string().optional()),
      })
      .strict();
    expect(await zod3Json(schema as never)).toEqual({
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { type: 'number' },
        c: { type: 'boolean', default: true },
        d: { type: 'string' },
        e: { type: 'array', items: { type: 'string' } },
      },
      required: ['a', 'e'],
      additionalProperties: false,
    });
  });

  it('leaves the check to the schema itself, which may be asynchronous', async () => {
    const { check } = await readSchema(z.object({ a: z.string().refine(async (text) => text === 'yes') }), 'input');
    expect(await check({ a: 'yes', b: 1 })).toEqual({ value: { a: 'yes' } });
    expect(await check({ a: 'no' })).toMatchObject({ issues: [{ path: ['a'] }] });
  });
});
