/** The toolsets of a program. Each is loaded on first use, once for every context, and kept while clients use it. */
import { messageOf } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { memo } from '../base/memo.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean, withoutStop } from '../base/text.ts';
import type { Contribution } from '../catalog/catalog.ts';
import type { Offer } from '../catalog/item.ts';
import type { Config } from '../config/config.ts';
import type { SourceSets } from '../gateway/source-sets.ts';
import { inlineConfig, offerOf } from '../sources/inline.ts';
import { textOf } from '../tools/fault.ts';
import { isItemLike, readItem, wordFor } from '../tools/read-item.ts';
import { nameOf, type RunnableItem, readTool } from '../tools/read-tool.ts';
import { ToolingError, wrongOptions } from './errors.ts';
import { isToolSource, serversOf } from './tool-sources.ts';
import type { ModuleLoader, ToolSetCatalog, ToolSetDefinition } from './types.ts';

/** The context that loaders receive. Equal contexts have equal keys; the key of the program's own context is empty. */
export interface LoaderContext {
  readonly key: string;
  readonly value: unknown;
}

export interface LoadedToolset {
  readonly toolset: string;
  /** The ids of its sources. */
  readonly ids: readonly number[];
}

export interface Toolsets {
  readonly catalog: ToolSetCatalog;
  /** In the order of the catalog. */
  readonly keys: readonly string[];
  /** What is known of a toolset without loading it: its own tools, and those of its loaders if they have run. */
  contributions(key: string, context: LoaderContext): Promise<readonly Contribution[]>;
  /** Throws an `E_VALIDATION` if no toolset has that name. */
  find(name: unknown): { readonly key: string; readonly definition: ToolSetDefinition };
  /**
   * Loads the toolset if it is not loaded yet. Rejects with an `E_INTERNAL` that names the loader; then nothing stays
   * loaded, and the next `take` tries again.
   */
  take(key: string, context: LoaderContext): Promise<LoadedToolset>;
  /**
   * Must be called once for each `take`. A toolset is unloaded when its last user releases it, unless its context is
   * the program's own.
   */
  release(loaded: LoadedToolset): void;
}

export interface ToolsetsOptions {
  readonly catalog: ToolSetCatalog;
  /** The tools that need no loading, by toolset. */
  readonly inline: InlineItems;
  readonly moduleLoaders: Readonly<Record<string, ModuleLoader>>;
  /** The keys that error messages may mention. */
  readonly offered: readonly string[];
  /** Whether the names of tools begin with the key of their toolset. */
  readonly isPrefixed: boolean;
  /** Milliseconds that a call of a function may take without reporting progress. */
  readonly timeout: number;
  readonly config: Config;
  readonly sets: SourceSets;
  readonly events: EventSink;
  /** Removes secrets from the errors of loaders. */
  redact(text: string): string;
}

/** A toolset in one context. */
interface SharedToolset {
  readonly key: string;
  /** Whether its context is the program's own. Then it stays loaded without users. */
  readonly isCommon: boolean;
  readonly loaded: Promise<LoadedToolset>;
  /** How many use it. A user counts as soon as it asks, so that the toolset is not unloaded before it gets it. */
  users: number;
}

/** The items that toolsets list themselves, by the key of the toolset. */
export type InlineItems = ReadonlyMap<string, readonly RunnableItem[]>;

/** Stands for a source that is not open. Not 0: policies do not apply to Toolgate's own tools. */
const NOT_OPEN = 1;

/** The key for the meta-tools themselves. */
const RESERVED = '_meta';
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;

/**
 * Reads the items that need no loading. Rejects if something is wrong that can be seen before loaders run. `reserved`
 * are the names that no tool may have.
 */
