/**
 * What the tools of a namespace keep for one client: for a session, or for an agent without sessions. It is kept here
 * and not in the worker, so that it outlives an edit of the tools, and both languages of a folder share it.
 */
import { isObject } from '../base/objects.ts';
import type { ClientChannel } from '../protocol/contract.ts';

/** Bounds for one client and namespace. */
const MOST_KEYS = 1_000;
const MOST_CHARACTERS = 1024 * 1024;

/** Values as JSON, by key. */
interface SessionState {
  readonly values: Map<string, string>;
  size: number;
}

/** Forgotten with the client: nothing else refers to its channel. */
const states = new WeakMap<ClientChannel, Map<string, SessionState>>();

export const STATE_METHODS: ReadonlySet<string> = new Set(['state/get', 'state/set', 'state/delete']);

/** Carries out a request about the state. Throws an error for the tool if it is refused. */
export function useState(client: ClientChannel | null, namespace: string, method: string, params: unknown): unknown {
  const { key, value } = isObject(params) ? params : {};
  if (typeof key !== 'string' || key === '') throw new Error('The key of a state is a text that is not empty.');
  if (client === null) throw new Error('This call has no client, so no state can be kept for it.');
  if (method === 'state/get') {
    const known = states.get(client)?.get(namespace)?.values.get(key);
    return known === undefined ? {} : { value: JSON.parse(known) };
  }
  const state = stateOf(client, namespace);
  const before = state.values.get(key);
  const rest = state.size - (before === undefined ? 0 : key.length + before.length);
  if (method === 'state/delete') {
    state.values.delete(key);
    state.size = rest;
    return {};
  }
  const json = JSON.stringify(value ?? null);
  const size = rest + key.length + json.length;
  if (size > MOST_CHARACTERS)
    throw new Error(`The state of a session has at most ${MOST_CHARACTERS} characters; with "${key}" it has ${size}.`);
  if (before === undefined && state.values.size >= MOST_KEYS)
    throw new Error(`The state of a session has at most ${MOST_KEYS} keys. Delete some, or use fewer.`);
  state.values.set(key, json);
  state.size = size;
  return {};
}

function stateOf(client: ClientChannel, namespace: string): SessionState {
  const all = states.get(client) ?? new Map<string, SessionState>();
  states.set(client, all);
  const known = all.get(namespace) ?? { values: new Map(), size: 0 };
  all.set(namespace, known);
  return known;
}
