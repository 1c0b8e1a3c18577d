/** A tool in one line, with what it takes, in the notation of TypeScript: models read it well, and it is short. */
import { memo } from '../base/memo.ts';
import { toObject } from '../base/objects.ts';
import type { Entry } from '../catalog/entry.ts';
import { oneLine } from '../catalog/overview.ts';
import { findMember } from '../protocol/json.ts';

/** How deep types are printed. What is deeper is `object` or `array`. */
const DEPTH = 3;
const MOST_WORDS = 8;
const LONGEST_TYPE = 400;
const LONGEST_TEXT = 100;

/** Printed once per item, because the same tool may be switched on by many clients. */
const parametersOf = memo(({ bytes }: { readonly bytes: Buffer }): string => {
  const span = findMember(bytes, 'inputSchema');
  const schema: unknown = span === null ? {} : JSON.parse(bytes.toString('utf8', span.start, span.end));
  const printed = printMembers(toObject(schema), DEPTH);
  return printed.length > LONGEST_TYPE ? printMembers(toObject(schema), 1) : printed;
});

export function printSignature({ name, item }: Entry): string {
  const text = item.description.replace(/\s+/g, ' ').trim();
  const short = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
  return `${name}(${parametersOf(item)})${short === '' ? '' : ` - ${short}`}`;
}

/** How many characters of a description a found item has. */
const BRIEF_TEXT = 132;

/** What must be given, with types; `…` stands for what may be left out. */
const requiredOf = memo(({ bytes }: { readonly bytes: Buffer }): string => {
  const span = findMember(bytes, 'inputSchema');
  const schema = toObject(span === null ? {} : JSON.parse(bytes.toString('utf8', span.start, span.end)));
  const all = toObject(schema.properties);
  const required = (Array.isArray(schema.required) ? schema.required : []).filter((key) => Object.hasOwn(all, key));
  const properties = Object.fromEntries(required.map((key) => [key, all[key]]));
  const members = [2, 1].map((depth) => printMembers({ properties, required }, depth));
  const printed = members.find(({ length }) => length <= LONGEST_BRIEF) ?? required.map(printKey).join(', ');
  const rest = Object.keys(all).length > required.length ? ['…'] : [];
  return [...(printed === '' ? [] : [printed]), ...rest].join(', ');
});

const LONGEST_BRIEF = 200;

/** An item that was found, under the name that its caller knows: enough to choose it, and often to call it. */
export function printBrief(name: string, { kind, item }: Entry): string {
  const text = [...oneLine(item.description).slice(0, BRIEF_TEXT * 2)];
  const short = text.length > BRIEF_TEXT ? `${text.slice(0, BRIEF_TEXT).join('')}…` : text.join('');
  const head = kind === 'tool' ? `${oneLine(name)}(${requiredOf(item)})` : `${kind} ${oneLine(name)}`;
  return short === '' ? head : `${head} - ${short}`;
}

function printMembers(schema: Readonly<Record<string, unknown>>, depth: number): string {
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(toObject(schema.properties))
    .map(([key, value]) => `${printKey(key)}${required.includes(key) ? '' : '?'}: ${printType(value, depth)}`)
    .join(', ');
}

function printKey(key: string): string {
  return /^[\w$]+$/.test(key) ? key : JSON.stringify(key);
}

function printType(value: unknown, depth: number): string {
  const schema = toObject(value);
  if (Array.isArray(schema.enum) && schema.enum.length <= MOST_WORDS)
    return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return [...new Set(choices.map((one) => printType(one, depth)))].join(' | ');
  if (Array.isArray(schema.type)) return schema.type.join(' | ');
  if (schema.type === 'array') return depth <= 1 ? 'array' : printArray(printType(schema.items, depth - 1));
  if (schema.type === 'object' && depth > 1 && schema.properties !== undefined)
    return `{${printMembers(schema, depth - 1)}}`;
  return typeof schema.type === 'string' ? schema.type : 'any';
}

function printArray(element: string): string {
  return element.includes(' | ') ? `(${element})[]` : `${element}[]`;
}
