/** Keeps the order of the rooms: a file imports from its own room or one above it. ARCHITECTURE.md says what each room is for. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const rooms = [
  ['base/'],
  ['protocol/'],
  ['tools/'],
  ['catalog/'],
  ['secrets/'],
  ['config/'],
  ['plans/'],
  ['access/'],
  ['store/'],
  ['workers/'],
  ['logins/'],
  ['sources/'],
  ['calls/'],
  ['observe/'],
  ['controls/'],
  ['gateway/'],
  ['telemetry/'],
  ['doors/'],
  ['library/'],
  ['manager/'],
  ['dashboard/'],
  ['deprecated.ts'],
  ['index.ts'],
  ['cli/'],
];

/** Path below src/ to text. */
type Sources = ReadonlyMap<string, string>;

const src = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
const all: Sources = new Map(files.sort().map((path) => [path, readFileSync(join(src, path), 'utf8')]));
const sources: Sources = new Map([...all].filter(([path]) => !path.endsWith('.test.ts')));

describe('the source tree', () => {
  it('imports only from the same room or one above', () => {
    expect(findMisplaced(sources)).toEqual([]);
  });

  it('has no import cycles', () => {
    expect(findCycles(sources)).toEqual([]);
  });
});

it('declares the name of a type in one room only, and once in a file', () => {
  expect(findShared(sources)).toEqual([]);
});

/** The files that may listen to events, and what for. */
const observers = new Map([
  ['observe/audit.ts', 'writes what admins and clients do to the audit'],
  ['observe/metrics.ts', 'counts'],
  ['library/logger.ts', 'writes a log'],
  ['cli/log.ts', 'writes a log'],
  ['cli/session.ts', 'a command waits for the catalog that it needs'],
  ['cli/doctor.ts', 'shows what servers printed in place of MCP'],
  ['cli/dev.ts', 'shows what happens to a folder'],
  ['dashboard/streams.ts', 'shows what happens while a page is open'],
]);
/** The files that have to do with both sides of events: those that define, create and hand them on, and observers. */
const portHolders = ['base/events.ts', 'gateway/gateway.ts', 'gateway/root.ts', 'index.ts', ...observers.keys()];

describe('events', () => {
  it('are heard by observers only', () => {
    expect(findListeners(sources).filter((path) => !observers.has(path))).toEqual([]);
    expect([...observers.keys()].filter((path) => !findListeners(sources).includes(path))).toEqual([]);
  });

  it('are a sink that can only emit for everybody else', () => {
    expect(findPorts(sources).filter((path) => !portHolders.includes(path))).toEqual([]);
  });
});

it('makes nobody wait for packages and parts that few need', () => {
  const reached = new Set(['index.ts']);
  const packages = new Set<string>();
  for (const path of reached) {
    const text = (sources.get(path) ?? '').replace(/^(import|export) type [^;]*;/gm, '');
    for (const [, from] of text.matchAll(/^(?:import|export)[^;]*? from '([^']+)';/gm)) {
      if (from!.startsWith('.')) reached.add(posix.join(posix.dirname(path), from!));
      else if (!from!.startsWith('node:')) packages.add(from!);
    }
  }
  expect(reached.size).toBeGreaterThan(100);
  // Large parts that many do without are loaded when they are used.
  const large = [
    'doors/http/door.ts',
    'sources/http.ts',
    'logins/grants.ts',
    'sources/folder.ts',
    'workers/build.ts',
    'telemetry/start.ts',
  ];
  expect(large.filter((path) => reached.has(path) || !sources.has(path))).toEqual([]);
  expect([...packages].sort()).toEqual(['smol-toml', 'zod']);
});

