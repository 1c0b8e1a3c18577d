import { describe, expect, it } from 'vitest';
import { configJsonSchema } from './json-schema.ts';

interface Schema {
  readonly [key: string]: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

const schema = configJsonSchema() as Schema;

it('is a schema of draft 2020-12 with a title and no id', () => {
  expect(schema).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Toolgate configuration',
    type: 'object',
    additionalProperties: false,
  });
  expect(schema).not.toHaveProperty('$id');
});

it('describes what is written, not what becomes of it', () => {
  expect(schema).not.toHaveProperty('required');
  expect(schema.properties?.start_wait).toMatchObject({
    default: '5s',
    anyOf: [{ type: 'string' }, { type: 'number' }],
  });
  expect(schema.$defs?.Server).toMatchObject({
    additionalProperties: false,
    oneOf: [{ required: ['command'] }, { required: ['url'] }, { required: ['folder'] }],
    properties: { transport: { enum: ['stdio', 'http', 'sse'] }, start: { default: 'eager' } },
  });
});

describe('every key is documented', () => {
  const maps: Record<string, Schema | undefined> = {
    'the whole': schema,
    http: schema.properties?.http,
    limits: schema.properties?.limits,
    audit: schema.properties?.audit,
    security: schema.properties?.security,
    folders: schema.properties?.folders,
    'a server': schema.$defs?.Server,
  };
  it.each(Object.keys(maps))('in %s', (name) => {
    const keys = Object.entries(maps[name]?.properties ?? {});
    expect(keys.length).toBeGreaterThan(2);
    for (const [key, { description }] of keys) expect([key, description]).toEqual([key, expect.stringMatching(/\.$/)]);
  });
});
