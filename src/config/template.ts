/**
 * Values that contain references: `${input.path}` is an argument of the macro, `${steps.first.name}` a part of a step's
 * answer, `${texts.first}` the text of that answer. A string that consists of one reference becomes the value itself,
 * of any type. A reference inside other text becomes text. `${input.x:-none}` has a default, and `$${` means `${`.
 */
import { isObject } from '../base/objects.ts';
import type { Path } from './issues.ts';

export interface Reference {
  /** As written, without `${` and `}`. */
  readonly text: string;
  readonly root: 'input' | 'steps' | 'texts';
  readonly path: readonly string[];
  /** The default; null if there is none. */
  readonly otherwise: string | null;
}

export type Template =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'text'; readonly parts: readonly (string | Reference)[] }
  | { readonly kind: 'list'; readonly items: readonly Template[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [string, Template])[] };

/** Reads a value; `wrong` is called for each malformed reference. */
export function readTemplate(value: unknown, path: Path, wrong: (path: Path, message: string) => void): Template {
  if (typeof value === 'string') {
    const parts = readText(value, (message) => wrong(path, message));
    return parts.every((part) => typeof part === 'string')
      ? { kind: 'value', value: parts.join('') }
      : { kind: 'text', parts };
  }
  if (Array.isArray(value))
    return { kind: 'list', items: value.map((one, i) => readTemplate(one, [...path, i], wrong)) };
  if (!isObject(value)) return { kind: 'value', value: value instanceof Date ? value.toISOString() : value };
  const entries = Object.entries(value).map(([key, one]) => [key, readTemplate(one, [...path, key], wrong)] as const);
  return { kind: 'map', entries };
}

const ROOTS = ['input', 'steps', 'texts'] as const;

function readText(text: string, wrong: (message: string) => void): (string | Reference)[] {
  const parts: (string | Reference)[] = [];
  let rest = text;
  for (let at = rest.indexOf('${'); at >= 0; at = rest.indexOf('${')) {
    if (rest[at - 1] === '$') {
      parts.push(`${rest.slice(0, at - 1)}\${`);
      rest = rest.slice(at + 2);
      continue;
    }
    const end = rest.indexOf('}', at);
    if (end < 0) {
      wrong(`"${rest.slice(at)}" is not closed. Add "}", or write "$\${" for the characters themselves`);
      break;
    }
    const reference = readReference(rest.slice(at + 2, end));
    if (typeof reference === 'string') wrong(reference);
    else parts.push(rest.slice(0, at), reference);
    rest = rest.slice(end + 1);
  }
  return [...parts, rest].filter((part) => part !== '');
}

/** The reference, or a sentence that says what is wrong with it. */
function readReference(text: string): Reference | string {
  const [, name = '', otherwise = null] = /^(.*?)(?::-(.*))?$/s.exec(text) ?? [];
  const [root, ...path] = name.split('.');
  if (!(ROOTS as readonly string[]).includes(root ?? ''))
    return `"\${${text}}" refers to nothing. Write \${input.NAME}, \${steps.ID} or \${texts.ID}, or "$\${" for the characters themselves`;
  if (path.length === 0 || path.some((step) => step === '' || step === '__proto__'))
    return `"\${${text}}" names no argument or step. Write \${${root}.NAME}`;
  if (root === 'texts' && path.length > 1)
    return `"\${${text}}" refers to a part of a text, and texts have no parts. Write \${steps.${path.join('.')}}`;
  return { text: name, root: root as Reference['root'], path, otherwise };
}

export function referencesIn(template: Template): Reference[] {
  switch (template.kind) {
    case 'value':
      return [];
    case 'text':
      return template.parts.filter((part) => typeof part !== 'string');
    case 'list':
      return template.items.flatMap(referencesIn);
    case 'map':
      return template.entries.flatMap(([, one]) => referencesIn(one));
    default:
      return template satisfies never;
  }
}

/** The value of a reference; undefined if there is none. */
export type Lookup = (reference: Reference) => unknown;

/**
 * The value with its references filled in; undefined if it is one reference without a value. Throws if a reference
 * inside a text has no value.
 */
export function fill(template: Template, lookup: Lookup): unknown {
  const find = (reference: Reference) => lookup(reference) ?? reference.otherwise ?? undefined;
  switch (template.kind) {
    case 'value':
      return template.value;
    case 'text': {
      const [only, ...more] = template.parts;
      if (more.length === 0 && typeof only === 'object') return find(only);
      return template.parts.map((part) => (typeof part === 'string' ? part : printed(part, find(part)))).join('');
    }
    case 'list':
      return template.items.map((one) => fill(one, lookup)).filter((one) => one !== undefined);
    case 'map':
      return Object.fromEntries(
        template.entries.map(([key, one]) => [key, fill(one, lookup)]).filter(([, one]) => one !== undefined),
      );
    default:
      return template satisfies never;
  }
}

function printed(reference: Reference, value: unknown): string {
  if (value === undefined) throw new Error(`There is no value for \${${reference.text}}`);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The part of a value at a path; undefined if there is none. */
export function follow(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<string, unknown>)[step];
  }
  return at;
}
