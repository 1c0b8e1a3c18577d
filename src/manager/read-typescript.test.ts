/** The tools that the source of a TypeScript module shows. */
import { expect, it } from 'vitest';
import { readTypeScript } from './read-typescript.ts';

const tool = "{ description: 'Adds.', inputSchema: z.object({}), execute: ({ a }) => a }";
const names = (code: string, file = 'math.ts') => readTypeScript(file, code).tools.map(({ name }) => name);
const problems = (code: string) =>
  readTypeScript('math.ts', code).problems.map(({ line, message }) => `${line}: ${message}`);

it.each([
  ['a plain object', `export const add = ${tool};`, ['add']],
  ['a call of defineTool', `export const add = defineTool(${tool});`, ['add']],
  ['a list of exports', `const a = ${tool}; const b = a; export { a as one, b as two };`, ['one', 'two']],
  ['a default export, named after the file', `export default ${tool};`, ['math']],
  ['a constant as the default export', `const x = ${tool} as const; export default x;`, ['math']],
  ['a name of its own', `export const add = { name: 'sum', ...base, execute() {} };`, ['sum']],
  ['a method', `export const add = { description: 'x', handler() {} } satisfies Tool;`, ['add']],
  ['nothing that is not a tool', `export const add = 1; export function f() {} export * from './other';`, []],
  ['nothing that is not exported', `const add = ${tool};`, []],
])('finds %s', (_, code, expected) => {
  expect(names(code)).toEqual(expected);
});

it('reads descriptions that are written in pieces', () => {
  const code = "const WHAT = 'Adds'; export const add = { description: WHAT + ` two.`, execute: () => 1 };";
  expect(readTypeScript('a.ts', code)).toEqual({
    tools: [{ name: 'add', description: 'Adds two.', line: 1 }],
    problems: [],
    isBroken: false,
  });
});

it('says what is wrong, with the line', () => {
  expect(problems("\nexport const add = { description: '', inputSchema: s, execute: (a) => a };")).toEqual([
    expect.stringMatching(/^2: "add" has no description/),
  ]);
  expect(problems("export const add = { description: 'x', execute: ({ a }) => a };")).toEqual([
    expect.stringMatching(/^1: "add" takes arguments but has no `inputSchema`/),
  ]);
  expect(problems(`export const a = ${tool};\nexport const b = { ...x, name: 'a', execute() {} };`)).toEqual([
    expect.stringMatching(/^2: "a" is the name of two tools/),
  ]);
  expect(problems(`export const a = { ...${tool}, name: 'a b', execute() {} };`)).toEqual([
    expect.stringMatching(/^1: "a b" is not a valid name/),
  ]);
});

it('reports a syntax error with its line, and no tools', () => {
  expect(readTypeScript('a.ts', `export const a = ${tool};\nexport const b = {\n  x: ;`)).toEqual({
    tools: [],
    problems: [{ line: 3, message: expect.stringContaining('SyntaxError: ') }],
    isBroken: true,
  });
});
