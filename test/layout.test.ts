/** The layout of the tests: one folder per capability, shared helpers in support/, and names that tell files apart. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('.', import.meta.url));
const SHARED = ['support', 'fixtures'];

const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.startsWith('tools/') && !path.includes('node_modules'))
  .sort();

it('no two test files have the same name, so that a name in a log is enough to find the file', () => {
  const names = files.filter((path) => path.endsWith('.test.ts')).map((path) => basename(path));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

it('a helper that two folders use is in support/', () => {
  const crossing = files.flatMap((path) => {
    const folder = path.split('/')[0]!;
    const imports = [...readFileSync(join(root, path), 'utf8').matchAll(/from '(\.\.\/[^'$]+)'/g)];
    const targets = imports.map(([, specifier]) => relative(root, resolve(root, path, '..', specifier!)));
    const outside = targets.filter((target) => {
      const other = target.split('/')[0]!;
      return !target.startsWith('..') && other !== folder && !SHARED.includes(other);
    });
    return outside.map((target) => `${path} imports ${target}`);
  });
  expect(crossing).toEqual([]);
});

it('a file that replaces the intervals of gateways has a process of its own, because modules keep theirs for all files', () => {
  const config = readFileSync(join(root, '..', 'vitest.config.ts'), 'utf8');
  const [, alone = ''] = /const ALONE = \[(.*?)\]/s.exec(config) ?? [];
  const replacing = files.filter((path) => {
    const text = path.endsWith('.test.ts') ? readFileSync(join(root, path), 'utf8') : '';
    return /useFakeTimers\((?:\)|\{[^}]*'setInterval')/.test(text);
  });
  expect(replacing).not.toEqual([]);
  expect(replacing.filter((path) => !alone.includes(`'test/${path}'`))).toEqual([]);
});
