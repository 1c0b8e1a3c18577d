/** What is wrong in a configuration, and where: the findings of zod and of the resolvers, in the user's words. */
import type * as z from 'zod';
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';

/** The keys and positions that lead to a value. */
export type Path = readonly (string | number)[];

/** The 1-based line of the value at a path, or of the nearest value around it that has one. */
export type LineOf = (path: Path) => number | undefined;

export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** A setting of the whole file in the wrong place. The file is refused: without a policy more would be open. */
  readonly isMisplaced?: true;
}

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);
const MAX_QUOTED = 40;

/** Where issues were found. */
export interface ConfigDocument {
  /** The file as the user would name it. */
  readonly name: string;
}

/** One error that lists every issue of a document, one per line, in the order of the document. */
export class InvalidConfig extends GatewayError {
  readonly document: ConfigDocument;
  readonly issues: readonly Issue[];

  constructor(document: ConfigDocument, issues: readonly Issue[], lineOf: LineOf = () => undefined) {
    super('config_invalid', issueTexts(document, issues, lineOf).join('\n'));
    this.document = document;
    this.issues = issues;
  }
}

/** `tools.toml:7: servers[1].comand: unknown key.`, in the order of the document. */
export function issueTexts(document: ConfigDocument, issues: readonly Issue[], lineOf: LineOf): string[] {
  return issues
    .map((issue) => ({ line: lineOf(issue.path) ?? 0, text: issueText(issue) }))
    .sort((a, b) => a.line - b.line)
    .map(({ line, text }) => `${document.name}${line > 0 ? `:${line}` : ''}: ${text}`);
}

/** `servers[1].comand: unknown key.` */
export function issueText({ path, message }: Issue): string {
  const sentence = /[.?]$/.test(message) ? message : `${message}.`;
  return path.length > 0 ? `${pathText(path)}: ${sentence}` : sentence;
}

/** `servers[1].env.TOKEN`, `mcpServers["my server"]`. */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[\w$-]+$/.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

/** The value at a path; undefined if the path leads nowhere. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const part of path) value = (value as Record<string | number, unknown> | undefined)?.[part];
  return value;
}

/** What `schema` found wrong in `value`, which was read from this document. */
export function schemaIssues(
  schema: z.core.$ZodType,
  error: z.ZodError,
  value: unknown,
  document: ConfigDocument | null = null,
): Issue[] {
  const isToml = document?.name.toLowerCase().endsWith('.toml') === true;
  const read = (issue: z.core.$ZodIssue, parent: Path): Issue[] => {
    const path: Path = [...parent, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
    switch (issue.code) {
      case 'unrecognized_keys': {
        const known = knownKeys(schema, path);
        return issue.keys.map((key) => unknownKey(key, path, known));
      }
      case 'invalid_key':
        return issue.issues.map(({ message }) => ({ path, message }));
      case 'invalid_union': {
        // The user meant the form whose outermost type fits, so the issues inside that form are reported.
        const meant = issue.errors.find((branch) =>
          branch.every((one) => one.code !== 'invalid_type' || one.path.length > 0),
        );
        if (meant) return meant.flatMap((one) => read(one, path));
      }
    }
    const found = issue.message.startsWith('expected') ? `, found ${describe(valueAt(value, path), issue.code)}` : '';
    return [{ path, message: issue.message + found }];
  };
  return error.issues.flatMap((issue) => read(issue, []));

  function unknownKey(key: string, path: Path, known: readonly string[]): Issue {
    const isTop = path.length > 0 && knownKeys(schema, []).includes(key);
    if (!isTop) {
      const isOfServer = path.length === 0 && knownKeys(schema, ['servers', 0]).includes(key);
      const hint = isOfServer ? ` It belongs to a server${isToml ? ': write it below [[servers]]' : ''}.` : '';
      return { path: [...path, key], message: `unknown key.${hint || suggestion(key, known)}` };
    }
    // In TOML everything below a header belongs to it, so a setting at the end of the file belongs to the last server.
    const first = typeof path[1] === 'number' ? `[[${path[0]}]]` : 'header in brackets';
    const place = isToml ? `before the first ${first}` : 'at the top level of the file';
    return {
      path: [...path, key],
      message: `a setting of the whole file, not of ${pathText(path)}. It belongs ${place}.`,
      isMisplaced: true,
    };
  }
}

function suggestion(key: string, known: readonly string[]): string {
  return didYouMean(key, known) || ` Known keys: ${known.join(', ')}.`;
}

/** The keys that `schema` allows in the map at `path`; none if there is no such map. */
export function knownKeys(schema: z.core.$ZodType, path: Path): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const [part, ...rest] = path;
  switch (def.type) {
    case 'pipe':
      return knownKeys(def.in, path);
    case 'optional':
    case 'prefault':
      return knownKeys(def.innerType, path);
    case 'union':
      return def.options.map((option) => knownKeys(option, path)).find((keys) => keys.length > 0) ?? [];
    case 'array':
      return typeof part === 'number' ? knownKeys(def.element, rest) : [];
    case 'record':
      return typeof part === 'string' ? knownKeys(def.valueType, rest) : [];
    case 'object': {
      if (part === undefined) return Object.keys(def.shape);
      const inner = def.shape[part];
      return inner === undefined ? [] : knownKeys(inner, rest);
    }
    default:
      return [];
  }
}

function describe(value: unknown, code: z.core.$ZodIssue['code']): string {
  switch (typeof value) {
    case 'undefined':
      return 'nothing';
    case 'string':
      // A string in the place of a map or a list may be a secret. A misspelled word or duration is worth showing.
      return code === 'invalid_type' || code === 'invalid_union' ? 'a string' : quote(value);
    case 'object':
      if (value === null) return 'null';
      if (Array.isArray(value)) return 'a list';
      return value instanceof Date ? 'a date' : 'a map';
    default:
      return String(value);
  }
}

function quote(text: string): string {
  // A long text is not a misspelled word. It may be a secret, and not even its beginning may be shown.
  return text.length > MAX_QUOTED ? `a text of ${text.length} characters` : JSON.stringify(text);
}

/** Keys that reach into the prototypes of objects: refused at every depth. */
export function forbiddenKeys(value: unknown): Issue[] {
  const issues: Issue[] = [];
  // YAML aliases can make a value contain itself, and a file may be nested deeper than the stack allows.
  const seen = new Set<unknown>();
  const open: { value: unknown; path: Path }[] = [{ value, path: [] }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, path } = next;
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const [key, inner] of Object.entries(value)) {
      const place = [...path, Array.isArray(value) ? Number(key) : key];
      if (FORBIDDEN.has(key)) issues.push({ path: place, message: 'this key is not allowed. Rename it' });
      else open.push({ value: inner, path: place });
    }
  }
  return issues;
}
