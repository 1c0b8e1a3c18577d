import { describe, expect, it } from 'vitest';
import { DEFINITIONS, mapSchemaChildren, schemaChildren } from './schema-children.ts';

const schema = {
  type: 'object',
  properties: { default: { title: 'a' }, b: true },
  dependencies: { enum: { title: 'c' } },
  $defs: { d: { title: 'd' } },
  allOf: [{ title: 'e' }],
  items: { title: 'f' },
  'x-own': { title: 'g' },
  default: { title: 'a value' },
  enum: [{ title: 'a value' }],
  examples: [{ title: 'a value' }],
};

const titles = (children: readonly unknown[]) =>
  children.map((child) => (child as { title?: string }).title).filter((title) => title !== undefined);

describe('schemaChildren', () => {
  it('finds schemas under keywords and under property names, and none in values', () => {
    expect(titles(schemaChildren(schema))).toEqual(['a', 'c', 'd', 'e', 'f', 'g']);
  });

  it('leaves out the given keywords', () => {
    expect(titles(schemaChildren(schema, DEFINITIONS))).toEqual(['a', 'c', 'e', 'f', 'g']);
  });
});

describe('mapSchemaChildren', () => {
  it('replaces exactly what schemaChildren finds', () => {
    const seen: unknown[] = [];
    const mapped = mapSchemaChildren(schema, (child) => {
      seen.push(child);
      return typeof child === 'object' ? { title: 'new' } : child;
    });
    expect(seen).toEqual(schemaChildren(schema));
    expect(titles(schemaChildren(mapped))).toEqual(Array(6).fill('new'));
    expect(mapped.default).toBe(schema.default);
    expect(mapped.properties).toEqual({ default: { title: 'new' }, b: true });
  });

  it('keeps names such as __proto__', () => {
    const given = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
    expect(JSON.stringify(mapSchemaChildren(given, (child) => child))).toBe(JSON.stringify(given));
  });
});
