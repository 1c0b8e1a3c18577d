import { describe, expect, it } from 'vitest';
import { settleSchema } from './schema.ts';

const settle = (schema: unknown) => settleSchema(schema, 't').schema;

describe('references', () => {
  it('are replaced by what they lead to', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'x',
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' }, b: { type: 'array', items: { $ref: '#/definitions/B%20C' } } },
      $defs: { A: { anyOf: [{ $ref: '#/$defs/D' }, { type: 'null' }] }, D: { type: 'string' } },
      definitions: { 'B C': { type: 'number' } },
    };
    expect(settleSchema(schema, 't')).toEqual({
      schema: {
        type: 'object',
        properties: {
          a: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          b: { type: 'array', items: { type: 'number' } },
        },
      },
      hoisted: new Map(),
    });
  });

  it('keep what is said beside them', () => {
    const $defs = { A: { type: 'string', description: 'general' } };
    expect(settle({ properties: { a: { $ref: '#/$defs/A', description: 'special' } }, $defs })).toEqual({
      properties: { a: { type: 'string', description: 'special' } },
    });
    expect(settle({ properties: { a: { $ref: '#/$defs/A', minLength: 3 } }, $defs })).toEqual({
      properties: { a: { minLength: 3, allOf: [{ type: 'string', description: 'general' }] } },
    });
  });

  it('stay, to the components, where they lead back to themselves', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/Node' }, tag: { $ref: '#/$defs/Tag' } } };
    const { schema, hoisted } = settleSchema(
      {
        type: 'object',
        properties: { first: { $ref: '#/$defs/Node' } },
        $defs: { Node: node, Tag: { type: 'string' } },
      },
      'list_in',
    );
    const reference = { $ref: '#/components/schemas/list_in_Node' };
    expect(schema).toEqual({ type: 'object', properties: { first: reference } });
    expect([...hoisted]).toEqual([
      ['list_in_Node', { type: 'object', properties: { next: reference, tag: { type: 'string' } } }],
    ]);
  });

  it('to the whole, and in circles, end', () => {
    const whole = settleSchema({ type: 'object', properties: { self: { $ref: '#' } } }, 't');
    expect(whole.schema).toEqual({ type: 'object', properties: { self: { $ref: '#/components/schemas/t_self' } } });
    expect(whole.hoisted.get('t_self')).toEqual(whole.schema);
    const circle = settleSchema(
      { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A' } } },
      't',
    );
    expect([...circle.hoisted.keys()].sort()).toEqual(['t_A', 't_B']);
  });

  it.each([
    'https://example.com/schema.json',
    'other.json#/A',
    '#/$defs/none',
    '#/$defs/__proto__',
    '#anchor',
    '#/properties/a/%',
  ])('%s, which leads nowhere, stands for anything', (pointer) => {
    expect(settle({ properties: { a: { $ref: pointer } } })).toEqual({ properties: { a: {} } });
  });
});

describe('a schema that would be too large', () => {
  it('keeps its references', () => {
    const $defs: Record<string, unknown> = { D0: { type: 'string' } };
    for (let level = 1; level <= 40; level++) {
      const below = { $ref: `#/$defs/D${level - 1}` };
      $defs[`D${level}`] = { type: 'object', properties: { a: below, b: below } };
    }
    const started = performance.now();
    const { schema, hoisted } = settleSchema({ properties: { a: { $ref: '#/$defs/D40' } }, $defs }, 't');
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(schema).toEqual({ properties: { a: { $ref: '#/components/schemas/t_D40' } } });
    expect(hoisted.size).toBe(41);
  });

  it('by its depth, or by what it has of its own, is cut', () => {
    let deep: Record<string, unknown> = { type: 'string' };
    for (let level = 0; level < 9_000; level++) deep = { type: 'array', items: deep };
    expect(JSON.stringify(settle(deep)).length).toBeLessThan(3_000);
    const wide = {
      properties: Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`p${n}`, { type: 'string' }])),
    };
    expect(settle(wide)).toEqual({});
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`p${n}`, { $ref: `#/$defs/d${n}` }]));
    expect(settleSchema({ properties: many }, 't').hoisted.size).toBe(0);
  });
});

describe('words', () => {
  it('of earlier drafts become those of the present one', () => {
    expect(
      settle({
        id: 'x',
        type: 'object',
        required: true,
        dependencies: { a: ['b'], c: { type: 'object' } },
        properties: {
          pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
          n: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
          maybe: { type: 'string', nullable: true },
        },
      }),
    ).toEqual({
      type: 'object',
      dependentRequired: { a: ['b'] },
      dependentSchemas: { c: { type: 'object' } },
      properties: {
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
        n: { type: 'number', minimum: 1, exclusiveMinimum: 1, maximum: 5 },
        maybe: { type: ['string', 'null'] },
      },
    });
  });

  it('that nobody knows are left out, as are values that cannot be', () => {
    expect(
      settle({
        type: 'thing',
        title: 7,
        description: 'kept',
        minLength: -1,
        enum: [],
        anyOf: [],
        properties: ['a'],
        discriminator: { propertyName: 'kind', mapping: { a: '#/$defs/A' } },
        $comment: 'x',
        $anchor: 'y',
        'x-order': 3,
        'x-fastmcp-wrap-result': true,
        foo: 'bar',
      }),
    ).toEqual({ description: 'kept', 'x-order': 3 });
    expect(settle('text')).toEqual({});
    expect(settle(true)).toBe(true);
  });

  it('as names of properties are names, and as values are values', () => {
    const properties = JSON.parse(
      '{"$ref":{"type":"string"},"$id":{"const":{"$ref":"#/x"}},"__proto__":{"type":"number"},"default":{"default":{"$defs":1}}}',
    );
    expect(JSON.stringify(settle({ properties }))).toBe(JSON.stringify({ properties }));
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});
