/**
 * `tools.lock`, the file next to the configuration that says what each server offered when a person last approved it. It
 * is meant to be committed, so its keys are sorted, and each definition has its hash: a line that was merged wrongly is
 * found.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { isObject, type JsonObject } from '../base/objects.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import type { PinnedServer, Pins } from '../catalog/pins.ts';

/** What happens to definitions that differ from `tools.lock`. */
export interface PinsConfig {
  /** `warn`: they are reported. `hold`: the approved ones are listed, and cannot be used. `off`: nothing. */
  readonly mode: 'warn' | 'hold' | 'off';
  /** The path of `tools.lock`, which may not exist; null if the configuration is no file. */
  readonly file: string | null;
  readonly servers: Pins;
  /** What the operator should know. */
  readonly notices: readonly string[];
}

/** For a configuration that is no file. */
export const NO_PINS: PinsConfig = { mode: 'off', file: null, servers: {}, notices: [] };

export const LOCK_FILE = 'tools.lock';
const VERSION = 1;
const LISTS: Readonly<Record<Kind, string>> = {
  tool: 'tools',
  resource: 'resources',
  template: 'templates',
  prompt: 'prompts',
};

/** Throws if the file cannot be read and `hold` needs it. */
export async function loadPins(configFile: string, mode: PinsConfig['mode']): Promise<PinsConfig> {
  const file = join(dirname(configFile), LOCK_FILE);
  if (mode === 'off') return { mode, file, servers: {}, notices: [] };
  try {
    const servers = await readLock(file);
    const isMissing = servers === null && mode === 'hold';
    const notices = isMissing ? ['lock = "hold" holds nothing until there is a tools.lock: toolgate lock approve'] : [];
    return { mode, file, servers: servers ?? {}, notices };
  } catch (error) {
    if (mode === 'hold') throw error;
    return { mode, file, servers: {}, notices: [messageOf(error)] };
  }
}

/** Null if there is none. Throws if it is damaged. */
export async function readLock(file: string): Promise<Pins | null> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw damaged(messageOf(error));
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(messageOf(error));
  }
  if (!isObject(value) || !isObject(value.servers)) throw damaged('it is not a list of servers');
  if (value.version !== VERSION) throw damaged(`its version is ${JSON.stringify(value.version)}, not ${VERSION}`);
  return Object.fromEntries(Object.entries(value.servers).map(([key, server]) => [key, readServer(key, server)]));
}

function readServer(key: string, server: unknown): PinnedServer {
  if (!isObject(server)) throw damaged(`server "${key}" is not a map`);
  const items = Object.fromEntries(
    KINDS.map((kind) => {
      const list = server[LISTS[kind]] ?? {};
      if (!isObject(list)) throw damaged(`${LISTS[kind]} of server "${key}" are not a map`);
      return [kind, Object.fromEntries(Object.entries(list).map(([name, pin]) => [name, readPin(key, name, pin)]))];
    }),
  );
  const { instructions = '' } = server;
  if (typeof instructions !== 'string') throw damaged(`the instructions of server "${key}" are not a text`);
  return { instructions, items: items as unknown as PinnedServer['items'] };
}

function readPin(key: string, name: string, pin: unknown): JsonObject {
  if (!isObject(pin) || !isObject(pin.definition)) throw damaged(`"${name}" of server "${key}" has no definition`);
  if (pin.hash !== hashOf(pin.definition))
    throw damaged(`the hash of "${name}" of server "${key}" does not fit its definition`);
  return pin.definition;
}

function damaged(why: string): GatewayError {
  return new GatewayError(
    'config_invalid',
    `${LOCK_FILE} cannot be used: ${why}. Restore it, or delete it and approve again: toolgate lock approve`,
  );
}

function hashOf(definition: JsonObject): string {
  return `sha256-${sha256(canonicalJson(definition))}`;
}

export async function writeLock(file: string, pins: Pins): Promise<void> {
  const servers = sorted(pins, ({ instructions, items }) => ({
    ...(instructions !== '' && { instructions }),
    ...Object.fromEntries(
      KINDS.flatMap((kind) => {
        const list = sorted(items[kind], (definition) => ({
          hash: hashOf(definition),
          definition: JSON.parse(canonicalJson(definition)) as JsonObject,
        }));
        return Object.keys(list).length === 0 ? [] : [[LISTS[kind], list]];
      }),
    ),
  }));
  await replaceFile(file, `${JSON.stringify({ version: VERSION, servers }, null, 2)}\n`);
}

function sorted<Value, Result>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value) => Result,
): Record<string, Result> {
  const names = Object.keys(record).sort();
  return Object.fromEntries(names.map((name) => [name, change(record[name]!)]));
}
