/**
 * What a tool does and what it is about, for policies and toolsets. Annotations are trusted; the rest is guessed from
 * the name, then from the description. The guess is deterministic: the same tool always has the same category.
 */
import { memo } from '../base/memo.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/text.ts';
import { ANYTHING, DOMAINS, LOOKING, LOSING, RUNNING, THINGS, VERBS } from './category-words.ts';
import type { Entry } from './entry.ts';
import { annotationsOf, type Item } from './item.ts';

/** Changes nothing, changes something, or may lose something. */
export type Effect = 'read' | 'write' | 'destructive';

/** What a tool does, and what it is about. */
export interface Category {
  readonly effect: Effect;
  /** `files`, `database`, `web`, …; `other` if nothing points to one. */
  readonly domain: string;
  /**
   * What the effect was guessed from. If nothing says what a tool does, it counts as writing: at worst, something
   * harmless is hidden.
   */
  readonly by: 'annotations' | 'name' | 'description' | 'nothing';
}

const PREFIX = 'category:';

/** Whether a name in a list means a category. */
export function isCategory(reference: string): boolean {
  return reference.startsWith(PREFIX) || reference.includes(`.${PREFIX}`);
}

/**
 * Whether a reference means the category of a tool: `category:write`, `category:files`, `category:files/write`, or a
 * pattern; for one server: `git.category:write`. Only tools have a category.
 */
export function isOfCategory(reference: string, entry: Entry): boolean {
  if (!isCategory(reference) || entry.kind !== 'tool') return false;
  const { server, wanted } = parse(reference);
  if (server !== null && ![entry.sourceKey, entry.namespace].some((name) => matchesPattern(server, name))) return false;
  const { effect, domain, by } = categoryOf(entry);
  return (
    [effect, domain, `${domain}/${effect}`].some((one) => matchesPattern(wanted, one)) ||
    (by === 'nothing' && wanted === 'unknown')
  );
}

function parse(reference: string): { readonly server: string | null; readonly wanted: string } {
  const at = reference.startsWith(PREFIX) ? 0 : reference.indexOf(`.${PREFIX}`) + 1;
  return { server: at === 0 ? null : reference.slice(0, at - 1), wanted: reference.slice(at + PREFIX.length) };
}

/** What is wrong with a name that means a category; null if nothing is. */
export function categoryProblem(reference: string): string | null {
  if (!isCategory(reference)) return null;
  const { wanted } = parse(reference);
  const parts = wanted.split('/');
  const isKnown = parts.length === 2 ? isDomain(parts[0]!) && isEffect(parts[1]!) : CATEGORIES.includes(wanted);
  if (isKnown || (parts.length <= 2 && isPattern(wanted))) return null;
  const hint = didYouMean(wanted, CATEGORIES) || ` There are ${CATEGORIES.join(', ')}.`;
  return `there is no category "${wanted}".${hint}`;
}

const isDomain = (name: string) => isPattern(name) || name === 'other' || Object.hasOwn(DOMAINS, name);
const isEffect = (name: string) => isPattern(name) || Object.hasOwn(VERBS, name);

/** Everything that may follow `category:`. */
export const CATEGORIES: readonly string[] = [
  'read',
  'write',
  'destructive',
  'unknown',
  ...Object.keys(DOMAINS),
  'other',
];

/** A tool with its server. */
type OwnedItem = Pick<Entry, 'sourceKey' | 'namespace' | 'item'>;

/**
 * The category of a tool, from its annotations, name and description. Computed once per tool, because policies need it
 * for every agent.
 */
export const categoryOf: (entry: OwnedItem) => Category = memo((entry: OwnedItem) => ({
  ...effectOf(entry.item, entry),
  domain: domainOf(entry),
}));

function effectOf(item: Item, { sourceKey, namespace }: OwnedItem): Pick<Category, 'effect' | 'by'> {
  const { readOnlyHint, destructiveHint } = annotationsOf(item);
  if (readOnlyHint === true) return { effect: 'read', by: 'annotations' };
  if (destructiveHint === true) return { effect: 'destructive', by: 'annotations' };
  const { effect, by } = guess(item, `${sourceKey} ${namespace}`);
  // Annotations overrule a guess that contradicts them.
  if (readOnlyHint === false && effect === 'read') return { effect: 'write', by: 'annotations' };
  if (destructiveHint === false && effect === 'destructive') return { effect: 'write', by: 'annotations' };
  return { effect, by };
}

