/** What is wrong in a configuration, and where: the findings of zod and of the resolver in the user's own words. */

import type * as z from 'zod';
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/similar.ts';
import type { Path } from './path.ts';
import { valueAt } from './raw-config.ts';
import { knownKeys } from './schema.ts';

export interface Issue {
  readonly path: Path;
  readonly message: string;
}

/** Where a configuration came from, for messages. */
export interface Origin {
  /** The file as the user would name it. */
  readonly name: string;
  /** The 1-based line of a value or of the nearest thing around it. */
  lineOf(path: Path): number | undefined;
}

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);
const SHOWN = 40;

/** One error that lists every issue, a line each, in the order of the file. */
export function configInvalid(origin: Origin, issues: readonly Issue[]): GatewayError {
  const lines = issues
    .map((issue) => ({ line: origin.lineOf(issue.path) ?? 0, text: issueText(issue) }))
    .sort((a, b) => a.line - b.line)
    .map(({ line, text }) => `${origin.name}${line > 0 ? `:${line}` : ''}: ${text}`);
  return new GatewayError('config_invalid', lines.join('\n'));
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

/** What the schema found in `value`. */
export function schemaIssues(error: z.ZodError, value: unknown): Issue[] {
  return error.issues.flatMap((issue) => fromZod(issue, [], value));
}

function fromZod(issue: z.core.$ZodIssue, parent: Path, root: unknown): Issue[] {
  const path: Path = [...parent, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `unknown key.${suggestion(key, knownKeys(path))}`,
    }));
  }
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => ({ path, message }));
  if (issue.code === 'invalid_union') {
    // The form the user meant is the one whose outermost type fits; what is wrong inside it is the news.
    const meant = issue.errors.find((branch) =>
      branch.every((one) => one.code !== 'invalid_type' || one.path.length > 0),
    );
    if (meant) return meant.flatMap((one) => fromZod(one, path, root));
  }
  const found = issue.message.startsWith('expected') ? `, found ${describe(valueAt(root, path), issue.code)}` : '';
  return [{ path, message: issue.message + found }];
}

function suggestion(key: string, known: string[]): string {
  return didYouMean(key, known) || ` Known keys: ${known.join(', ')}.`;
}

function describe(value: unknown, code: z.core.$ZodIssue['code']): string {
  switch (typeof value) {
    case 'undefined':
      return 'nothing';
    case 'string':
      // Text in the place of a map or a list may be a secret; a misspelt word or duration is worth showing.
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
  // A long one is no misspelt word. It may be a secret, and the beginning of it too much.
  return text.length > SHOWN ? `a text of ${text.length} characters` : JSON.stringify(text);
}

/** Keys that reach into the prototypes of objects: refused wherever they stand. */
export function forbiddenKeys(value: unknown): Issue[] {
  const issues: Issue[] = [];
  // Aliases of YAML can tie a value into a ring, and a file may be nested deeper than the stack is.
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