export async function readCatalog(
  catalog: ToolSetCatalog,
  moduleLoaders: Readonly<Record<string, ModuleLoader>>,
  reserved: readonly string[],
): Promise<InlineItems> {
  checkLoaders(moduleLoaders);
  checkCatalog(catalog, moduleLoaders);
  const inline = new Map<string, readonly RunnableItem[]>();
  for (const [key, { tools = [], prompts = [], resources = [] }] of Object.entries(catalog)) {
    try {
      inline.set(key, await readItems([...tools, ...prompts, ...resources].filter((one) => !isToolSource(one))));
    } catch (error) {
      throw wrongOptions(`The toolset "${key}": ${messageOf(error)}.`);
    }
    const items = inline.get(key)!;
    const isLike = (one: RunnableItem) => (other: RunnableItem) => other.kind === one.kind && other.name === one.name;
    const twice = items.find((one, index) => items.findIndex(isLike(one)) !== index);
    if (twice !== undefined)
      throw conflict(`The toolset "${key}" has two ${twice.kind}s called "${twice.name}". Rename one.`);
    const taken = items.find(({ kind, name }) => kind === 'tool' && reserved.includes(name))?.name;
    if (taken !== undefined)
      throw conflict(`The toolset "${key}" has a tool called "${taken}", like one of the meta-tools. Rename it.`);
  }
  return inline;
}

function conflict(message: string): ToolingError {
  return new ToolingError('E_TOOL_NAME_CONFLICT', message);
}

function checkLoaders(moduleLoaders: Readonly<Record<string, ModuleLoader>>): void {
  if (!isObject(moduleLoaders)) throw wrongOptions('"moduleLoaders" must be a map of functions: { name: loader }.');
  for (const [name, loader] of Object.entries(moduleLoaders))
    if (typeof loader !== 'function') throw wrongOptions(`The loader "${name}" in "moduleLoaders" must be a function.`);
}

function checkCatalog(catalog: ToolSetCatalog, moduleLoaders: Readonly<Record<string, ModuleLoader>>): void {
  if (typeof catalog !== 'object' || catalog === null)
    throw wrongOptions('"catalog" must be a map of toolsets: { key: { name, description, tools } }.');
  for (const [key, definition] of Object.entries(catalog)) {
    const where = `The toolset ${JSON.stringify(key)}`;
    if (key === RESERVED) throw wrongOptions(`${where} has a reserved key. Rename it.`);
    if (!KEY.test(key))
      throw wrongOptions(`${where}: a key has at most 64 letters, digits and "_", "-", ".". Rename it.`);
    const { name, description, tools = [], prompts = [], resources = [], modules = [] } = definition ?? {};
    if (typeof name !== 'string' || typeof description !== 'string')
      throw wrongOptions(`${where} needs a "name" and a "description".`);
    for (const [kind, list] of Object.entries({ tools, prompts, resources }))
      if (!Array.isArray(list)) throw wrongOptions(`${where}: "${kind}" must be a list of ${kind}.`);
    if (!Array.isArray(modules) || modules.some((one) => typeof one !== 'string'))
      throw wrongOptions(`${where}: "modules" must be a list of the names of loaders.`);
    for (const module of modules)
      if (!Object.hasOwn(moduleLoaders, module))
        throw wrongOptions(
          `${where} names the loader "${module}", which is not in "moduleLoaders".${didYouMean(module, Object.keys(moduleLoaders))}`,
        );
  }
}

