/** The toolsets of a program: each is loaded when somebody first wants it, once for every context, and kept while it is wanted. */

import { messageOf } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { didYouMean } from '../base/similar.ts';
import type { Config, ServerConfig } from '../config/config.ts';
import { inlineConfig } from '../sources/inline.ts';
import type { SourceSets } from '../sources/source-sets.ts';
import { ToolingError, wrongOptions } from './errors.ts';
import { readTools } from './read-tools.ts';
import { isToolSource, serversOf } from './tool-sources.ts';
import type { ModuleLoader, ToolSetCatalog, ToolSetDefinition, ToolSource } from './types.ts';

/** What loaders are told, and by which key equal ones are known; empty for what all have in common. */
export interface LoaderContext {
  readonly key: string;
  readonly value: unknown;
}

/** A toolset that is there. */
export interface LoadedToolset {
  readonly toolset: string;
  /** Its sources. */
  readonly ids: readonly number[];
}

export interface Toolsets {
  readonly catalog: ToolSetCatalog;
  /** In the order of the catalog. */
  readonly keys: readonly string[];
  /** Throws an `E_VALIDATION` where there is none of that name. */
  find(name: unknown): { readonly key: string; readonly definition: ToolSetDefinition };
  /** Rejects with an `E_INTERNAL` that names the loader; then nothing of it is there, and the next one tries again. */
  take(key: string, context: LoaderContext): Promise<LoadedToolset>;
  /** Whoever took it has it no longer: what only some had goes with the last of them. */
  letGo(loaded: LoadedToolset): void;
}

export interface ToolsetsOptions {
  readonly catalog: ToolSetCatalog;
  readonly moduleLoaders: Readonly<Record<string, ModuleLoader>>;
  /** Those of which clients are told. */
  readonly offered: readonly string[];
  /** Whether the key stands before the names of its tools. */
  readonly isPrefixed: boolean;
  /** Milliseconds that a call of a function may take without a sign of life. */
  readonly timeout: number;
  readonly config: Config;
  readonly sets: SourceSets;
  readonly events: EventSink;
  /** Takes secrets out of what loaders say. */
  redact(text: string): string;
}

/** A toolset in one context. */
interface SharedToolset {
  readonly key: string;
  /** Kept though nobody has it. */
  readonly isCommon: boolean;
  readonly loaded: Promise<LoadedToolset>;
  /** Counted from when it is asked for, so that it does not go before it is there. */
  users: number;
}

/** A toolset for the meta-tools themselves. */
const RESERVED = '_meta';
const KEY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;

/** Throws where something is wrong with it that can be seen beforehand. */
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
  const places = new Map<string, SharedToolset>();
  const placeOf = new WeakMap<LoadedToolset, SharedToolset>();

  function enter(key: string, context: LoaderContext): SharedToolset {
    const loaded = open(key, context);
    const place: SharedToolset = { key: `${key}\n${context.key}`, isCommon: context.key === '', loaded, users: 0 };
    places.set(place.key, place);
    loaded.then(
      (one) => placeOf.set(one, place),
      () => places.delete(place.key),
    );
    return place;
  }

  function failure(key: string, why: string, cause?: unknown): ToolingError {
    const text = redact(`The toolset "${key}" could not be loaded: ${why}. Try again later.`);
    return new ToolingError('E_INTERNAL', text, { cause });
  }

  /** What a loader gives, or why it gave nothing: that names it. */
  async function ask(key: string, module: string, context: LoaderContext): Promise<readonly unknown[]> {
    const loader = Object.hasOwn(moduleLoaders, module) ? moduleLoaders[module] : undefined;
    if (loader === undefined) throw failure(key, `there is no loader "${module}"`);
    try {
      const given = await loader(context.value);
      if (isToolSource(given)) return [given];
      if (!Array.isArray(given)) throw new Error('it gave no list of tools');
      return given;
    } catch (error) {
      events.emit('failure', { where: `loader "${module}" of the toolset "${key}"`, error });
      throw failure(key, `its loader "${module}" failed: ${messageOf(error)}`, error);
    }
  }

  async function open(key: string, context: LoaderContext): Promise<LoadedToolset> {
    const { tools = [], modules = [], description } = catalog[key]!;
    const given = await Promise.all(modules.map((module) => ask(key, module, context)));
    const all = [...tools, ...given.flat()];
    const opened: number[] = [];
    try {
      const functions = await readTools(all.filter((one) => !isToolSource(one)));
      const namespace = isPrefixed ? key : '';
      if (functions.length > 0) opened.push(sets.open(inlineConfig(key, namespace, description, timeout), functions));
      const servers = await Promise.all(all.filter(isToolSource).map((source) => read(source)));
      for (const [i, server] of servers.flat().entries())
        opened.push(sets.open({ ...server, key: i === 0 ? key : `${key}-${i + 1}`, namespace }));
      await Promise.all(opened.map(present));
      return { toolset: key, ids: opened };
    } catch (error) {
      for (const id of opened) sets.release(id);
      throw failure(key, messageOf(error), error);
    }
  }

  async function read(source: ToolSource): Promise<readonly ServerConfig[]> {
    return serversOf(source, config);
  }

  async function present(id: number): Promise<void> {
    const { source, config: server } = sets.find(id)!;
    await source.tried;
    if (!source.present) throw new Error(`its server "${server.key}" is not there: ${source.status().detail}`);
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
      const place = places.get(`${key}\n${context.key}`) ?? enter(key, context);
      place.users++;
      return place.loaded;
    },
    letGo(loaded) {
      const place = placeOf.get(loaded)!;
      place.users--;
      if (place.users > 0 || place.isCommon) return;
      places.delete(place.key);
      for (const id of loaded.ids) sets.release(id);
    },
  };
}