it("keeps gateway code out of the worker's host", () => {
  const host = fileURLToPath(new URL('../host', import.meta.url));
  const hostFiles = readdirSync(host, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  const tree: Sources = new Map(
    hostFiles.map((path) => [`../host/${path}`, readFileSync(join(host, path), 'utf8')] as const),
  );
  const reached = new Set(tree.keys());
  for (const path of reached) {
    const text = tree.get(path) ?? sources.get(path) ?? '';
    const targets = importsOf(path, text).map((target) => target.replace(/^\.\.\/src\//, ''));
    for (const target of targets) if (isLocal(target)) reached.add(target);
  }
  // These two are pure and import nothing themselves.
  const shared = ['protocol/levels.ts', 'protocol/lines.ts'];
  const outside = [...reached].filter((path) => !/^(?:\.\.\/host|tools|base)\//.test(path) && !shared.includes(path));
  expect(reached.size).toBeGreaterThan(10);
  expect(outside).toEqual([]);
});

describe('the check itself', () => {
  it('finds an import from a lower room, however it is written', () => {
    const lines = [
      `import { open } from '../sources/pool.ts';`,
      `import type { Pool } from '../sources/pool.ts';`,
      `import {\n  open,\n} from "../sources/pool.ts";`,
      `export { open } from '../sources/pool.ts';`,
      `import '../sources/pool.ts';`,
      `const { open } = await import('../sources/pool.ts');`,
      `type Pool = import('../sources/pool.ts').Pool;`,
    ];
    for (const line of lines) {
      expect(findMisplaced(new Map([['catalog/entry.ts', line]]))).toEqual([
        'catalog/entry.ts imports sources/pool.ts',
      ]);
    }
  });

  it('allows the same room, rooms above, packages and Node', () => {
    const text = `import a from './names.ts';\nimport b from '../base/errors.ts';\nimport z from 'zod';\nimport fs from 'node:fs';`;
    expect(findMisplaced(new Map([['catalog/entry.ts', text]]))).toEqual([]);
  });

  it('does not take an example in a comment for an import', () => {
    const text = `/**\n * @example\n * import { x } from '../cli/main.ts';\n */\n// import '../cli/main.ts';\nexport const a = 1;`;
    expect(findMisplaced(new Map([['catalog/entry.ts', text]]))).toEqual([]);
  });

  it('keeps the CLI from index.ts, and from all packages but the one that draws prompts', () => {
    const text = `import a from '../gateway/gateway.ts';\nimport b from './list.ts';\nimport c from 'node:fs';\nimport p from '@inquirer/core';\nimport d from '../index.ts';\nimport z from 'zod';`;
    expect(findMisplaced(new Map([['cli/main.ts', text]]))).toEqual([
      'cli/main.ts imports index.ts',
      'cli/main.ts imports zod',
    ]);
  });

  it('finds files without a room and imports that leave src/', () => {
    const text = `import p from '../../package.json' with { type: 'json' };`;
    expect(findMisplaced(new Map([['utils/all.ts', '']]))).toEqual(['utils/all.ts is in no room']);
    expect(findMisplaced(new Map([['catalog/entry.ts', text]]))).toEqual([
      'catalog/entry.ts imports ../package.json, which is in no room',
    ]);
  });

  it('finds a type that two rooms declare, and none that one room declares twice', () => {
    const twice: Sources = new Map([
      ['catalog/a.ts', 'export interface Place {}'],
      ['calls/b.ts', 'type Place = string;\ntype Own = 1;'],
      ['calls/c.ts', 'class Own {}\n// type Place'],
    ]);
    expect(findShared(twice)).toEqual(['Place is declared in catalog/a.ts, calls/b.ts']);
  });

  it('finds those who listen to events, however that is written', () => {
    const lines = [
      `gateway.events.listen((name) => act(name));`,
      `events.on('source', act);`,
      `this.#events\n  .on('source', act);`,
      `const { listen } = gateway.events;`,
      `const { on: hear } = this.events;`,
    ];
    for (const line of lines) expect(findListeners(new Map([['doors/a.ts', line]]))).toEqual(['doors/a.ts']);
    const harmless = `// events.on('x')\nevents.emit('x', {});\nsocket.on('data', act);\nserver.listen(80);`;
    expect(findListeners(new Map([['doors/a.ts', harmless]]))).toEqual([]);
  });

  it('finds those who are given the listening side of events', () => {
    const lines = [
      `import type { Events } from '../base/events.ts';`,
      `import { createEvents, type EventSink } from '../base/events.ts';`,
      `import {\n  type EventMap,\n  type Listener,\n} from '../../base/events.ts';`,
    ];
    for (const line of lines) expect(findPorts(new Map([['doors/a.ts', line]]))).toEqual(['doors/a.ts']);
    const sink = `import { type EventSink, redacted } from '../base/events.ts';`;
    expect(findPorts(new Map([['doors/a.ts', sink]]))).toEqual([]);
  });

  it('finds a cycle and names its files', () => {
    const cycle: Sources = new Map([
      ['catalog/a.ts', `import './b.ts';`],
      ['catalog/b.ts', `import './c.ts';`],
      ['catalog/c.ts', `import './b.ts';`],
    ]);
    expect(findCycles(cycle)).toEqual(['catalog/b.ts → catalog/c.ts → catalog/b.ts']);
  });
});

/** Types that are declared in several rooms, with the files: one word means one thing. */
function findShared(tree: Sources): string[] {
  const declared = new Map<string, string[]>();
  for (const [path, text] of tree)
    for (const [, name] of text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) (\w+)/gm))
      declared.set(name!, [...(declared.get(name!) ?? []), path]);
  return (
    [...declared]
      // Two declarations in one file merge without a word from the compiler.
      .filter(([, paths]) => new Set(paths.map(roomOf)).size > 1 || new Set(paths).size < paths.length)
      .map(([name, paths]) => `${name} is declared in ${paths.join(', ')}`)
  );
}

function findMisplaced(tree: Sources): string[] {
  const faults: string[] = [];
  for (const [path, text] of tree) {
    const own = roomOf(path);
    if (own < 0) faults.push(`${path} is in no room`);
    for (const target of importsOf(path, text)) {
      if (target.startsWith('node:')) continue;
      const local = isLocal(target);
      const room = local ? roomOf(target) : -1;
      if (path.startsWith('cli/') && !isForCli(target)) faults.push(`${path} imports ${target}`);
      else if (local && room < 0) faults.push(`${path} imports ${target}, which is in no room`);
      else if (local && own >= 0 && room > own) faults.push(`${path} imports ${target}`);
    }
  }
  return faults;
}

/** index.ts is an entry of the bundle: importing it would load all of the library at every start. */
function isForCli(target: string): boolean {
  return isLocal(target) ? target !== 'index.ts' : target.startsWith('@inquirer/');
}

function findCycles(tree: Sources): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push([...trail.slice(at), path].join(' → '));
    if (at >= 0 || done.has(path)) return;
    for (const target of importsOf(path, tree.get(path) ?? '')) if (tree.has(target)) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of tree.keys()) visit(path, []);
  return cycles;
}

