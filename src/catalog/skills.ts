/**
 * Skills: folders with a SKILL.md and other files, which a server serves as resources (the extension for skills). A skill
 * is kept as a template for its files. So what a policy allows, a toolset names and a model switches on works for skills
 * as for other items, and clients without the extension can read them too. Its entry is passed on byte for byte, because
 * hosts compare files with the sizes and digests in it.
 */
import { memo } from '../base/memo.ts';
import { isObject } from '../base/objects.ts';
import { decodeString, findMember, readElements, type Span, splice, toBytes } from '../protocol/json.ts';
import { SKILL_ENTRY } from '../protocol/meta.ts';
import { elementsOf, type Item, type Listing, readItems } from './item.ts';

export interface Skill {
  /** The URI of its SKILL.md, as its server knows it. */
  readonly uri: string;
  /** What its server says about it, as JSON. */
  readonly entry: Buffer;
}

const FILE = '/SKILL.md';
const ANY_FILE = '/{+file}';

/** The templates of the skills on one page of `skills/list`. */
export function readSkills(result: Buffer): Listing {
  const elements = elementsOf(result, 'skills');
  if (elements === null) return { items: [], problems: ['skills/list answered without a list "skills"'] };
  const items: Item[] = [];
  const problems: string[] = [];
  elements.forEach(({ start, end }, index) => {
    const template = templateOf(result.subarray(start, end));
    const read = typeof template === 'string' ? template : readItems('template', template);
    if (typeof read === 'string') problems.push(`skills/list: entry ${index + 1} was left out: ${read}`);
    else {
      items.push(...read.items);
      problems.push(...read.problems.map((one) => one.replace(/^resources\/templates\/list/, 'skills/list')));
    }
  });
  return { items, problems };
}

/** A list with the template of this skill; or why there is none. */
function templateOf(entry: Buffer): Buffer | string {
  const { uri, frontmatter } = parsed(entry);
  if (typeof uri !== 'string' || !uri.endsWith(FILE) || /[{}]/.test(uri))
    return `it needs a "uri" that ends with "${FILE}", without braces`;
  if (!isObject(frontmatter) || typeof frontmatter.name !== 'string')
    return `${JSON.stringify(uri)} has no "frontmatter" with a "name"`;
  const { name, description } = frontmatter;
  const head = {
    uriTemplate: filesOf(uri),
    name,
    ...(typeof description === 'string' && { description }),
  };
  const members = toBytes(head).subarray(1, -1);
  return Buffer.concat([
    Buffer.from('{"resourceTemplates":[{'),
    members,
    Buffer.from(`,"_meta":{"${SKILL_ENTRY}":`),
    entry,
    Buffer.from('}}]}'),
  ]);
}

function parsed(entry: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(entry.toString());
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function filesOf(uri: string): string {
  return `${uri.slice(0, -FILE.length)}${ANY_FILE}`;
}

/** The skill that this item is the template of; null for every other item. */
export const skillOf: (item: Item) => Skill | null = memo((item: Item) => {
  const { bytes, kind, name } = item;
  if (kind !== 'template' || !name.endsWith(ANY_FILE)) return null;
  const meta = findMember(bytes, '_meta');
  const member = meta === null ? null : findMember(bytes, SKILL_ENTRY, meta.start, meta.end);
  if (member === null) return null;
  const entry = bytes.subarray(member.start, member.end);
  const uri = textAt(entry, findMember(entry, 'uri'));
  // A gateway behind this one names its templates in its own way.
  return uri === null || filesOf(uri) !== name ? null : { uri, entry };
});

/** The entry with something in front of the URI of the skill and of each of its files. */
export function withPrefix({ entry }: Skill, prefix: string): Buffer {
  const list = findMember(entry, 'resources');
  const files = list === null || entry[list.start] !== 0x5b ? [] : (readElements(entry, list.start, list.end) ?? []);
  const uris = [
    findMember(entry, 'uri'),
    ...files.map(({ start, end }) => (entry[start] === 0x7b ? findMember(entry, 'uri', start, end) : null)),
  ].flatMap((span) => {
    const uri = textAt(entry, span);
    return span === null || uri === null ? [] : [{ span, uri }];
  });
  // From the end, so that the positions before it stay right.
  uris.sort((a, b) => b.span.start - a.span.start);
  return uris.reduce((bytes, { span, uri }) => splice(bytes, span, toBytes(prefix + uri)), entry);
}

function textAt(bytes: Buffer, span: Span | null): string | null {
  return span === null || bytes[span.start] !== 0x22 ? null : decodeString(bytes, span.start, span.end);
}
