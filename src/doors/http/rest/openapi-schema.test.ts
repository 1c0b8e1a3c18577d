import { describe, expect, it } from 'vitest';
import { patient } from '../../../../test/support/patience.ts';
import { toOpenApiSchema } from './openapi-schema.ts';

const convert = (schema: unknown) => toOpenApiSchema(schema, 't').schema;

describe('references in an OpenAPI schema', () => {
  it('are replaced by their targets', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'x',
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' }, b: { type: 'array', items: { $ref: '#/definitions/B%20C' } } },
      $defs: { A: { anyOf: [{ $ref: '#/$defs/D' }, { type: 'null' }] }, D: { type: 'string' } },
      definitions: { 'B C': { type: 'number' } },
    };
    expect(toOpenApiSchema(schema, 't')).toEqual({
      schema: {
        type: 'object',
        properties: {
          a: { anyOf: [{ type: 'string' }, { type: 'null' }] },
          b: { type: 'array', items: { type: 'number' } },
        },
      },
      components: new Map(),
    });
  });

  it('keep the keywords next to them', () => {
    const $defs = { A: { type: 'string', description: 'general' } };
    expect(convert({ properties: { a: { $ref: '#/$defs/A', description: 'special' } }, $defs })).toEqual({
      properties: { a: { type: 'string', description: 'special' } },
    });
    expect(convert({ properties: { a: { $ref: '#/$defs/A', minLength: 3 } }, $defs })).toEqual({
      properties: { a: { minLength: 3, allOf: [{ type: 'string', description: 'general' }] } },
    });
  });

  it('become references to components if the schema is recursive', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/Node' }, tag: { $ref: '#/$defs/Tag' } } };
    const { schema, components } = toOpenApiSchema(
      {
        type: 'object',
        properties: { first: { $ref: '#/$defs/Node' } },
        $defs: { Node: node, Tag: { type: 'string' } },
      },
      'list_in',
    );
    const reference = { $ref: '#/components/schemas/list_in_Node' };
    expect(schema).toEqual({ type: 'object', properties: { first: reference } });
    expect([...components]).toEqual([
      ['list_in_Node', { type: 'object', properties: { next: reference, tag: { type: 'string' } } }],
    ]);
  });

  it('terminate if they point to the whole schema or form a cycle', () => {
    const whole = toOpenApiSchema({ type: 'object', properties: { self: { $ref: '#' } } }, 't');
    expect(whole.schema).toEqual({ type: 'object', properties: { self: { $ref: '#/components/schemas/t_self' } } });
    expect(whole.components.get('t_self')).toEqual(whole.schema);
    const circle = toOpenApiSchema(
      { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A' } } },
      't',
    );
    expect([...circle.components.keys()].sort()).toEqual(['t_A', 't_B']);
  });

  it.each([
    'https://example.com/schema.json',
    'other.json#/A',
    '#/$defs/none',
    '#/$defs/__proto__',
    '#anchor',
    '#/properties/a/%',
  ])('allow anything if %s points nowhere', (pointer) => {
    expect(convert({ properties: { a: { $ref: pointer } } })).toEqual({ properties: { a: {} } });
  });
});

describe('an OpenAPI schema that would become too large', () => {
  it('keeps its references', () => {
    const $defs: Record<string, unknown> = { D0: { type: 'string' } };
    for (let level = 1; level <= 40; level++) {
      const below = { $ref: `#/$defs/D${level - 1}` };
      $defs[`D${level}`] = { type: 'object', properties: { a: below, b: below } };
    }
    const started = performance.now();
    const { schema, components } = toOpenApiSchema({ properties: { a: { $ref: '#/$defs/D40' } }, $defs }, 't');
    expect(performance.now() - started).toBeLessThan(patient(5_000));
    expect(schema).toEqual({ properties: { a: { $ref: '#/components/schemas/t_D40' } } });
    expect(components.size).toBe(41);
  });

  it('is cut off if it is too deep or has too many parts', () => {
    let deep: Record<string, unknown> = { type: 'string' };
    for (let level = 0; level < 9_000; level++) deep = { type: 'array', items: deep };
    expect(JSON.stringify(convert(deep)).length).toBeLessThan(3_000);
    const wide = {
      properties: Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`p${n}`, { type: 'string' }])),
    };
    expect(convert(wide)).toEqual({});
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`p${n}`, { $ref: `#/$defs/d${n}` }]));
    expect(toOpenApiSchema({ properties: many }, 't').components.size).toBe(0);
  });
});

describe('keywords in an OpenAPI schema', () => {
  it('of earlier drafts are converted to the current draft', () => {
    expect(
      convert({
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

  it('are left out if OpenAPI does not define them or their values are invalid', () => {
    expect(
      convert({
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
    expect(convert('text')).toEqual({});
    expect(convert(true)).toBe(true);
  });

  it('have no special meaning as names of properties or inside of values', () => {
    const properties = JSON.parse(
      '{"$ref":{"type":"string"},"$id":{"const":{"$ref":"#/x"}},"__proto__":{"type":"number"},"default":{"default":{"$defs":1}}}',
    );
    expect(JSON.stringify(convert({ properties }))).toBe(JSON.stringify({ properties }));
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});

it('finds a reference below a property that is named like a keyword', () => {
  const schema = { properties: { default: { $ref: '#' } } };
  const self = { properties: { default: { $ref: '#/components/schemas/t_self' } } };
  expect(toOpenApiSchema(schema, 't')).toEqual({ schema: self, components: new Map([['t_self', self]]) });
});
