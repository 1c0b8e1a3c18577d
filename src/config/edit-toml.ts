/** Edits TOML as text: what an edit is not about keeps its bytes, comments included. */
import { type AST, parseTOML } from 'toml-eslint-parser';
import { isObject, type JsonObject } from '../base/objects.ts';
import type { Path } from './issues.ts';
import type { Edit } from './raw-config.ts';

type Pair = AST.TOMLKeyValue;
type Table = AST.TOMLTable;

/** Where the value of a path is. */
type Place =
  | { readonly kind: 'pair'; readonly pair: Pair; readonly inline: AST.TOMLInlineTable | null }
  | { readonly kind: 'element'; readonly array: AST.TOMLArray; readonly at: number }
  /** A table: its header, tables below it, and keys with dots. */
  | { readonly kind: 'spread'; readonly own: Table | null; readonly parts: readonly (Pair | Table)[] };

export function editToml(text: string, edit: Edit): string {
  const body = parseTOML(text, { tomlVersion: '1.1' }).body[0].body;
  const found = (path: Path) => find(body, path);
  switch (edit.kind) {
    case 'remove':
      return removed(text, body, found(edit.path));
    case 'append': {
      const place = found(edit.path);
      return place === null && !isObject(edit.value)
        ? editToml(text, { kind: 'set', path: edit.path, value: [edit.value] })
        : appended(text, place, edit.path, edit.value, edit.comment);
    }
    case 'set': {
      const place = found(edit.path);
      if (place?.kind === 'spread')
        return editToml(removed(text, body, place), { kind: 'set', path: edit.path, value: edit.value });
      if (place !== null) return spliced(text, valueAtPlace(place).range, tomlValue(edit.value));
      return inserted(text, body, found(edit.path.slice(0, -1)), edit.path, edit.value, edit.comment);
    }
  }
}

function find(body: readonly (Pair | Table)[], path: Path): Place | null {
  const parts: (Pair | Table)[] = [];
  let own: Table | null = null;
  for (const node of body) {
    if (node.type === 'TOMLKeyValue') {
      const place = findInPair(node, [], path, null, parts);
      if (place !== null) return place;
      continue;
    }
    if (isPrefix(path, node.resolvedKey)) {
      parts.push(node);
      if (node.resolvedKey.length === path.length) own = node;
    } else
      for (const pair of node.body) {
        const place = findInPair(pair, node.resolvedKey, path, null, parts);
        if (place !== null) return place;
      }
  }
  return parts.length === 0 ? null : { kind: 'spread', own, parts };
}

function findInPair(
  pair: Pair,
  table: Path,
  path: Path,
  inline: AST.TOMLInlineTable | null,
  parts: (Pair | Table)[],
): Place | null {
  const full = [...table, ...namesOf(pair.key)];
  if (full.length === path.length && isPrefix(full, path)) return { kind: 'pair', pair, inline };
  if (isPrefix(path, full)) {
    if (inline === null) parts.push(pair);
    return null;
  }
  return isPrefix(full, path) ? findInValue(pair.value, full, path, parts) : null;
}

function findInValue(value: AST.TOMLContentNode, at: Path, path: Path, parts: (Pair | Table)[]): Place | null {
  if (value.type === 'TOMLInlineTable') {
    for (const pair of value.body) {
      const place = findInPair(pair, at, path, value, parts);
      if (place !== null) return place;
    }
  }
  if (value.type !== 'TOMLArray') return null;
  const index = Number(path[at.length]);
  const element = value.elements[index];
  if (element === undefined) return null;
  const full = [...at, index];
  if (full.length === path.length) return { kind: 'element', array: value, at: index };
  return findInValue(element, full, path, parts);
}

function isPrefix(short: Path, long: Path): boolean {
  return short.length <= long.length && short.every((part, i) => part === long[i]);
}

