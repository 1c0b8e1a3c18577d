/** The names under which items of servers are exposed. */
import { createHash } from 'node:crypto';
import type { Kind } from './item.ts';

/** How names are made. */
export interface Naming {
  /** `join` keeps the characters of a name, `flat` only those that every client takes. */
  readonly names: 'join' | 'flat';
  /** Names longer than this are shortened; null lets them be. */
  readonly nameLimit: number | null;
  /** What stands between a namespace and a name; an underscore unless it is said. */
  readonly separator?: string;
}

export const JOINED: Naming = { names: 'join', nameLimit: null };

const HASH_LENGTH = 8;
/** An underscore and a hash. */
const SUFFIX_LENGTH = 1 + HASH_LENGTH;

function joinName(namespace: string, name: string, { separator = '_' }: Naming): string {
  return namespace === '' ? name : `${namespace}${separator}${name}`;
}

/** What every exposed name of a tool or prompt of that namespace begins with. */
export function prefixOf(namespace: string, naming: Naming): string {
  return respell(joinName(namespace, '', naming), naming);
}

/** The name of an item, if nobody has it yet. URIs are read as such, and only get the prefix. */
export function exposedName(kind: Kind, namespace: string, name: string, naming: Naming): string {
  const joined = joinName(namespace, name, naming);
  if (kind === 'resource' || kind === 'template') return joined;
  const respelled = respell(joined, naming);
  const { nameLimit } = naming;
  // Equal names stay equal when they are shortened.
  return nameLimit === null || respelled.length <= nameLimit
    ? respelled
    : withSuffix(respelled, hash(respelled), nameLimit);
}

/**
 * The name for an item whose own one, `taken`, belongs to another. It is made from what the item is and not from what else
 * there is, so it stays the same while other servers come and go; `attempt` counts up where even that is taken.
 */
export function nextName(taken: string, source: string, name: string, attempt: number, naming: Naming): string {
  const identity = attempt === 0 ? [source, name] : [source, name, attempt];
  return withSuffix(taken, hash(JSON.stringify(identity)), naming.nameLimit);
}

/** Whether a server of that namespace could have an item of that name. */
export function mayBeNamed(exposed: string, namespace: string, naming: Naming): boolean {
  const { nameLimit } = naming;
  const whole = [joinName(namespace, '', naming), prefixOf(namespace, naming)];
  const kept = nameLimit === null ? Number.POSITIVE_INFINITY : nameLimit - SUFFIX_LENGTH;
  return whole.some((prefix) => exposed.startsWith(prefix.length <= kept ? prefix : cut(prefix, kept)));
}

function respell(name: string, { names }: Naming): string {
  return names === 'flat' ? name.replace(/[^A-Za-z0-9_]/gu, '_') : name;
}

function withSuffix(name: string, suffix: string, limit: number | null): string {
  return `${limit === null ? name : cut(name, limit - SUFFIX_LENGTH)}_${suffix}`;
}

/** The first so many characters, without half of a pair at the end. */
function cut(name: string, length: number): string {
  return name.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH);
}
