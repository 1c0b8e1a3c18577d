/** What one server offers, as the server itself lists it. */
import { createHash } from 'node:crypto';
import { memo } from '../base/memo.ts';
import { allowsNonObjects, type EraTraits, NO_TRAITS, runsAsTask, withoutTaskSupport } from '../protocol/definition.ts';
import {
  decodeString,
  findMember,
  JsonError,
  type JsonMember,
  readElements,
  readLongElements,
  readLongMembers,
  readMembers,
  type Span,
} from '../protocol/json.ts';
import { findMirrored, MARK, type MirroredArgument } from '../protocol/param-headers.ts';
import { countExpressions, MOST_EXPRESSIONS } from './template.ts';

/** What an item is. */
export type Kind = 'tool' | 'resource' | 'template' | 'prompt';

export const KINDS: readonly Kind[] = ['tool', 'resource', 'template', 'prompt'];

/** One definition, kept as the bytes the server sent. */
export interface Item {
  readonly kind: Kind;
  /**
   * What identifies it on its server: the name of a tool or prompt, the URI of a resource, the URI template of a
   * template.
   */
  readonly name: string;
  readonly description: string;
  /** The definition, as JSON. */
  readonly bytes: Buffer;
  /**
   * The span of the identifying string in `bytes`.
   * @internal
   */
  readonly nameSpan: Span;
  /** Equal for equal definitions. */
  readonly hash: string;
  /**
   * The arguments that its schema wants in HTTP headers too; null for none, a string that says what is wrong if the
   * schema is invalid.
   * @internal
   */
  readonly mirrored: readonly MirroredArgument[] | string | null;
  /** @internal */
  readonly traits: EraTraits;
  /**
   * Why it cannot be used although it is listed; absent if it can.
   * @internal
   */
  readonly held?: string;
  /** The tools that a macro uses, as `server.tool`; absent for items of servers. */
  readonly uses?: readonly string[];
}

export interface Listing {
  readonly items: readonly Item[];
  /** What went wrong while listing: one sentence each. */
  readonly problems: readonly string[];
}

export interface Offer extends Listing {
  /** The server's instructions to models; may be empty. */
  readonly instructions: string;
  /** What the server says that it is: its description, or else its title. Absent or empty if it says nothing. */
  readonly about?: string;
}

export const EMPTY_OFFER: Offer = { items: [], problems: [], instructions: '' };

interface KindWords {
  readonly method: string;
  /** The member of the list result that holds the definitions. */
  readonly list: string;
  /** The member of a definition that identifies it. */
  readonly identity: string;
  /**
   * Another member that a definition must have, and how its value begins. One definition without it makes clients
   * refuse the whole list.
   */
  readonly also?: { readonly key: string; readonly start: '{' | '"' };
}

export const kindWords: Readonly<Record<Kind, KindWords>> = {
  tool: { method: 'tools/list', list: 'tools', identity: 'name', also: { key: 'inputSchema', start: '{' } },
  resource: { method: 'resources/list', list: 'resources', identity: 'uri', also: { key: 'name', start: '"' } },
  template: {
    method: 'resources/templates/list',
    list: 'resourceTemplates',
    identity: 'uriTemplate',
    also: { key: 'name', start: '"' },
  },
  prompt: { method: 'prompts/list', list: 'prompts', identity: 'name' },
};

/** The definitions on one page of a list result. `runsTasks`: the server runs MCP tasks. */
export function readItems(kind: Kind, result: Buffer, runsTasks = true): Listing {
  const words = kindWords[kind];
  const elements = elementsOf(result, words.list);
  if (elements === null) return { items: [], problems: [`${words.method} answered without a list "${words.list}"`] };
  const items: Item[] = [];
  const problems: string[] = [];
  elements.forEach((element, index) => {
    const bytes = result.subarray(element.start, element.end);
    const item = readItem(kind, runsTasks || kind !== 'tool' ? bytes : withoutTaskSupport(bytes));
    if (typeof item === 'string') problems.push(`${words.method}: entry ${index + 1} was left out: ${item}`);
    else items.push(item);
  });
  return { items, problems };
}

