/** The toolsets of a program. Each is loaded on first use, once for every context, and kept while clients use it. */

import { messageOf } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import type { SourceSets } from '../gateway/source-sets.ts';
import { inlineConfig } from '../sources/inline.ts';
import { textOf } from '../tools/fault.ts';
import { nameOf, type RunnableTool, readTool } from '../tools/read-tool.ts';
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

/** The key for the meta-tools themselves. */
const RESERVED = '_meta';
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;

/** Throws if the catalog is wrong. Finds only what can be seen before anything is loaded. */
export function checkCatalog(catalog: ToolSetCatalog): void {
  if (typeof catalog !== 'object' || catalog === null)
    throw wrongOptions('"catalog" must be a map of toolsets: { key: { name, description, tools } }.');
  for (const [key, definition] of Object.entries(catalog)) {
    const where = `The toolset ${JSON.stringify(key)}`;
    if (key === RESERVED) throw wrongOptions(`${where} has a reserved key. Rename it.`);
    if (!KEY.test(key))
      throw wrongOptions(`${where}: a key has at most 64 letters, digits and "_", "-", ".". Rename it.`);
    const { name, description, tools = [], modules = [] } = definition ?? {};
    if (typeof name !== 'string' || typeof description !== 'string')
      throw wrongOptions(`${where} needs a "name" and a "description".`);
    if (!Array.isArray(tools)) throw wrongOptions(`${where}: "tools" must be a list of tools.`);
    if (!Array.isArray(modules) || modules.some((one) => typeof one !== 'string'))
      throw wrongOptions(`${where}: "modules" must be a list of the names of loaders.`);
  }
}

export function createToolsets(options: ToolsetsOptions): Toolsets {
  const { catalog, moduleLoaders, offered, isPrefixed, timeout, config, sets, events, redact } = options;
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
    const given = await Promise.all(modules.map((module) => runLoader(key, module, context)));
    const all = [...tools, ...given.flat()];
    const opened: number[] = [];
    try {
      const functions = await readTools(all.filter((one) => !isToolSource(one)));
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
    const loader = Object.hasOwn(moduleLoaders, module) ? moduleLoaders[module] : undefined;
    if (loader === undefined) throw failure(key, `there is no loader "${module}"`);
    try {
      const given = await loader(context.value);
      if (isToolSource(given)) return [given];
      if (!Array.isArray(given)) throw new Error('it did not return a list of tools');
      return given;
    } catch (error) {
      events.emit('failure', { where: `loader "${module}" of the toolset "${key}"`, error });
      throw failure(key, `its loader "${module}" failed: ${messageOf(error)}`, error);
    }
  }

  async function requirePresent(id: number): Promise<void> {
    const { source, config: server } = sets.find(id)!;
    await source.tried;
    if (!source.present) throw new Error(`its server "${server.key}" is not available: ${source.status().detail}`);
  }

  function failure(key: string, why: string, cause?: unknown): ToolingError {
    const text = redact(`The toolset "${key}" could not be loaded: ${why}. Try again later.`);
    return new ToolingError('E_INTERNAL', text, { cause });
  }

  return {
    catalog,
    keys,
    find(name) {
      if (typeof name !== 'string' || name.trim() === '')
        throw new ToolingError('E_VALIDATION', `"name" must be the name of a toolset: one of ${offered.join(', ')}.`);
      const key = name.trim();
      if (!Object.hasOwn(catalog, key))
        throw new ToolingError('E_VALIDATION', `There is no toolset "${key}".${didYouMean(key, offered)}`);
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

function sharedKey(key: string, context: LoaderContext): string {
  return `${key}\n${context.key}`;
}

/** Throws an error that says which tool is wrong, and why. */
async function readTools(given: readonly unknown[]): Promise<RunnableTool[]> {
  const tools: RunnableTool[] = [];
  for (const [index, one] of given.entries()) {
    if (!isObject(one)) throw new Error(`its tool ${index + 1} is not an object`);
    const name = nameOf(one, '');
    if (name === '') throw new Error(`its tool ${index + 1} has no name`);
    try {
      tools.push(await readTool(one, name, ''));
    } catch (error) {
      throw new Error(`its tool "${name}": ${textOf(error).replace(/\.$/, '')}`);
    }
  }
  return tools;
}