function valueAtPlace(place: Exclude<Place, { kind: 'spread' }>): AST.TOMLContentNode {
  return place.kind === 'pair' ? place.pair.value : place.array.elements[place.at]!;
}

function removed(text: string, body: readonly (Pair | Table)[], place: Place | null): string {
  if (place === null) return text;
  if (place.kind === 'element') return withoutItem(text, place.array.elements, place.at);
  if (place.kind === 'pair')
    return place.inline === null
      ? spliced(text, linesOf(text, place.pair), '')
      : withoutItem(text, place.inline.body, place.inline.body.indexOf(place.pair));
  let left = text;
  const first = body[0];
  for (const part of [...place.parts].reverse()) {
    const [start, end] = linesOf(text, part);
    // A comment at the head of a file is about the file.
    const from = part.type === 'TOMLTable' ? commentsBefore(text, start, part === first) : start;
    const to = part.type === 'TOMLTable' ? commentsAfter(text, end) : end;
    left = spliced(left, [from, to], '');
  }
  return left;
}

/** A list or an inline table without one of its items, and without the comma between it and its neighbour. */
function withoutItem(text: string, items: readonly AST.TOMLNode[], at: number): string {
  const item = items[at]!;
  const next = items[at + 1];
  const previous = items[at - 1];
  if (next !== undefined) return spliced(text, [item.range[0], next.range[0]], '');
  return spliced(text, [previous === undefined ? item.range[0] : previous.range[1], item.range[1]], '');
}

/** The whole lines of a node, with a comment at the end of the last. */
function linesOf(text: string, { range: [start, end] }: AST.TOMLNode): [number, number] {
  const newline = text.indexOf('\n', end);
  return [text.lastIndexOf('\n', start - 1) + 1, newline < 0 ? text.length : newline + 1];
}

