/** What one server offers, as the server itself lists it. */
import { createHash } from 'node:crypto';
import { decodeString, findMember, readElements, readMembers, type Span } from '../protocol/json.ts';

export type Kind = 'tool' | 'resource' | 'template' | 'prompt';

export const KINDS: readonly Kind[] = ['tool', 'resource', 'template', 'prompt'];

/** One definition, kept as the bytes the server sent. */
export interface Item {
  readonly kind: Kind;
  /** What identifies it on its server: the name of a tool or prompt, the URI of a resource, the pattern of a template. */
  readonly name: string;
  readonly description: string;
  readonly bytes: Buffer;
  /** Where the identifying string stands in `bytes`. */
  readonly nameSpan: Span;
  readonly hash: string;
}

export interface Offer {
  readonly items: readonly Item[];
  /** What went wrong while listing, each a sentence. */
  readonly problems: readonly string[];
}

export const EMPTY_OFFER: Offer = { items: [], problems: [] };

interface KindWords {
  readonly method: string;
  /** The member of the list result that holds the definitions. */
  readonly list: string;
  /** The member of a definition that identifies it. */
  readonly identity: string;
}

export const kindWords: Readonly<Record<Kind, KindWords>> = {
  tool: { method: 'tools/list', list: 'tools', identity: 'name' },
  resource: { method: 'resources/list', list: 'resources', identity: 'uri' },
  template: { method: 'resources/templates/list', list: 'resourceTemplates', identity: 'uriTemplate' },
  prompt: { method: 'prompts/list', list: 'prompts', identity: 'name' },
};

/** The definitions on one page of a list result. */
export function readItems(kind: Kind, result: Buffer): Offer {
  const words = kindWords[kind];
  const list = findMember(result, words.list);
  const elements = list === null ? null : readElements(result, list.start, list.end);
  if (elements === null) return { items: [], problems: [`${words.method} answered without a list "${words.list}"`] };
  const items: Item[] = [];
  const problems: string[] = [];
  elements.forEach((element, index) => {
    const item = readItem(kind, result.subarray(element.start, element.end));
    if (item === null)
      problems.push(`${words.method}: entry ${index + 1} has no string "${words.identity}" and was left out`);
    else items.push(item);
  });
  return { items, problems };
}

function readItem(kind: Kind, bytes: Buffer): Item | null {
  const members = readMembers(bytes);
  const identity = kindWords[kind].identity;
  const name = members?.find((member) => member.key === identity);
  if (members === null || name === undefined || bytes[name.start] !== 0x22) return null;
  const text = decodeString(bytes, name.start, name.end);
  if (text === '') return null;
  const description = members.find((member) => member.key === 'description');
  return Object.freeze({
    kind,
    name: text,
    description:
      description !== undefined && bytes[description.start] === 0x22
        ? decodeString(bytes, description.start, description.end)
        : '',
    // A copy of its own: a slice would keep the whole page in memory.
    bytes: Buffer.from(bytes),
    nameSpan: { start: name.start, end: name.end },
    hash: createHash('sha1').update(bytes).digest('base64'),
  });
}

/** The new offer with every unchanged item taken from the old one, so that what did not change is the same object. */
export function reuseItems(previous: Offer | null, next: Offer): Offer {
  if (previous === null) return next;
  const known = new Map(previous.items.map((item) => [`${item.kind} ${item.hash}`, item]));
  return { ...next, items: next.items.map((item) => known.get(`${item.kind} ${item.hash}`) ?? item) };
}
