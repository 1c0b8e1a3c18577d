/** The files of dist/: a program that uses little of them loads little. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import { root } from '../support/docs-page.ts';
import { isWide, onePart } from '../support/wide.ts';

const dist = join(root, 'dist');

describe('a program that is bundled with the package', () => {
  const small: readonly [string, number][] = [
    ['defineTool', 200],
    ['GatewayError, VERSION', 4_000],
  ];
  it.each(onePart(small.length, small))('is small if it uses only %s', async (names, most) => {
    expect((await bundle(names)).length).toBeLessThan(most);
  });

  // Otherwise the sizes above would prove nothing.
  if (isWide)
    it('contains the rest if it uses a gateway', async () => {
      expect((await bundle('createGateway')).length).toBeGreaterThan(100_000);
    });
});

describe('the package', () => {
  it('has the documentation page in its code, for programs that are bundled with it', () => {
    const page = readFileSync(join(dist, 'docs.html'), 'utf8');
    const files = readdirSync(join(dist, 'chunks')).map((name) => readFileSync(join(dist, 'chunks', name), 'utf8'));
    expect(files.filter((text) => text.includes('<main id="tools">'))).toHaveLength(1);
    expect(files.join('')).not.toContain('DOCS_PAGE');
    expect(page).toContain('<main id="tools">');
  });

  it('has no side effects when it is imported, as "sideEffects" in package.json says', async () => {
    const state = () => ({
      globals: Object.getOwnPropertyNames(globalThis).sort(),
      listening: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      environment: { ...process.env },
    });
    const before = state();
    await import(pathToFileURL(join(dist, 'index.js')).href);
    expect(state()).toEqual(before);
  });
});

describe('the command line', () => {
  it('loads almost nothing before it knows the command', () => {
    expect(bytesLoaded('cli/main.js')).toBeLessThan(60_000);
  });

  it('loads no gateway to connect to a remote one', () => {
    expect(bytesLoaded(chunk('connect'))).toBeLessThan(130_000);
  });

  it.each(['secrets', 'namespaces', 'toolsets'])('loads no prompts for toolgate %s', (command) => {
    const draws = (path: string) => readFileSync(path, 'utf8').includes('Prompt functions must return a string');
    expect([...filesLoaded(chunk(command))].filter(draws)).toEqual([]);
    expect([...filesLoaded(chunk('pick'))].filter(draws)).toHaveLength(1);
  });
});

describe('the files of dist/', () => {
  // One other character in a file of 700 KB costs as much memory again.
  it('have only characters that take one byte', () => {
    const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    const loaded = names.filter((name) => /^([a-z]+|cli\/main|chunks\/[^/]+)\.js$/.test(name));
    expect(loaded.length).toBeGreaterThan(20);
    const others = (name: string) => readFileSync(join(dist, name)).some((byte) => byte > 0x7f);
    expect(loaded.filter(others)).toEqual([]);
  });

  it('do not import each other in a cycle, in which one would run before what it needs', () => {
    const all = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => /\.m?js$/.test(name));
    expect(all.length).toBeGreaterThan(20);
    const inCircle = all.filter((name) => reachedFrom(importsOf(join(dist, name))).has(join(dist, name)));
    expect(inCircle).toEqual([]);
  });
});

function chunk(name: string): string {
  return `chunks/${readdirSync(join(dist, 'chunks')).find((file) => file.startsWith(`${name}-`))}`;
}

/** A file of dist/ with all files that it imports statically. */
function filesLoaded(file: string): Set<string> {
  const reached = reachedFrom([join(dist, file)]);
  expect(reached.size).toBeGreaterThan(1);
  return reached;
}

function reachedFrom(paths: readonly string[]): Set<string> {
  const reached = new Set(paths);
  for (const path of reached) for (const from of importsOf(path)) reached.add(from);
  return reached;
}

function importsOf(path: string): string[] {
  const statements = readFileSync(path, 'utf8').matchAll(/(?:^|;)(?:import|export)\b[^;"'(]*["'](\.[^"']+)["']/gm);
  return [...statements].map(([, from]) => join(dirname(path), from!));
}

function bytesLoaded(file: string): number {
  return [...filesLoaded(file)].reduce((sum, path) => sum + readFileSync(path).length, 0);
}

/** The minified code that a program loads at start-up if it re-exports these names. */
async function bundle(names: string): Promise<string> {
  const program = '\0program';
  const build = await rolldown({
    input: program,
    platform: 'node',
    logLevel: 'silent',
    external: (id) => !id.startsWith('\0') && !id.startsWith('.') && !id.startsWith('/'),
    plugins: [
      {
        name: 'program',
        resolveId: (id) => (id === program ? id : undefined),
        load: (id) => (id === program ? `export { ${names} } from '${join(dist, 'index.js')}';` : undefined),
      },
    ],
  });
  const { output } = await build.generate({ format: 'esm', minify: true });
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const loaded = new Set([output[0].fileName]);
  for (const name of loaded) {
    const chunk = chunks.get(name);
    if (chunk?.type === 'chunk') for (const imported of chunk.imports) if (chunks.has(imported)) loaded.add(imported);
  }
  return [...loaded].map((name) => (chunks.get(name) as { code: string }).code).join('\n');
}
