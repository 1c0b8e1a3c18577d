/** The servers of a catalog as a model has to know them: how to name all items of one, how many, and what they are for. */
import { memo } from '../base/memo.ts';
import type { Catalog } from './catalog.ts';
import { effectOfVerb, wordsOf } from './category.ts';
import type { Entry } from './entry.ts';
import type { Introduction } from './introduction.ts';

/** One server of a catalog, or several with the same prefix. */
export interface ServerOverview {
  readonly key: string;
  /** The pattern that names all of its items; null if no pattern names only these. */
  readonly pattern: string | null;
  readonly tools: readonly Entry[];
  /** With templates. */
  readonly resources: readonly Entry[];
  /** In one line; may be empty. */
  readonly purpose: string;
  readonly introductions: readonly Introduction[];
}

/** The servers that have a tool, resource or template in this catalog. Everything is counted over the catalog itself. */
export const overviewOf: (catalog: Catalog) => readonly ServerOverview[] = memo((catalog: Catalog) => {
  const introductions = new Map<string, Introduction[]>();
  for (const one of catalog.introductions) introductions.set(one.key, [...(introductions.get(one.key) ?? []), one]);
  const groups = new Map<string, { keys: Set<string>; prefix: string; tools: Entry[]; resources: Entry[] }>();
  for (const kind of ['tool', 'resource', 'template'] as const) {
    for (const entry of catalog.entries[kind].values()) {
      const { sourceKey: key } = entry;
      const prefix = introductions.get(key)?.[0]?.prefix ?? '';
      const name = prefix === '' ? `key ${key}` : `prefix ${prefix}`;
      const group = groups.get(name) ?? { keys: new Set(), prefix, tools: [], resources: [] };
      groups.set(name, group);
      group.keys.add(key);
      (kind === 'tool' ? group.tools : group.resources).push(entry);
    }
  }
  // In the order of the configuration: a server with resources only would come last otherwise.
  const order = new Map([...introductions.keys()].map((key, i) => [key, i]));
  const place = ({ keys }: { keys: Set<string> }) => Math.min(...[...keys].map((key) => order.get(key) ?? order.size));
  return [...groups.values()]
    .sort((a, b) => place(a) - place(b))
    .map(({ keys, prefix, tools, resources }): ServerOverview => {
      const own = [...keys].flatMap((key) => introductions.get(key) ?? []);
      return {
        key: [...keys][0]!,
        pattern: prefix === '' ? commonPattern(catalog, tools) : `${prefix}*`,
        tools,
        resources,
        purpose: purposeOf(own, tools, [...keys]),
        introductions: own,
      };
    });
});

/** A pattern for the tools of a server without a prefix, if all of their names begin alike, and no others do. */
function commonPattern({ entries, nameOf }: Catalog, tools: readonly Entry[]): string | null {
  const names = tools.map((entry) => nameOf?.(entry) ?? entry.name);
  const [first] = names;
  if (first === undefined || names.length < 2) return null;
  let length = first.length;
  for (const name of names) while (!name.startsWith(first.slice(0, length))) length--;
  const start = /^.*[_.:/-]/.exec(first.slice(0, length))?.[0] ?? '';
  if (start.length < 2) return null;
  const all = [...entries.tool.keys()].filter((name) => name.startsWith(start));
  return all.length === names.length ? `${start}*` : null;
}

/** What one server is for, in one line. `tools` are those of its tools that count. */
export function serverPurpose({ introductions }: Catalog, key: string, tools: readonly Entry[]): string {
  return purposeOf(
    introductions.filter((one) => one.key === key),
    tools,
    [key],
  );
}

/**
 * What a server is for, in one line: what the configuration says, else the server itself, else what its tools are
 * about.
 */
function purposeOf(introductions: readonly Introduction[], tools: readonly Entry[], keys: readonly string[]): string {
  const found = (read: (one: Introduction) => string) =>
    [...new Set(introductions.map(read).filter((text) => text !== ''))].join(' ');
  const own = keys.flatMap(wordsOf);
  const about = found((one) => firstSentence(one.about));
  const news = wordsOf(about).filter((word) => !own.includes(word) && !EMPTY_WORDS.has(word)).length;
  return (
    found((one) => oneLine(one.description)) ||
    (news >= 3 ? about : '') ||
    found((one) => statementIn(one.instructions)) ||
    (news >= 1 ? about : '') ||
    subjectOf(tools, own)
  );
}

/** A title with only such words says nothing about a server. */
const EMPTY_WORDS = new Set(['mcp', 'server', 'official', 'the', 'a', 'for', 'api', 'tool', 'tools']);

/** The first sentence of instructions, if it is about the server. Many begin with a heading or an order to the model. */
function statementIn(instructions: string): string {
  const text = instructions.replace(/^\s*#.*$/gm, '').trim();
  const sentence = firstSentence(text.split(/\n\s*\n/)[0] ?? '');
  return sentence.endsWith(':') ||
    /^(\W|\w+:|(before|when|always|never|if|here|note|important|you|do|please)\b)/i.test(sentence)
    ? ''
    : sentence;
}

function firstSentence(text: string): string {
  const line = oneLine(text);
  return /^.*?[.!?:](?=\s|$)/.exec(line)?.[0] ?? line;
}

/** Line breaks are replaced, so that no text can imitate another line. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ').trim();
}

/** The commonest things and verbs in the names of tools: `entities, relations, nodes (create, delete, read)`. */
function subjectOf(tools: readonly Entry[], own: readonly string[]): string {
  const [first, ...others] = tools;
  if (first === undefined) return '';
  if (others.length === 0) return firstSentence(first.item.description);
  const things = new Map<string, number>();
  const verbs = new Map<string, number>();
  const count = (counts: Map<string, number>, word: string) => {
    const known = [word, `${word}s`, word.replace(/s$/, '')].find((form) => counts.has(form)) ?? word;
    counts.set(known, (counts.get(known) ?? 0) + 1);
  };
  for (const { item } of tools) {
    const words = wordsOf(item.name).filter((word) => !own.includes(word) && !JOINING.has(word) && /^\D./.test(word));
    // Later verbs are nouns more often: `get_search_index`.
    const verb = words.findIndex((word) => effectOfVerb(word) !== null);
    words.forEach((word, at) => {
      count(at === verb ? verbs : things, word);
    });
  }
  const listed = (counts: ReadonlyMap<string, number>, most: number) =>
    [...counts]
      .sort((a, b) => b[1] - a[1])
      .slice(0, most)
      .map(([word]) => word)
      .join(', ');
  const verbText = listed(verbs, 3);
  const thingText = listed(things, 6);
  if (thingText === '' || verbText === '') return thingText || verbText;
  return `${thingText} (${verbText})`;
}

const JOINING = new Set([
  'a',
  'an',
  'the',
  'of',
  'to',
  'by',
  'for',
  'in',
  'on',
  'from',
  'with',
  'and',
  'or',
  'all',
  'my',
]);