/** If one definition is not JSON, the others are still read. */
export function elementsOf(result: Buffer, key: string): readonly Span[] | null {
  try {
    const list = findMember(result, key);
    return list === null ? null : readElements(result, list.start, list.end);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const list = readLongMembers(result).find((member) => member.key === key);
    return list === undefined || !isAt(result, list.start, '[') ? null : readLongElements(result, list.start, list.end);
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The item, or why it cannot be one. */
function readItem(kind: Kind, bytes: Buffer): Item | string {
  if (!isReadable(bytes)) return 'it has a control character in a string';
  const members = readMembers(bytes) ?? [];
  const { identity, also } = kindWords[kind];
  // If there are two names, clients may read the one that was not checked and has no prefix.
  const [name, ...more] = members.filter((member) => member.key === identity);
  const text = name === undefined || !isAt(bytes, name.start, '"') ? '' : decodeString(bytes, name.start, name.end);
  if (name === undefined || text === '' || more.length > 0) return `it needs exactly one "${identity}", a string`;
  if (also !== undefined && !members.some(({ key, start }) => key === also.key && isAt(bytes, start, also.start))) {
    return `${JSON.stringify(text)} has no "${also.key}" that is ${also.start === '{' ? 'an object' : 'a string'}`;
  }
  // Others build names, addresses and documents from it, and one bad name would break those for all.
  if (LONE_SURROGATE.test(text)) return 'its name contains half of a character (a lone surrogate)';
  if (kind === 'template' && countExpressions(text) > MOST_EXPRESSIONS)
    return `${JSON.stringify(text.slice(0, 100))} has more than ${MOST_EXPRESSIONS} expressions`;
  const description = members.findLast((member) => member.key === 'description');
  return Object.freeze({
    kind,
    name: text,
    description:
      description !== undefined && isAt(bytes, description.start, '"')
        ? decodeString(bytes, description.start, description.end)
        : '',
    // A copy: a slice would keep the whole page in memory.
    bytes: Buffer.from(bytes),
    nameSpan: { start: name.start, end: name.end },
    hash: hashBytes(bytes),
    mirrored: kind === 'tool' && bytes.includes(MARK) ? readMirrored(bytes) : null,
    traits: kind === 'tool' ? readTraits(bytes, members) : NO_TRAITS,
  });
}

/** One definition with a control character in a string would make clients refuse the whole list. */
function isReadable(bytes: Buffer): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  if (!/[\0-\x1f]/.test(bytes.toString('latin1'))) return true;
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}

function readTraits(bytes: Buffer, members: readonly JsonMember[]): EraTraits {
  const output = members.find(({ key }) => key === 'outputSchema');
  const wrapsOutput =
    output !== undefined && isAt(bytes, output.start, '{') && allowsNonObjects(bytes, output.start, output.end);
  const hasExecution = members.some(({ key }) => key === 'execution');
  if (!hasExecution) return wrapsOutput ? { ...NO_TRAITS, wrapsOutput } : NO_TRAITS;
  return { wrapsOutput, hasExecution, runsAsTask: runsAsTask(bytes) };
}

function readMirrored(bytes: Buffer): readonly MirroredArgument[] | string | null {
  const schema = findMember(bytes, 'inputSchema')!;
  try {
    const mirrored = findMirrored(JSON.parse(bytes.toString('utf8', schema.start, schema.end)));
    return mirrored.length === 0 ? null : mirrored;
  } catch {
    return 'its "inputSchema" is nested too deeply';
  }
}

function isAt(bytes: Buffer, at: number, char: string): boolean {
  return bytes[at] === char.charCodeAt(0);
}

/**
 * The new offer, with the objects of the old offer for unchanged items. Items keep their order and new ones follow: some
 * servers list in another order each time, and every other list would cost clients their prompt cache.
 */
export function reuseItems(previous: Offer | null, next: Offer): Offer {
  if (previous === null) return next;
  const known = new Map(previous.items.map((item) => [`${item.kind} ${item.hash}`, item]));
  const items = next.items.map((item) => known.get(`${item.kind} ${item.hash}`) ?? item);
  const places = new Map(previous.items.map((item, place) => [`${item.kind} ${item.name}`, place]));
  const placeOf = ({ kind, name }: Item) => places.get(`${kind} ${name}`) ?? previous.items.length;
  return { ...next, items: items.sort((a, b) => placeOf(a) - placeOf(b)) };
}

/** What a tool's annotations say; null for what they do not say. */
export interface Annotations {
  readonly readOnlyHint: boolean | null;
  readonly destructiveHint: boolean | null;
  readonly idempotentHint: boolean | null;
  readonly openWorldHint: boolean | null;
}

/** Read once per definition, because policies need them for every agent. */
export const annotationsOf: (item: Item) => Annotations = memo(({ bytes }: Item) => {
  const member = findMember(bytes, 'annotations');
  const members = member === null ? null : readMembers(bytes, member.start, member.end);
  const flag = (name: keyof Annotations) => {
    const found = members?.find(({ key }) => key === name);
    const text = found === undefined ? '' : bytes.toString('latin1', found.start, found.end);
    return text === 'true' ? true : text === 'false' ? false : null;
  };
  return {
    readOnlyHint: flag('readOnlyHint'),
    destructiveHint: flag('destructiveHint'),
    idempotentHint: flag('idempotentHint'),
    openWorldHint: flag('openWorldHint'),
  };
});

export function hashBytes(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('base64');
}
