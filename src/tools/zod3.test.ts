import { describe, expect, it } from 'vitest';
import * as z from 'zod/v3';
import { readSchema } from './schema.ts';
import { zod3Json } from './zod3.ts';

enum Side {
  Left = 0,
  Right = 1,
}

describe('JSON Schema of schemas of zod 3', () => {
  it.each([
    [
      'texts',
      z.string().min(1).max(5).regex(/^a/).describe('A text'),
      { type: 'string', minLength: 1, maxLength: 5, pattern: '^a', description: 'A text' },
    ],
    ['addresses', z.string().url(), { type: 'string', format: 'uri' }],
    [
      'numbers',
      z.number().gt(1).lte(9).multipleOf(2),
      { type: 'number', exclusiveMinimum: 1, maximum: 9, multipleOf: 2 },
    ],
    ['whole ones', z.number().int().nonnegative(), { type: 'integer', minimum: 0 }],
    ['flags', z.boolean(), { type: 'boolean' }],
    ['literals', z.literal('x'), { const: 'x' }],
    ['enums', z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
    ['those of TypeScript', z.nativeEnum(Side), { enum: [0, 1] }],
    ['lists', z.array(z.string()).min(1), { type: 'array', items: { type: 'string' }, minItems: 1 }],
    ['tuples', z.tuple([z.string()]), { type: 'array', prefixItems: [{ type: 'string' }], items: false }],
    ['maps', z.record(z.number()), { type: 'object', additionalProperties: { type: 'number' } }],
    ['choices', z.union([z.string(), z.null()]), { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    ['what may be null', z.string().nullable(), { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    ['both of two', z.object({}).and(z.object({})), { allOf: [expect.anything(), expect.anything()] }],
    ['what is made of others', z.string().transform(Number).pipe(z.number()), { type: 'string' }],
    [
      'what is checked further',
      z
        .string()
        .refine(() => true)
        .brand('b')
        .readonly(),
      { type: 'string' },
    ],
    ['anything', z.any(), {}],
  ])('%s', (_, schema, json) => {
    expect(zod3Json(schema as never)).toEqual(json);
  });

  it('of objects says what has to be there', () => {
    const schema = z
      .object({
        a: z.string(),
        b: z.number().optional(),
        c: z.boolean().default(true),
        d: z.preprocess((value) => value, z.string().optional()),
        e: z.array(z.string().optional()),
      })
      .strict();
    expect(zod3Json(schema as never)).toEqual({
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

  it('is checked by the schema itself, also where that has to be waited for', async () => {
    const { check } = await readSchema(z.object({ a: z.string().refine(async (text) => text === 'yes') }), 'input');
    expect(await check({ a: 'yes', b: 1 })).toEqual({ value: { a: 'yes' } });
    expect(await check({ a: 'no' })).toMatchObject({ issues: [{ path: ['a'] }] });
  });
});
