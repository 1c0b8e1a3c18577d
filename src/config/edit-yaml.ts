/**
 * Edits YAML as text where maps and lists are written in lines: what an edit is not about keeps its bytes. Other places
 * are edited by the library, which keeps comments and order, but writes the document in its own format.
 */
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Node,
  parseDocument,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { isObject } from '../base/objects.ts';
import type { Path } from './issues.ts';
import type { Edit } from './raw-config.ts';

export function editYaml(text: string, edit: Edit): string {
  const document = parseDocument(text);
  return edited(text, document, edit) ?? byLibrary(document, edit);
}

/** Null if it cannot be done in lines. */
function edited(text: string, document: Document, edit: Edit): string | null {
  const { path } = edit;
  if (document.contents === null) {
    if (edit.kind === 'remove') return text;
    const value = edit.kind === 'append' ? [edit.value] : edit.value;
    return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${print(nested(path, value))}`;
  }
  if (edit.kind === 'remove') return withoutItem(text, document, path);
  const node = document.getIn(path, true);
  if (edit.kind === 'append') {
    if (isSeq(node) && isInLines(node)) return withLines(text, node, dashed(print(edit.value)), dashOf(text, node));
    return node === undefined ? edited(text, document, { kind: 'set', path, value: [edit.value] }) : null;
  }
  if (
    isScalar(node) &&
    node.range &&
    !isObject(edit.value) &&
    !Array.isArray(edit.value) &&
    node.range[1] > node.range[0]
  )
    return text.slice(0, node.range[0]) + print(edit.value).trimEnd() + text.slice(node.range[1]);
  if (node !== undefined) return null;
  // The nearest map around it that exists.
  for (let length = path.length - 1; length >= 0; length--) {
    const parent = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (parent === undefined) continue;
    if (!isMap(parent) || !isInLines(parent)) return null;
    return withLines(text, parent, print(nested(path.slice(length), edit.value)), columnOf(text, keyStart(parent, 0)));
  }
  return null;
}

function byLibrary(document: Document, edit: Edit): string {
  const { path } = edit;
  if (edit.kind === 'remove') document.deleteIn(path);
  else if (edit.kind === 'set') document.setIn(path, document.createNode(edit.value));
  else if (isSeq(document.getIn(path, true))) document.addIn(path, document.createNode(edit.value));
  else document.setIn(path, document.createNode([edit.value]));
  return document.toString({ lineWidth: 0 });
}

function nested(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
}

function print(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}

/** Whether its items are on lines of their own, and not in brackets. */
function isInLines(node: YAMLMap | YAMLSeq): boolean {
  return node.flow !== true && node.items.length > 0;
}

function keyStart(map: YAMLMap, at: number): number {
  return (map.items[at]!.key as Node).range![0];
}

/** Where the dash of an item is. */
function dashBefore(text: string, item: unknown): number {
  return text.lastIndexOf('-', (item as Node).range![0] - 1);
}

function dashOf(text: string, list: YAMLSeq): number {
  return columnOf(text, dashBefore(text, list.items[0]));
}

function columnOf(text: string, at: number): number {
  return at - (text.lastIndexOf('\n', at - 1) + 1);
}

function dashed(printed: string): string {
  return printed.replace(/^(?!$)/gm, '  ').replace(/^ {2}/, '- ');
}

/** The text with more lines at the end of a map or list. */
function withLines(text: string, node: YAMLMap | YAMLSeq, lines: string, column: number): string {
  const end = lineEnd(text, lastPlace(node));
  const indented = lines.replace(/^(?!$)/gm, ' '.repeat(column));
  const before = text.slice(0, end);
  return `${before}${before.endsWith('\n') ? '' : '\n'}${indented}${text.slice(end)}`;
}

/** Where the last character of the last value is. */
function lastPlace(node: unknown): number {
  if (isMap(node) && node.flow !== true && node.items.length > 0) {
    const { key, value } = node.items.at(-1)!;
    const hasValue = value !== null && ((value as Node).range?.[1] ?? 0) > (value as Node).range![0];
    return lastPlace(hasValue ? value : key);
  }
  if (isSeq(node) && node.flow !== true && node.items.length > 0) return lastPlace(node.items.at(-1));
  return Math.max((node as Node).range![0], (node as Node).range![1] - 1);
}

function lineEnd(text: string, at: number): number {
  const newline = text.indexOf('\n', at);
  return newline < 0 ? text.length : newline + 1;
}

function withoutItem(text: string, document: Document, path: Path): string | null {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const last = path.at(-1)!;
  if ((!isMap(parent) && !isSeq(parent)) || !isInLines(parent) || parent.items.length < 2) return null;
  const at = isSeq(parent)
    ? Number(last)
    : parent.items.findIndex(({ key }) => isScalar(key) && String(key.value) === last);
  if (at < 0 || at >= parent.items.length) return null;
  const item = isSeq(parent) ? parent.items[at] : parent.items[at]!.value;
  const start = isSeq(parent) ? dashBefore(text, item) : keyStart(parent, at);
  const key = isMap(parent) ? parent.items[at]!.key : null;
  const end = lineEnd(text, Math.max(item === null ? 0 : lastPlace(item), key === null ? 0 : lastPlace(key)));
  const line = text.lastIndexOf('\n', start - 1) + 1;
  if (text.slice(line, start).trim() !== '') return null;
  return text.slice(0, commentsBefore(text, line, start - line)) + text.slice(end);
}

/** Where the comments begin that stand directly above, as far in. One at the head of the file is about the file. */
function commentsBefore(text: string, start: number, column: number): number {
  let from = start;
  while (from > 0) {
    const line = text.lastIndexOf('\n', from - 2) + 1;
    if (!new RegExp(`^ {${column}}#`).test(text.slice(line, from))) break;
    from = line;
  }
  return from === 0 ? start : from;
}