/** Where the comments begin that stand directly above. */
function commentsBefore(text: string, start: number, isFirst: boolean): number {
  let from = start;
  while (from > 0) {
    const line = text.lastIndexOf('\n', from - 2) + 1;
    if (!/^[ \t]*#/.test(text.slice(line, from))) break;
    from = line;
  }
  if (isFirst && from === 0) return start;
  // One of the two blank lines that would be left.
  const blank = /\n\r?\n$/.exec(text.slice(0, from));
  return blank === null ? from : from - (blank[0].length - 1);
}

/** Where the comments end that follow directly and are not about what comes next. */
function commentsAfter(text: string, end: number): number {
  let to = end;
  for (;;) {
    const newline = text.indexOf('\n', to);
    const line = text.slice(to, newline < 0 ? text.length : newline + 1);
    if (!/^[ \t]*#/.test(line)) return /^[ \t]*\[/.test(line) ? end : to;
    to += line.length;
  }
}

function appended(text: string, place: Place | null, path: Path, value: unknown, comment?: string): string {
  if (place?.kind === 'pair' && place.pair.value.type === 'TOMLArray') {
    const { elements, range } = place.pair.value;
    const last = elements.at(-1);
    if (last === undefined) return spliced(text, range, `[${tomlValue(value)}]`);
    const lineStart = text.lastIndexOf('\n', last.range[0] - 1) + 1;
    const before = text.slice(lineStart, last.range[0]);
    const gap = before.trim() === '' && lineStart > range[0] ? `,${newlineOf(text)}${before}` : ', ';
    return spliced(text, [last.range[1], last.range[1]], `${gap}${tomlValue(value)}`);
  }
  return isObject(value) ? withBlock(text, `[[${keyText(path)}]]`, value, comment) : text;
}

function inserted(
  text: string,
  body: readonly (Pair | Table)[],
  parent: Place | null,
  path: Path,
  value: unknown,
  comment?: string,
): string {
  const key = path.slice(-1);
  const line = `${keyText(key)} = ${tomlValue(value)}`;
  if (parent !== null && parent.kind !== 'spread') {
    const table = valueAtPlace(parent);
    if (table.type !== 'TOMLInlineTable') return text;
    const last = table.body.at(-1);
    return last === undefined
      ? spliced(text, table.range, `{ ${line} }`)
      : spliced(text, [last.range[1], last.range[1]], `, ${line}`);
  }
  if (isObject(value)) return withBlock(text, `[${keyText(path)}]`, value, comment);
  if (parent?.own) {
    const last = parent.own.body.at(-1);
    // The header ends before its own line does: a comment may follow.
    return withLine(text, linesOf(text, last ?? parent.own.key)[1], line, indentOf(text, last));
  }
  const dotted = parent?.parts.findLast((part): part is Pair => part.type === 'TOMLKeyValue');
  if (dotted !== undefined) {
    const depth = namesOf(dotted.key).length - (fullPath(body, dotted).length - path.length + 1);
    const own = `${keyText([...namesOf(dotted.key).slice(0, depth), ...key])} = ${tomlValue(value)}`;
    return withLine(text, linesOf(text, dotted)[1], own, indentOf(text, dotted));
  }
  if (path.length > 1) return withBlock(text, `[${keyText(path.slice(0, -1))}]`, { [String(key[0])]: value });
  const lastRoot = body.findLast((node) => node.type === 'TOMLKeyValue');
  if (lastRoot !== undefined) return withLine(text, linesOf(text, lastRoot)[1], line, '');
  const [first] = body;
  if (first === undefined) return withLine(text, text.length, line, '');
  const above = commentsBefore(text, linesOf(text, first)[0], true);
  const at = above + /^(?:\r?\n)*/.exec(text.slice(above))![0].length;
  const eol = newlineOf(text);
  return spliced(text, [at, at], `${line}${eol}${eol}`);
}

function fullPath(body: readonly (Pair | Table)[], pair: Pair): Path {
  const table = body.find((node): node is Table => node.type === 'TOMLTable' && node.body.includes(pair));
  return [...(table?.resolvedKey ?? []), ...namesOf(pair.key)];
}

function indentOf(text: string, node: AST.TOMLNode | undefined): string {
  if (node === undefined) return '';
  return /^[ \t]*/.exec(text.slice(linesOf(text, node)[0]))![0];
}

function withLine(text: string, at: number, line: string, indent: string): string {
  const eol = newlineOf(text);
  const isOpen = at > 0 && text[at - 1] !== '\n';
  return spliced(text, [at, at], `${isOpen ? eol : ''}${indent}${line}${eol}`);
}

/** A table at the end of the file. */
function withBlock(text: string, header: string, value: JsonObject, comment?: string): string {
  const eol = newlineOf(text);
  const lines = Object.entries(value).map(([name, one]) => `${keyText([name])} = ${tomlValue(one)}`);
  const start = text === '' || text.endsWith('\n') ? text : `${text}${eol}`;
  return `${start}${start === '' ? '' : eol}${[...commentLines(comment), header, ...lines].join(eol)}${eol}`;
}

/** As comments are written. */
function commentLines(comment: string | undefined): string[] {
  return comment === undefined ? [] : comment.split('\n').map((line) => `# ${line}`);
}

function newlineOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

function spliced(text: string, [start, end]: readonly [number, number], by: string): string {
  return text.slice(0, start) + by + text.slice(end);
}

function namesOf({ keys }: AST.TOMLKey): string[] {
  return keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
}

function keyText(path: Path): string {
  return path.map((part) => (/^[\w-]+$/.test(String(part)) ? String(part) : tomlText(String(part)))).join('.');
}

/** As one line. */
export function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (isObject(value)) {
    const pairs = Object.entries(value).map(([name, one]) => `${keyText([name])} = ${tomlValue(one)}`);
    return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
  }
  return typeof value === 'string' ? tomlText(value) : JSON.stringify(value);
}

/** Strings of JSON are strings of TOML too, but for one character. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