export function createToolsets(options: ToolsetsOptions): Toolsets {
  const { catalog, inline, moduleLoaders, offered, isPrefixed, timeout, config, sets, events, redact } = options;
  const keys = Object.keys(catalog);
  /** By toolset and context. */
  const shared = new Map<string, SharedToolset>();
  const sharedOf = new WeakMap<LoadedToolset, SharedToolset>();

  function share(key: string, context: LoaderContext): SharedToolset {
    const loaded = load(key, context);
    const one: SharedToolset = { key: sharedKey(key, context), isCommon: context.key === '', loaded, users: 0 };
    shared.set(one.key, one);
    loaded.then(
      (toolset) => sharedOf.set(toolset, one),
      () => shared.delete(one.key),
    );
    return one;
  }

  async function load(key: string, context: LoaderContext): Promise<LoadedToolset> {
    const { tools = [], modules = [], description } = catalog[key]!;
    const given = (await Promise.all(modules.map((module) => runLoader(key, module, context)))).flat();
    const all = [...tools, ...given];
    const opened: number[] = [];
    try {
      const functions = [...inline.get(key)!, ...(await readItems(given.filter((one) => !isToolSource(one))))];
      const namespace = isPrefixed ? key : '';
      if (functions.length > 0) opened.push(sets.open(inlineConfig(key, namespace, description, timeout), functions));
      const servers = await Promise.all(all.filter(isToolSource).map((source) => serversOf(source, config)));
      for (const [i, server] of servers.flat().entries())
        opened.push(sets.open({ ...server, key: i === 0 ? key : `${key}-${i + 1}`, namespace }));
      await Promise.all(opened.map(requirePresent));
      return { toolset: key, ids: opened };
    } catch (error) {
      for (const id of opened) sets.release(id);
      throw failure(key, messageOf(error), error);
    }
  }

  async function runLoader(key: string, module: string, context: LoaderContext): Promise<readonly unknown[]> {
    try {
      const given = await moduleLoaders[module]!(context.value);
      if (isToolSource(given)) return [given];
      if (!Array.isArray(given)) throw new Error('it did not return a list of tools');
      return given;
    } catch (error) {
      events.emit('failure', { where: `loader "${module}" of the toolset "${key}"`, error });
      throw failure(key, `its loader "${module}" failed: ${messageOf(error)}`, error);
    }
  }

  /** The toolset's own items, as a source of them would contribute them. */
  const ownOf = memo((items: readonly RunnableItem[]): Offer => offerOf(items));

  async function requirePresent(id: number): Promise<void> {
    const { source, config: server } = sets.find(id)!;
    await source.tried;
    if (!source.present) throw new Error(`its server "${server.key}" is not available: ${source.status().detail}`);
  }

  function failure(key: string, why: string, cause?: unknown): ToolingError {
    const text = redact(`The toolset "${key}" could not be loaded: ${withoutStop(why)}. Try again later.`);
    return new ToolingError('E_INTERNAL', text, { cause });
  }

  return {
    catalog,
    keys,
    async contributions(key, context) {
      const loaded = await shared.get(sharedKey(key, context))?.loaded.catch(() => null);
      if (loaded !== undefined && loaded !== null) return sets.contributions(loaded.ids);
      const offer = ownOf(inline.get(key)!);
      return [{ id: NOT_OPEN, key, namespace: isPrefixed ? key : '', offer, present: true }];
    },
    find(name) {
      if (typeof name !== 'string' || name.trim() === '')
        throw new ToolingError('E_VALIDATION', `"name" must be the name of a toolset: one of ${offered.join(', ')}.`);
      const key = name.trim();
      if (!Object.hasOwn(catalog, key)) throw unknownToolset(key, offered);
      return { key, definition: catalog[key]! };
    },
    async take(key, context) {
      const one = shared.get(sharedKey(key, context)) ?? share(key, context);
      one.users++;
      return one.loaded;
    },
    release(loaded) {
      const one = sharedOf.get(loaded)!;
      one.users--;
      if (one.users > 0 || one.isCommon) return;
      shared.delete(one.key);
      for (const id of loaded.ids) sets.release(id);
    },
  };
}

/** `known` are the toolsets that the message may mention. */
export function unknownToolset(name: string, known: readonly string[]): ToolingError {
  return new ToolingError('E_VALIDATION', `There is no toolset "${name}".${didYouMean(name, known)}`);
}

function sharedKey(key: string, context: LoaderContext): string {
  return `${key}\n${context.key}`;
}

/** Throws an error that says which item is wrong, and why. */
async function readItems(given: readonly unknown[]): Promise<RunnableItem[]> {
  const items: RunnableItem[] = [];
  for (const [index, one] of given.entries()) {
    if (!isObject(one)) throw new Error(`its tool ${index + 1} is not an object`);
    const word = isItemLike(one) ? wordFor(one) : 'tool';
    const name = nameOf(one, '');
    if (name === '') throw new Error(`its ${word} ${index + 1} has no name`);
    try {
      items.push(await (isItemLike(one) ? readItem(one, name, '') : readTool(one, name, '')));
    } catch (error) {
      throw new Error(`its ${word} "${name}": ${withoutStop(textOf(error))}`);
    }
  }
  return items;
}
