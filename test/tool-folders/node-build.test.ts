/**
 * Building TypeScript into what plain Node runs: language features, imports, source maps, and errors with their
 * location.
 */
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { buildTools } from '../../src/workers/build.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';
import { describeOnNodes, startWorker, textOf, type WorkerOptions } from './worker.ts';

const schema = `inputSchema: { type: 'object' }`;
const good = `export const fine = { description: 'x', ${schema}, execute: () => 'fine' };`;

describeOnNodes((node) => {
  const start = (files: Files, options: WorkerOptions = {}) => startWorker(files, { node, ...options });

  describe('TypeScript', () => {
    it('supports the full language: enums, namespaces, parameter properties, generics, satisfies', async () => {
      const worker = await start({
        'a.ts': `
        import type { Nothing } from 'not-installed';
        import { AlsoOnlyAType } from 'not-installed-either';
        enum Colour { Red = 'red' }
        namespace Inner { export const value = 7; }
        class Point { constructor(public x: number, private y: number = 2) {} sum() { return this.x + this.y; } }
        const id = <T,>(value: T): T => value;
        let unused: AlsoOnlyAType | Nothing;
        export const f = { description: 'x', ${schema},
          execute: () => ({ a: Colour.Red, b: Inner.value, c: new Point(1).sum(), d: id(3) satisfies number }) };`,
      });
      expect(worker.failed).toEqual([]);
      expect((await worker.result('f')).structuredContent).toEqual({ a: 'red', b: 7, c: 3, d: 3 });
    });

    it('resolves helpers imported in any style, and loads each only once', async () => {
      const worker = await start({
        'a.ts': `
        import { plain } from './_plain';
        import { byJs } from './lib/by-js.js';
        import { byTs } from './lib/by-ts.ts';
        import data from './lib/data.json';
        import { state } from './_state.js';
        export const a = { description: 'x', ${schema}, execute: () => { state.count++; return [plain, byJs, byTs, data.text]; } };`,
        'b.mts': `
        import { state } from './_state';
        export const b = { description: 'x', ${schema}, execute: () => state.count };`,
        '_plain.ts': `export const plain: string = 'plain';`,
        '_state.ts': 'export const state = { count: 0 };',
        'lib/by-js.ts': `export const byJs: string = 'js';`,
        'lib/by-ts.ts': `export const byTs: string = 'ts';`,
        'lib/data.json': '{"text":"json"}',
      });
      expect(worker.failed).toEqual([]);
      expect(textOf(await worker.result('a'))).toBe('["plain","js","ts","json"]');
      expect(textOf(await worker.result('b'))).toBe('1');
    });

    it('keeps calls whose result is not used, because they may throw', async () => {
      const calls = ['decodeURIComponent("%zz")', 'encodeURIComponent("\\ud800")', 'new URL("x")', 'JSON.parse("{")'];
      const tried = calls.map((call, i) => `try { ${call}; } catch { thrown.push(${i}); }`);
      const worker = await start({
        'a.ts': `export const a = { description: 'x', ${schema}, execute: () => {
          const thrown: number[] = [];
          ${tried.join('\n')}
          return thrown;
        } };`,
      });
      expect(textOf(await worker.result('a'))).toBe(JSON.stringify(calls.map((_, i) => i)));
    });

    it('supports the paths of its own tsconfig.json, and CommonJS', async () => {
      const worker = await start({
        'tsconfig.json': JSON.stringify({ compilerOptions: { paths: { '@/*': ['./lib/*'] } } }),
        'a.ts': `import { deep } from '@/deep';\nexport const a = { description: 'x', ${schema}, execute: () => deep };`,
        'lib/deep.ts': `export const deep: string = 'deep';`,
        'b.js': `const { sep } = require('node:path'); const { word } = require('./lib/old.cjs');
          module.exports = { b: { description: 'x', ${schema}, execute: () => word + sep } };`,
        'lib/old.cjs': `exports.word = 'old';`,
      });
      expect(worker.failed).toEqual([]);
      expect(textOf(await worker.result('a'))).toBe('deep');
      expect(textOf(await worker.result('b'))).toBe('old/');
    });

    it('sees the source locations of its files in import.meta', async () => {
      const worker = await start({
        'a.ts': `
        import { readFileSync } from 'node:fs';
        import { here } from './lib/here.ts';
        const text = 'ü import.meta.url'; // import.meta.url
        const { filename } = import.meta;
        export const f = { description: 'x', ${schema}, execute: () => ({
          text, data: readFileSync(new URL('./data.txt', import.meta.url), 'utf8'),
          url: import.meta.url, dirname: import.meta.dirname, filename, here }) };`,
        'data.txt': 'beside',
        'lib/here.ts': `export const here = import.meta.filename;`,
      });
      const { folder } = worker;
      expect((await worker.result('f')).structuredContent).toEqual({
        text: 'ü import.meta.url',
        data: 'beside',
        url: pathToFileURL(join(folder, 'a.ts')).href,
        dirname: folder,
        filename: join(folder, 'a.ts'),
        here: join(folder, 'lib/here.ts'),
      });
    });

    it('reports run-time errors with source lines', async () => {
      const worker = await start({
        'a.ts': `
        interface Only { a: string }
        import { fail } from './lib/fail.ts';

        export const own = { description: 'x', ${schema}, async execute() {
          class QuotaError extends Error {}
          throw new QuotaError('no quota left');
        } };
        export const deep = { description: 'x', ${schema}, execute: () => fail() };
        export const net = { description: 'x', ${schema}, execute: () => fetch('http://127.0.0.1:9/') };
        export const text = { description: 'x', ${schema}, execute: () => { throw 'only text'; } };`,
        'lib/fail.ts': `type A = 1;\n\nexport function fail(): never {\n  throw new RangeError('too far');\n}\n`,
      });
      expect(await worker.error('own')).toEqual({
        code: 'internal_error',
        message: 'no quota left',
        details: { type: 'QuotaError', file: 'a.ts', line: 7 },
      });
      expect((await worker.error('deep')).details).toEqual({ type: 'RangeError', file: 'lib/fail.ts', line: 4 });
      expect((await worker.error('net')).message).toMatch(/^fetch failed: (?:bad port|connect ECONNREFUSED)/);
      expect(await worker.error('text')).toMatchObject({ message: 'only text', details: { type: 'string' } });
      expect(worker.child.stderr()).toContain('a.ts:7');
    });
  });

  describe('a file with an error', () => {
    it('is reported with line and column, and does not hide errors in other files', async () => {
      const worker = await start({
        'bad.ts': `export const a = 1;\nexport const b = = 2;\n`,
        'good.ts': good,
        'late.ts': `type A = 1;\n\nnull.x;\n`,
        'missing.ts': `import { z } from 'zod';\nimport x from 'left-pad-x/lib/index.js';\nimport y from '@scope/pkg/sub';\nimport h from './no-such-file';\nexport const t = { x, y, h };`,
        'through.ts': `import './_broken.ts';`,
        '_broken.ts': `\n\nconst = 1;`,
      });
      expect(worker.tools.map(({ name }) => name)).toEqual(['fine']);
      expect(textOf(await worker.result('fine'))).toBe('fine');
      const failed = worker.failed.map(({ file, line, column, message }) => [file, line, column, message]);
      expect(failed).toEqual([
        ['bad.ts', 2, expect.any(Number), expect.stringMatching(/\w/)],
        [
          'missing.ts',
          2,
          15,
          'Cannot find package "left-pad-x": add it to "dependencies" in the folder\'s package.json.',
        ],
        [
          'missing.ts',
          3,
          15,
          'Cannot find package "@scope/pkg": add it to "dependencies" in the folder\'s package.json.',
        ],
        ['missing.ts', 4, 15, 'Cannot find "./no-such-file" from missing.ts.'],
        ['through.ts', null, undefined, expect.stringMatching(/^_broken\.ts:3: /)],
        ['late.ts', 3, undefined, expect.stringContaining('Cannot read properties of null')],
      ]);
    });

    it('is refused if it imports from outside its folder', async () => {
      const outside = tempFolder({ 'secret.json': '{"key":"hidden"}', 'code.ts': 'export const key = "hidden";' });
      const worker = await start({
        'a.ts': `import secret from '${outside}/secret.json';\nexport { secret };`,
        'b.ts': `import { key } from '../${outside.split('/').at(-1)}/code.ts';\nexport { key };`,
        'c.ts': `import x from 'https://example.com/x.js';\nexport { x };`,
        'd.ts': good,
      });
      symlinkSync(join(outside, 'code.ts'), join(worker.folder, 'e.ts'));
      expect((await buildTools(worker.folder, tempFolder())).files).toEqual([
        { file: 'd.ts', module: 'd.ts.mjs', lastGood: null },
      ]);
      expect(worker.tools).toHaveLength(1);
      expect(worker.failed.map(({ file, line, message }) => `${file}:${line} ${message}`)).toEqual([
        expect.stringMatching(/^a\.ts:1 .*is outside the folder of the namespace/),
        expect.stringMatching(/^b\.ts:1 .*is outside the folder of the namespace/),
        expect.stringMatching(/^c\.ts:1 .*not URLs/),
      ]);
      expect(JSON.stringify(worker.lines)).not.toContain('hidden');
    });
  });

  describe('a build', () => {
    it('is identical for identical files and differs for different ones', async () => {
      const folder = tempFolder({ 'a.ts': good });
      const environment = tempFolder();
      const first = await buildTools(folder, environment);
      const again = await buildTools(folder, environment);
      expect(again).toEqual(first);
      expect(first.files).toEqual([{ file: 'a.ts', module: 'a.ts.mjs', lastGood: null }]);
      writeFiles(folder, { 'a.ts': good.replace("'fine'", "'other'") });
      const changed = await buildTools(folder, environment);
      expect(changed.key).not.toBe(first.key);
      expect(readdirSync(join(environment, 'build')).sort()).toEqual([first.key, changed.key].sort());
      expect(readFileSync(join(changed.path, 'a.ts.mjs'), 'utf8')).toContain('sourceMappingURL=data:');
    });

    it('of an empty folder is empty', async () => {
      const worker = await start({ 'README.md': 'nothing' });
      expect([worker.tools, worker.failed]).toEqual([[], []]);
    });
  });
});
