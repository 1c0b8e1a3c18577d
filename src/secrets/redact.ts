/**
 * Takes secrets out of text by their value, wherever they stand. All values are looked for at once: a table tells for two
 * characters how far the next place is at which one of them could end, so most of a text is skipped (after Wu and Manber).
 */
import { formsOf, SHORTEST } from './forms.ts';

export const REDACTED = '[redacted]';

/** Takes secrets out of texts. */
export interface Redactor {
  redact(text: string): string;
  /** From here on these are secret too. */
  learn(values: Iterable<string>): void;
}

/** More than any configuration has; beyond it what was learnt first is forgotten, so that changing for ever does not fill the memory. */
const MOST = 20_000;

/** Takes these values, in every encoding in which they get around, out of texts. */
export function createRedactor(values: Iterable<string> = []): Redactor {
  const forms = new Set<string>();
  let search: Search | null = null;

  function learn(more: Iterable<string>): void {
    let isNews = false;
    for (const value of more)
      for (const form of formsOf(value)) {
        // Behind all others, as it was heard last.
        if (!forms.delete(form)) isNews = true;
        forms.add(form);
      }
    if (!isNews) return;
    for (const form of forms) {
      if (forms.size <= MOST) break;
      forms.delete(form);
    }
    search = createSearch([...forms]);
  }

  learn(values);
  return {
    learn,
    redact: (text) => redactForms(search === null || text.length < SHORTEST ? text : searchFor(text, search)),
  };
}

/** Whatever looks like a credential is one, known or not. The expressions are ours, and none of them goes back far. */
const BEARER = /\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}/gi;
const TOKEN = /\btg_[A-Za-z0-9_-]{40,}/g;
const JWT = /\beyJ[A-Za-z0-9_-]{8,1024}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g;

function redactForms(text: string): string {
  let clean = text;
  if (clean.includes('eyJ')) clean = clean.replace(JWT, REDACTED);
  if (clean.includes('tg_')) clean = clean.replace(TOKEN, REDACTED);
  return clean.replace(BEARER, (_, scheme: string) => `${scheme} ${REDACTED}`);
}

export interface Search {
  /** How far to go on from a place that ends in two characters. */
  readonly shifts: Uint8Array;
  /** By the characters that they begin with. */
  readonly groups: ReadonlyMap<string, Group>;
}

/** Forms that begin alike, in order, each with the longest other one that it begins with. */
interface Group {
  readonly forms: readonly string[];
  readonly parents: readonly number[];
  readonly longest: number;
}

const WINDOW = SHORTEST;
const SLOTS = 1 << 14;

function slotOf(first: number, second: number): number {
  return ((first << 7) ^ second) & (SLOTS - 1);
}

export function createSearch(forms: readonly string[]): Search {
  const shifts = new Uint8Array(SLOTS).fill(WINDOW - 1);
  const lists = new Map<string, string[]>();
  for (const form of forms) {
    for (let end = 1; end < WINDOW; end++) {
      const slot = slotOf(form.charCodeAt(end - 1), form.charCodeAt(end));
      shifts[slot] = Math.min(shifts[slot]!, WINDOW - 1 - end);
    }
    const window = form.slice(0, WINDOW);
    const list = lists.get(window);
    if (list === undefined) lists.set(window, [form]);
    else list.push(form);
  }
  return { shifts, groups: new Map([...lists].map(([window, list]) => [window, createGroup(list.sort())])) };
}

function createGroup(forms: readonly string[]): Group {
  const parents: number[] = [];
  for (const [at, form] of forms.entries()) {
    let parent = at - 1;
    while (parent >= 0 && !form.startsWith(forms[parent]!)) parent = parents[parent]!;
    parents.push(parent);
  }
  return { forms, parents, longest: Math.max(...forms.map(({ length }) => length)) };
}

/** The length of the longest form that the text has at this place; 0 for none. */
function lengthAt(text: string, start: number, { forms, parents, longest }: Group): number {
  const here = text.slice(start, start + longest);
  let low = 0;
  let high = forms.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (forms[middle]! <= here) low = middle + 1;
    else high = middle;
  }
  // Whatever the text begins with here, the last form before it in order begins with it too.
  let at = low - 1;
  while (at >= 0 && !here.startsWith(forms[at]!)) at = parents[at]!;
  return at < 0 ? 0 : forms[at]!.length;
}

/** The text with a mark for each form in it; the very same text where there is none. */
export function searchFor(text: string, { shifts, groups }: Search): string {
  let clean = '';
  /** Up to where the text has been dealt with, and whether that is the end of a mark. */
  let from = 0;
  let marked = false;
  let end = WINDOW - 1;
  while (end < text.length) {
    const shift = shifts[slotOf(text.charCodeAt(end - 1), text.charCodeAt(end))]!;
    if (shift > 0) {
      end += shift;
      continue;
    }
    const start = end - WINDOW + 1;
    // On by one even where something was found: another secret may begin inside of it.
    end++;
    const group = groups.get(text.slice(start, start + WINDOW));
    const length = group === undefined ? 0 : lengthAt(text, start, group);
    if (length === 0) continue;
    // Two that touch leave one mark.
    if (!marked || start > from) clean += `${text.slice(from, start)}${REDACTED}`;
    marked = true;
    from = Math.max(from, start + length);
  }
  return marked ? clean + text.slice(from) : text;
}
