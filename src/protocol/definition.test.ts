import { expect, it } from 'vitest';
import { allowsNonObjects, legacyDefinition, modernDefinition } from './definition.ts';

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const parse = (buffer: Buffer): unknown => JSON.parse(buffer.toString());

it('wraps a schema that is not an object, and corrects references into it', () => {
  const outputSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    anyOf: [{ $ref: '#/$defs/node' }, { $ref: '#' }, { $ref: 'https://example.org/x#/y' }],
    $defs: {
      node: { type: 'object', properties: { $ref: { $ref: '#/$defs/node' } }, default: { $ref: '#/kept' } },
      other: { $id: 'https://example.org/other', $ref: '#/kept' },
    },
  };
  expect(parse(legacyDefinition(bytes({ name: 'x', inputSchema: {}, outputSchema, title: 'y' })))).toEqual({
    name: 'x',
    inputSchema: {},
    outputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        result: {
          $schema: 'https://json-schema.org/draft/2020-12/schema',
          anyOf: [
            { $ref: '#/properties/result/$defs/node' },
            { $ref: '#/properties/result' },
            { $ref: 'https://example.org/x#/y' },
          ],
          $defs: {
            node: {
              type: 'object',
              properties: { $ref: { $ref: '#/properties/result/$defs/node' } },
              default: { $ref: '#/kept' },
            },
            other: { $id: 'https://example.org/other', $ref: '#/kept' },
          },
        },
      },
      required: ['result'],
    },
    title: 'y',
  });
});

it.each([
  ['{"type":"object"}', false],
  ['{"properties":{"type":{"type":"object"}}}', true],
  ['{"type":"array"}', true],
  ['{"type":["object","null"]}', true],
])('%s allows values that are not objects: %s', (schema, expected) => {
  expect(allowsNonObjects(Buffer.from(schema), 0, schema.length)).toBe(expected);
});

it('removes only `execution` for the modern era', () => {
  const definition = '{"name":"x","execution":{"taskSupport":"optional"},"inputSchema":{"maximum":1.0},"é":[1]}';
  expect(modernDefinition(Buffer.from(definition)).toString()).toBe(
    '{"name":"x","inputSchema":{"maximum":1.0},"é":[1]}',
  );
});

it('leaves out a schema that is nested too deeply to be wrapped', () => {
  const deep = `{"name":"x","outputSchema":{"anyOf":${'['.repeat(9000)}${']'.repeat(9000)}},"inputSchema":{}}`;
  expect(legacyDefinition(Buffer.from(deep)).toString()).toBe('{"name":"x","inputSchema":{}}');
});
