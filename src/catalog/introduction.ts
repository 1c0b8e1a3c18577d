/** What sources say about themselves, and the instructions for models that are made of it. */
import { cutText, fitLines } from '../base/fit.ts';
import type { Owner } from './entry.ts';
import type { Offer } from './item.ts';
import { type Naming, prefixOf } from './names.ts';

/** The resource in which Toolgate itself describes a catalog. No server can have it. */
export const CATALOG_URI = 'toolgate://catalog';

/** What a source says about itself. */
export interface Introduction {
  readonly key: string;
  readonly namespace: string;
  /** The beginning of the names of its tools; empty if they have none. */
  readonly prefix: string;
  /** What it is for, as the configuration says; may be empty. */
  readonly description: string;
  /** What the server says that it is; may be empty. */
  readonly about: string;
  /** Its instructions for models; may be empty. */
  readonly instructions: string;
}

/** The most that one server may say: models read all of it in every conversation. */
const MOST = 8_000;

export function introductionOf(
  { key, namespace, offer, description = '' }: Owner & { readonly offer: Offer; readonly description?: string },
  naming: Naming,
): Introduction {
  const { about = '', instructions } = offer;
  const text = instructions.trim();
  return {
    key,
    namespace,
    prefix: prefixOf(namespace, naming),
    description: description.trim(),
    about: about.trim(),
    instructions: text.length <= MOST ? text : `${text.slice(0, MOST)}…`,
  };
}

/** Below this length a cut text says nothing. */
const SHORTEST = 60;

/**
 * The instructions for models: `own`, which is not cut if it fits, then those of each server under a heading. If they need more
 * characters than `room`, those of servers are cut evenly.
 */
export function instruct(introductions: readonly Introduction[], own: string, room: number): string {
  const text = join([own, ...sectionsOf(introductions).map(({ head, text }) => `${head}\n\n${text}`)]);
  if (text.length <= room) return text;
  const first = join([own, REST]);
  const left = room - first.length - (first === '' ? 0 : SEPARATOR.length);
  const cut = fitLines(sectionsOf(introductions), {
    room: left,
    joint: SEPARATOR,
    separator: SEPARATOR,
    shortest: SHORTEST,
    more: (count) => `# ${count} more servers`,
  });
  return cutText(join([first, cut]), room);
}

/** Whether they are cut. */
export function isInstructionCut(introductions: readonly Introduction[], own: string, room: number): boolean {
  return instruct(introductions, own, Number.POSITIVE_INFINITY).length > room;
}

const REST = `Instructions of servers that end with "…" are cut. They are whole in the resource ${CATALOG_URI}.`;
const SEPARATOR = '\n\n';

function join(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(SEPARATOR);
}

function sectionsOf(introductions: readonly Introduction[]): { readonly head: string; readonly text: string }[] {
  return introductions
    .filter(({ instructions }) => instructions !== '')
    .map((one) => ({ head: headingOf(one), text: one.instructions }));
}

export function headingOf({ key, prefix }: Introduction): string {
  return prefix === '' ? `# Server "${key}"` : `# Server "${key}" (its names begin with "${prefix}")`;
}
