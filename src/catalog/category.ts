/**
 * What a tool does, and what it is about, where a policy or a toolset wants to know. What the tool says of itself by
 * annotations holds; the rest is guessed from its name, then from its description. The same tool is always the same.
 */

import { isPattern, matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/similar.ts';
import { findMember, readMembers } from '../protocol/json.ts';
import { ANYTHING, DOMAINS, LOOKING, LOSING, RUNNING, THINGS, VERBS } from './category-words.ts';
import type { Entry } from './entry.ts';
import type { Item } from './item.ts';

/** Nothing is changed, something is, or something may be lost. */
export type Effect = 'read' | 'write' | 'destructive';

/** What a tool does, and what it is about. */
export interface Category {
  readonly effect: Effect;
  /** `files`, `database`, `web`, …; `other` where nothing speaks for one. */
  readonly domain: string;
  /** What the effect was told by. By nothing: then it counts as writing. */
  readonly by: 'annotations' | 'name' | 'description' | 'nothing';
}

const PREFIX = 'category:';

/** Whether a name in a list is about categories. */
export function isCategory(reference: string): boolean {
  return reference.startsWith(PREFIX) || reference.includes(`.${PREFIX}`);
}

/** `category:write`, `category:files`, `category:files/write`, or a pattern; of one server: `git.category:write`. Only tools have one. */
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

/** What is wrong with a name in a list, where that is meant for a category; null where nothing is. */
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

/** Everything that `category:` may be followed by. */
export const CATEGORIES: readonly string[] = [
  'read',
  'write',
  'destructive',
  'unknown',
  ...Object.keys(DOMAINS),
  'other',
];

// Definitions do not change, and looking at ten thousand of them for every agent would be felt.
const known = new WeakMap<OwnedItem, Category>();

/** A tool with its server. */
type OwnedItem = Pick<Entry, 'sourceKey' | 'namespace' | 'item'>;

/** The category of a tool, guessed from its annotations, name and description. */
export function categoryOf(entry: OwnedItem): Category {
  const before = known.get(entry);
  if (before !== undefined) return before;
  const category = { ...effectOf(entry.item, entry), domain: domainOf(entry) };
  known.set(entry, category);
  return category;
}

interface Annotations {
  readonly readOnlyHint: boolean | null;
  readonly destructiveHint: boolean | null;
}

/** What the tool says; null for what it does not. */
function saidBy({ bytes }: Item): Annotations {
  const member = findMember(bytes, 'annotations');
  const members = member === null ? null : readMembers(bytes, member.start, member.end);
  const flag = (name: string) => {
    const found = members?.find(({ key }) => key === name);
    const text = found === undefined ? '' : bytes.toString('latin1', found.start, found.end);
    return text === 'true' ? true : text === 'false' ? false : null;
  };
  return { readOnlyHint: flag('readOnlyHint'), destructiveHint: flag('destructiveHint') };
}

function effectOf(item: Item, { sourceKey, namespace }: OwnedItem): Pick<Category, 'effect' | 'by'> {
  const said = saidBy(item);
  if (said.readOnlyHint === true) return { effect: 'read', by: 'annotations' };
  if (said.destructiveHint === true) return { effect: 'destructive', by: 'annotations' };
  const { effect, by } = guess(item, `${sourceKey} ${namespace}`);
  // What it denies of itself bounds the guess.
  if (said.readOnlyHint === false && effect === 'read') return { effect: 'write', by: 'annotations' };
  if (said.destructiveHint === false && effect === 'destructive') return { effect: 'write', by: 'annotations' };
  return { effect, by };
}

function guess({ name, description }: Item, server: string): Pick<Category, 'effect' | 'by'> {
  const text = description.slice(0, LOOKED_AT).toLowerCase();
  const own = wordsOf(server);
  const words = wordsOf(name);
  // `git_log` of the server git: its name says nothing about this tool.
  const rest = words.filter((word) => !own.includes(word));
  const [named, told] = [verbIn(rest.length > 0 ? rest : words), verbIn(firstSentence(text))];
  const found = named ?? told;
  if (found === null) return { effect: 'write', by: 'nothing' };
  const by = named === null ? 'description' : 'name';
  const all = [...words, ...firstSentence(text)];
  const isRun = all.some((word) => running.has(word)) && all.some((word) => anything.has(word));
  // Whoever lists things reads them, whatever the code is called that it runs for it.
  if (isRun && (named === null || named !== 'read' || words.includes('query'))) return { effect: lost(text), by };
  if (found === 'write' && LOSING.some((phrase) => text.includes(phrase))) return { effect: 'destructive', by };
  return { effect: found, by };
}

/** What runs what it is given may do anything, unless it says that it does not. */
function lost(text: string): Effect {
  return LOOKING.some((phrase) => text.includes(phrase)) ? 'read' : 'destructive';
}

/** So much of a description says what a tool does; the rest is about how to use it. */
const LOOKED_AT = 400;

function firstSentence(text: string): string[] {
  return wordsOf(/^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text).slice(0, 24);
}

const toSet = (text: string) => new Set(text.split(' '));
const running = toSet(RUNNING);
const anything = toSet(ANYTHING);
const things = toSet(THINGS);
const EFFECTS: readonly Effect[] = ['destructive', 'write', 'read'];
const effects = new Map(EFFECTS.flatMap((effect) => VERBS[effect].split(' ').map((verb) => [verb, effect] as const)));

/** By the first verb, or the worst of several that are joined. */
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

function effectOfVerb(word: string): Effect | null {
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

/** Small letters: `deleteApiComment` has the words delete, api and comment. */
function wordsOf(text: string): string[] {
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

/** What its server is called says most, then its own name, then what it says of itself. */
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
  count(firstSentence(item.description.slice(0, LOOKED_AT).toLowerCase()), 1);
  const most = Math.max(...scores.values());
  return order.find((domain) => scores.get(domain) === most) ?? 'other';
}