function findListeners(tree: Sources): string[] {
  const call = /events\s*\.\s*(?:on|listen)\b/i;
  const taken = /\{[^}]*\b(?:on|listen)\b[^}]*\}\s*=\s*[\w.#]*events\b/i;
  return pathsWith(tree, (code) => call.test(code) || taken.test(code));
}

function findPorts(tree: Sources): string[] {
  const imported = /\{[^{}]*\b(?:Events|Listener|createEvents)\b[^{}]*\}\s*from\s*'[^']*base\/events\.ts'/;
  return pathsWith(tree, (code) => imported.test(code));
}

function pathsWith(tree: Sources, fits: (code: string) => boolean): string[] {
  return [...tree].filter(([, text]) => fits(withoutComments(text))).map(([path]) => path);
}

function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
}

function roomOf(path: string): number {
  return rooms.findIndex((room) => room.some((name) => (name.endsWith('/') ? path.startsWith(name) : path === name)));
}

/** What a file imports: paths below src/ (or `../…` outside of it) for its own tree, names for packages. */
function importsOf(path: string, text: string): string[] {
  const statement = /^\s*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm;
  const expression = /\bimport\(\s*['"]([^'"]+)['"]/g;
  const code = withoutComments(text);
  const specifiers = [...code.matchAll(statement), ...code.matchAll(expression)].map((match) => match[1]!);
  return specifiers.map((name) => (name.startsWith('.') ? posix.join(posix.dirname(path), name) : name));
}

function isLocal(target: string): boolean {
  return target.endsWith('.ts') || target.startsWith('../');
}
