/** Source files as syntax trees. The parser and its grammars are loaded when a repository is analyzed. */
import type { SgNode } from '@ast-grep/napi';
import { GatewayError, messageOf } from '../../base/errors.ts';

export type Node = SgNode;

/** The languages whose tools are found. */
export type SourceLanguage = 'typescript' | 'python' | 'go';

/** A file of a repository that was parsed. */
export interface SourceFile {
  readonly path: string;
  readonly language: SourceLanguage;
  readonly root: Node;
}

/** A tool that the code of a repository defines. */
export interface FoundTool {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly description: string;
  readonly parameters: readonly FoundParameter[];
}

export interface FoundParameter {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** The tools of some files. A name that only a run would tell is a note. */
export interface FoundTools {
  readonly tools: readonly FoundTool[];
  readonly notes: readonly string[];
}

/** Named values of a repository: those of a file, else those of another file if only one has the name. */
export interface Definitions {
  find(file: SourceFile, name: string): Node | null;
}

const PACKAGES = ['@ast-grep/napi', '@ast-grep/lang-python', '@ast-grep/lang-go'];
/** Deeper than people write, and enough to keep a parser busy for long. */
const MAX_DEPTH = 400;

export type Parse = (path: string, text: string) => SourceFile | null;

const ENDINGS: readonly (readonly [RegExp, SourceLanguage, string])[] = [
  [/(?<!\.d)\.[cm]?ts$/, 'typescript', 'TypeScript'],
  // The grammar for TSX reads JavaScript too.
  [/\.([cm]?js|jsx|tsx)$/, 'typescript', 'Tsx'],
  [/\.py$/, 'python', 'python'],
  [/\.go$/, 'go', 'go'],
];

export function languageOf(path: string): SourceLanguage | null {
  return ENDINGS.find(([ending]) => ending.test(path))?.[1] ?? null;
}

let loaded: Promise<Parse> | null = null;

/** Returns null for files in other languages, and throws for files that no person wrote. */
export function loadParser(): Promise<Parse> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Parse> {
  try {
    const [napi, python, go] = await Promise.all([
      import('@ast-grep/napi'),
      import('@ast-grep/lang-python'),
      import('@ast-grep/lang-go'),
    ]);
    napi.registerDynamicLanguage({ python: python.default, go: go.default });
    return (path, text) => {
      const [, language, grammar] = ENDINGS.find(([ending]) => ending.test(path)) ?? [];
      if (language === undefined) return null;
      if (isTooDeep(text)) throw new GatewayError('usage', 'it is nested too deeply');
      return { path, language, root: napi.parse(grammar as string, text).root() as Node };
    };
  } catch (error) {
    const command = `npm install ${PACKAGES.join(' ')}`;
    throw new GatewayError(
      'dependency_error',
      `Repositories cannot be analyzed, because the parser cannot be loaded (${messageOf(error).split('\n')[0]}). Install it: ${command}`,
      { cause: error },
    );
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (const character of text.matchAll(/[([{)\]}]/g)) {
    depth += '([{'.includes(character[0]) ? 1 : -1;
    if (depth < 0) depth = 0;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

export function all(root: Node, kind: string): Node[] {
  return root.findAll({ rule: { kind } });
}

function lineOf(node: Node): number {
  return node.range().start.line + 1;
}

export function named(node: Node | null): Node[] {
  return node === null ? [] : node.children().filter((child) => child.isNamed() && !child.is('comment'));
}

/** Finds values by name in the trees. `collect` returns what one file defines. */
function defineAll(
  files: readonly SourceFile[],
  collect: (file: SourceFile) => Iterable<readonly [string, Node]>,
): Definitions {
  const own = new Map<SourceFile, Map<string, Node>>();
  const shared = new Map<string, Node | null>();
  for (const file of files) {
    const definitions = new Map<string, Node>();
    for (const [name, node] of collect(file)) {
      // The first one is usually that of the module.
      if (definitions.has(name)) continue;
      definitions.set(name, node);
      shared.set(name, shared.has(name) ? null : node);
    }
    own.set(file, definitions);
  }
  return { find: (file, name) => own.get(file)?.get(name) ?? shared.get(name) ?? null };
}

/** What a language needs so that its tools are found. */
export interface ToolLanguage<Read extends { text(node: Node | null): string | null }> {
  /** Named values of a file. */
  definedIn(file: SourceFile): Iterable<readonly [string, Node]>;
  reader(file: SourceFile, definitions: Definitions): Read;
  /** Tools as the code of a file writes them. */
  writtenIn(file: SourceFile, read: Read): Iterable<ToolInCode>;
  /** Kinds of nodes that stand for a value elsewhere, such as a parameter of a helper: its values are found where they are written. */
  readonly references: readonly string[];
}

export interface ToolInCode {
  readonly at: Node;
  /** The name, or the code that makes it. */
  readonly name: Node | string;
  readonly description: string;
  readonly parameters: readonly FoundParameter[];
}

export function findTools<Read extends { text(node: Node | null): string | null }>(
  files: readonly SourceFile[],
  language: ToolLanguage<Read>,
): FoundTools {
  const definitions = defineAll(files, language.definedIn);
  const tools: FoundTool[] = [];
  const notes: string[] = [];
  for (const file of files) {
    const read = language.reader(file, definitions);
    for (const { at, name, description, parameters } of language.writtenIn(file, read)) {
      const text = typeof name === 'string' ? name : read.text(name);
      const line = lineOf(at);
      if (text !== null) tools.push({ name: text, file: file.path, line, description: tidy(description), parameters });
      else if (typeof name !== 'string' && !language.references.includes(String(name.kind())))
        notes.push(`${file.path}:${line}: a tool whose name is worked out at run time: ${name.text().slice(0, 80)}`);
    }
  }
  return { tools, notes };
}

/** Text as people wrote it, without the indentation of the code around it. */
export function tidy(text: string): string {
  return text
    .replace(/[ \t]*\r?\n[ \t]*/g, '\n')
    .trim()
    .slice(0, 4_000);
}
