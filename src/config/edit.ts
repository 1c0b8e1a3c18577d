/** Edits the text of a configuration file in TOML, YAML or JSON. Comments, order and formatting of the rest stay. */
import { extname } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { isObject, isSameValue } from '../base/objects.ts';
import type { Path } from './issues.ts';
import { parseConfig } from './parse.ts';
import type { Edit } from './raw-config.ts';

/** Throws if an edit would change anything else, or if the text cannot be read. */
export async function editText(text: string, file: string, edits: readonly Edit[]): Promise<string> {
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : '';
  let edited = text.slice(mark.length);
  let value = await parsedValue(edited, file);
  for (const edit of edits) {
    const expected = applied(value, edit.path, edit);
    edited = await editOnce(edited, file, edit);
    value = await parsedValue(edited, file).catch(() => null);
    // TOML has no empty list of tables: the last one takes its key with it.
    const compared = edit.kind === 'remove' ? withoutEmpty : plain;
    if (!isSameValue(compared(value), compared(expected)))
      throw new GatewayError('usage', `${file} cannot be edited without changing something else. Edit it yourself.`);
  }
  return mark + edited;
}

async function editOnce(text: string, file: string, edit: Edit): Promise<string> {
  switch (extname(file).toLowerCase()) {
    case '.toml':
      return (await import('./edit-toml.ts')).editToml(text, edit);
    case '.json':
    case '.jsonc':
      return editJson(text, edit);
    default:
      return (await import('./edit-yaml.ts')).editYaml(text, edit);
  }
}

async function editJson(text: string, edit: Edit): Promise<string> {
  const { applyEdits, findNodeAtLocation, modify, parseTree } = await import('jsonc-parser');
  const start = text.trim() === '' ? '{}\n' : text;
  const formattingOptions = formatOf(start);
  const change = (path: Path, value: unknown, isArrayInsertion = false) =>
    applyEdits(start, modify(start, [...path], value, { formattingOptions, isArrayInsertion }));
  if (edit.kind === 'remove') return change(edit.path, undefined);
  if (edit.kind === 'set') return change(edit.path, edit.value);
  const list = findNodeAtLocation(parseTree(start)!, [...edit.path]);
  return list?.type === 'array' ? change([...edit.path, -1], edit.value, true) : change(edit.path, [edit.value]);
}

/** The format of the lines that are there. */
function formatOf(text: string) {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ';
  const isTab = indent.startsWith('\t');
  return { insertSpaces: !isTab, tabSize: isTab ? 4 : indent.length, eol: text.includes('\r\n') ? '\r\n' : '\n' };
}

async function parsedValue(text: string, file: string): Promise<unknown> {
  return text.trim() === '' ? {} : plain((await parseConfig(text, file)).value);
}

/** What can be compared: dates and other objects of parsers as text. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).map(([key, one]) => [key, withoutEmpty(one)] as const);
  return Object.fromEntries(kept.filter(([, one]) => !isEmpty(one)));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** What the file has to say after an edit. */
function applied(value: unknown, path: Path, edit: Edit): unknown {
  const [key, ...rest] = path;
  if (key === undefined) {
    if (edit.kind === 'append') return [...(Array.isArray(value) ? value : []), edit.value];
    return edit.kind === 'set' ? edit.value : undefined;
  }
  if (edit.kind === 'remove' && rest.length === 0) {
    if (Array.isArray(value)) return value.filter((_, i) => i !== key);
    return isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== key)) : value;
  }
  if (Array.isArray(value)) return value.map((one, i) => (i === key ? applied(one, rest, edit) : one));
  const map = isObject(value) ? value : {};
  return { ...map, [key]: applied(map[key], rest, edit) };
}