function guess({ name, description }: Item, server: string): Pick<Category, 'effect' | 'by'> {
  const text = description.slice(0, DESCRIPTION_READ).toLowerCase();
  const own = wordsOf(server);
  const words = wordsOf(name);
  // In `git_log` of the server git, "git" says nothing about the tool.
  const rest = words.filter((word) => !own.includes(word));
  const [named, described] = [verbIn(rest.length > 0 ? rest : words), verbIn(firstSentence(text))];
  const found = named ?? described;
  if (found === null) return { effect: 'write', by: 'nothing' };
  const by = named === null ? 'description' : 'name';
  const all = [...words, ...firstSentence(text)];
  const isRun = all.some((word) => running.has(word)) && all.some((word) => anything.has(word));
  // `list_commands` reads: it does not run what it lists.
  if (isRun && (named === null || named !== 'read' || words.includes('query')))
    return { effect: effectOfRunning(text), by };
  if (found === 'write' && LOSING.some((phrase) => text.includes(phrase))) return { effect: 'destructive', by };
  return { effect: found, by };
}

/** A tool that runs what it is given may do anything, unless its description says that it only reads. */
function effectOfRunning(text: string): Effect {
  return LOOKING.some((phrase) => text.includes(phrase)) ? 'read' : 'destructive';
}

/** The beginning of a description says what a tool does; the rest is about how to use it. */
const DESCRIPTION_READ = 400;

function firstSentence(text: string): string[] {
  return wordsOf(/^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text).slice(0, 24);
}

const toSet = (text: string) => new Set(text.split(' '));
const running = toSet(RUNNING);
const anything = toSet(ANYTHING);
const things = toSet(THINGS);
const EFFECTS: readonly Effect[] = ['destructive', 'write', 'read'];
const effects = new Map(EFFECTS.flatMap((effect) => VERBS[effect].split(' ').map((verb) => [verb, effect] as const)));

/** The effect of the first verb, or the worse of two that are joined by "and" or "or". */
function verbIn(words: readonly string[]): Effect | null {
  for (const [at, word] of words.entries()) {
    const effect = effectOfVerb(word);
    if (effect === null) continue;
    const last = effects.get(words.at(-1)!);
    if (things.has(word) && last !== undefined && last !== 'read') return last;
    const joined = ['and', 'or'].includes(words[at + 1] ?? '') ? effectOfVerb(words[at + 2] ?? '') : null;
    return joined !== null && EFFECTS.indexOf(joined) < EFFECTS.indexOf(effect) ? joined : effect;
  }
  return null;
}

/** What a verb usually does; null if the word is not a known verb. */
export function effectOfVerb(word: string): Effect | null {
  for (const form of formsOf(word)) {
    const effect = effects.get(form);
    if (effect !== undefined) return effect;
  }
  return null;
}

/** `updates`, `updated` and `updating` are forms of `update`. */
function formsOf(word: string): string[] {
  const stem = /^(.{2,}?)(?:ies|es|s|ing|ed)$/.exec(word)?.[1];
  if (stem === undefined) return [word];
  const short = /^(.+?)([bdglmnprt])\2$/.exec(stem);
  return [
    word,
    word.replace(/s$/, ''),
    stem,
    `${stem}e`,
    ...(word.endsWith('ies') ? [`${stem}y`] : []),
    ...(short === null ? [] : [short[1]! + short[2]!]),
  ];
}

/** In lower case: `deleteApiComment` has the words delete, api and comment. */
export function wordsOf(text: string): string[] {
  return text
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

const order = Object.keys(DOMAINS);
const domainsOf = new Map<string, string[]>();
for (const [domain, words] of Object.entries(DOMAINS))
  for (const word of words.split(' ')) domainsOf.set(word, [...(domainsOf.get(word) ?? []), domain]);

/** The name of the server counts most, then the name of the tool, then its description. */
function domainOf({ sourceKey, namespace, item }: OwnedItem): string {
  const scores = new Map<string, number>();
  const count = (words: readonly string[], weight: number) => {
    for (const word of new Set(words)) {
      const form = formsOf(word).find((one) => domainsOf.has(one));
      for (const domain of (form && domainsOf.get(form)) || []) scores.set(domain, (scores.get(domain) ?? 0) + weight);
    }
  };
  count(wordsOf(`${sourceKey} ${namespace}`), 4);
  count(wordsOf(item.name), 2);
  count(firstSentence(item.description.slice(0, DESCRIPTION_READ).toLowerCase()), 1);
  const most = Math.max(...scores.values());
  return order.find((domain) => scores.get(domain) === most) ?? 'other';
}
