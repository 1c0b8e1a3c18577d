/** The names under which items of servers are exposed. */
import { sha256 } from '../base/hash.ts';
import type { Kind } from './item.ts';

/** How exposed names are built. */
export interface Naming {
  /** `join` keeps the characters of a name; `flat` replaces those that some clients refuse. */
  readonly names: 'join' | 'flat';
  /** Longer names are shortened; null for no limit. */
  readonly nameLimit: number | null;
  /** What is between a namespace and a name; an underscore by default. */
  readonly separator?: string;
}

export const JOINED: Naming = { names: 'join', nameLimit: null };

const HASH_LENGTH = 8;
/** An underscore and a hash. */
const SUFFIX_LENGTH = 1 + HASH_LENGTH;

function joinName(namespace: string, name: string, { separator = '_' }: Naming): string {
  return namespace === '' ? name : `${namespace}${separator}${name}`;
}

/** The beginning of every exposed name of a tool or prompt of that namespace. */
export function prefixOf(namespace: string, naming: Naming): string {
  return respell(joinName(namespace, '', naming), naming);
}

/** The name of an item, unless it is taken. URIs only get the prefix. */
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
 * The name for an item whose name, `taken`, belongs to another item. It depends only on the item, so it stays the same
 * while other servers come and go. `attempt` counts up while the result is taken, too.
 */
export function nextName(taken: string, source: string, name: string, attempt: number, naming: Naming): string {
  const identity = attempt === 0 ? [source, name] : [source, name, attempt];
  return withSuffix(taken, hash(JSON.stringify(identity)), naming.nameLimit);
}

/** Whether a server of that namespace could have an item of that name. */
export function mayBeNamed(exposed: string, namespace: string, naming: Naming): boolean {
  return prefixesOf(namespace, naming).some((prefix) => exposed.startsWith(prefix));
}

/** Every exposed name of that namespace begins with one of these: URIs with the first, shortened names too. */
export function prefixesOf(namespace: string, naming: Naming): string[] {
  const { nameLimit } = naming;
  const kept = nameLimit === null ? Number.POSITIVE_INFINITY : nameLimit - SUFFIX_LENGTH;
  const prefixes = [joinName(namespace, '', naming), prefixOf(namespace, naming)];
  return [...new Set(prefixes.map((prefix) => (prefix.length <= kept ? prefix : cut(prefix, kept))))];
}

function respell(name: string, { names }: Naming): string {
  return names === 'flat' ? name.replace(/[^A-Za-z0-9_]/gu, '_') : name;
}

function withSuffix(name: string, suffix: string, limit: number | null): string {
  return `${limit === null ? name : cut(name, limit - SUFFIX_LENGTH)}_${suffix}`;
}

/** The first characters, without half of a surrogate pair at the end. */
function cut(name: string, length: number): string {
  return name.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

function hash(text: string): string {
  return sha256(text).slice(0, HASH_LENGTH);
}
