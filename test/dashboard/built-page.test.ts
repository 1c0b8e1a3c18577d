/** The files of the dashboard: small, and without a way for texts of servers to become markup. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const sources = join(root, 'dashboard', 'src');
const files = (folder: string, fits: RegExp) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => fits.test(path));

it('the whole page has at most 200 KB, compressed', () => {
  const built = join(root, 'dist', 'dashboard');
  const all = files(built, /\.(html|js|css|svg)$/);
  expect(all.length).toBeGreaterThan(3);
  const bytes = all.reduce((sum, path) => sum + gzipSync(readFileSync(join(built, path))).length, 0);
  expect(bytes).toBeLessThan(200 * 1024);
});

it('nothing makes markup or code from text, and links to other sites go through one place', () => {
  const forbidden =
    /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|createContextualFragment|DOMParser|srcdoc|\beval\(|new Function|setTimeout\(['"`]/;
  const wrong = files(sources, /\.tsx?$/).flatMap((path) => {
    const text = readFileSync(join(sources, path), 'utf8');
    const isLink = path !== 'parts/bits.tsx' && /target="_blank"/.test(text);
    return forbidden.test(text) || isLink ? [path] : [];
  });
  expect(wrong).toEqual([]);
});

it('the document has no inline code or style, and loads nothing from elsewhere', () => {
  const page = readFileSync(join(root, 'dist', 'dashboard', 'index.html'), 'utf8');
  expect(page).not.toMatch(/<style|style=|\son\w+=|https?:\/\//);
  for (const [, attributes, body] of page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)) {
    expect(attributes).toMatch(/src="\.\/admin\/page\/[\w-]+\.js"/);
    expect(body).toBe('');
  }
});

it('it imports types only from the gateway', () => {
  const wrong = files(sources, /\.tsx?$/).filter((path) =>
    /^import (?!type)[^;]*?from '(\.\.\/)+src\//m.test(readFileSync(join(sources, path), 'utf8')),
  );
  expect(wrong).toEqual([]);
});
