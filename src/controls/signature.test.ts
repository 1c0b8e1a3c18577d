import { expect, it } from 'vitest';
import { builtInEntry } from '../catalog/entry.ts';
import { printSignature } from './signature.ts';

const signature = (inputSchema: unknown, description = '') =>
  printSignature(builtInEntry({ name: 't', description, inputSchema }));
const taking = (properties: object, required: string[] = []) =>
  signature({ type: 'object', properties, required }).slice(2, -1);

it.each([
  [{ a: { type: 'string' }, b: { type: 'number' } }, ['a'], 'a: string, b?: number'],
  [{ 'a-b': { type: 'boolean' } }, [], '"a-b"?: boolean'],
  [{ a: { enum: ['x', 'y', 3] } }, ['a'], 'a: "x" | "y" | 3'],
  [{ a: { const: 'x' } }, ['a'], 'a: "x"'],
  [{ a: { type: ['string', 'null'] } }, ['a'], 'a: string | null'],
  [{ a: { anyOf: [{ type: 'string' }, { type: 'null' }, { type: 'string' }] } }, ['a'], 'a: string | null'],
  [{ a: { type: 'array', items: { type: 'string' } } }, ['a'], 'a: string[]'],
  [{ a: { type: 'array', items: { type: ['string', 'null'] } } }, ['a'], 'a: (string | null)[]'],
  [{ a: { type: 'array' } }, ['a'], 'a: any[]'],
  [{ a: { type: 'object' } }, ['a'], 'a: object'],
  [{ a: {}, b: true, c: { $ref: '#/x' } }, ['a', 'b', 'c'], 'a: any, b: any, c: any'],
])('%j with %j required is %s', (properties, required, text) => {
  expect(taking(properties, required)).toBe(text);
});

it('prints what is inside of arrays and objects, to a depth', () => {
  const object = (properties: object) => ({ type: 'object', properties, required: Object.keys(properties) });
  const deep = object({ b: object({ c: object({ d: { type: 'string' } }) }) });
  expect(taking({ a: { type: 'array', items: object({ n: { type: 'string' } }) } }, ['a'])).toBe('a: {n: string}[]');
  expect(taking({ a: deep }, ['a'])).toBe('a: {b: {c: object}}');
});

it('leaves the inside out if it is long', () => {
  const names = Array.from({ length: 60 }, (_, at) => [`property_${at}`, { type: 'string' }]);
  expect(taking({ a: { type: 'object', properties: Object.fromEntries(names) } }, ['a'])).toBe('a: object');
});

it.each([undefined, true, { type: 'object' }, { type: 'object', properties: [] }])(
  'takes nothing if %j says so',
  (schema) => {
    expect(signature(schema)).toBe('t()');
  },
);

it('ends with the first characters of the description, on one line', () => {
  expect(signature({}, 'Reads\n  a file.')).toBe('t() - Reads a file.');
  expect(signature({}, 'x'.repeat(200))).toBe(`t() - ${'x'.repeat(100)}…`);
});
