/**
 * Trust in a configuration that Toolgate finds by itself. A cloned project may bring one, so nothing of it is run before
 * the user has seen what that is. A configuration that the user names is trusted by that.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { findConfig, loadConfig } from '../config/load.ts';
import { type Runnable, runnablesOf } from '../config/runnables.ts';
import { holdUntrusted } from '../gateway/hold-untrusted.ts';
import type { ConfigHolder } from '../gateway/watch.ts';
import { openTrustStore } from '../store/trust.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { canPick, confirm } from './prompts.ts';
import { print, warn } from './terminal.ts';

/** Trusts what is found, for programs that start Toolgate where nobody can answer. */
const TRUST_VARIABLE = 'TOOLGATE_TRUST';

export interface Trust extends ConfigHolder {
  /** What this configuration would run and nobody has trusted yet. */
  missing(config: Config): Promise<readonly Runnable[]>;
  /** Remembers these. Those that cannot be remembered are trusted until the process ends. */
  accept(config: Config, runnables: readonly Runnable[]): Promise<void>;
  /** Shows what is missing and asks for it, if a person can answer. Rejects if the answer is no. */
  ask(config: Config): Promise<void>;
}

export function openTrust(options: Options, io: CommandIo, isGiven = isTrustGiven(options, io)): Trust {
  const store = openTrustStore(io.env);
  const accepted = new Set<string>();
  /** What is dropped into a place that was trusted, or empty at the start, is put there by the user. */
  let servesDropped = Boolean(io.env.DATA_DIR);

  const isTrusted = () => isGiven || findConfig(loadOptions(options, io)).isNamed;

  async function missing(config: Config): Promise<readonly Runnable[]> {
    if (config.file === null || isTrusted()) return [];
    const known = await store.read(plainPath(config.file));
    const all = runnablesIn(config, io).filter(({ hash }) => !known.has(hash) && !accepted.has(hash));
    servesDropped ||= all.every(({ key }) => key !== null);
    return servesDropped ? all.filter(({ key }) => key !== null) : all;
  }

  async function accept(config: Config, runnables: readonly Runnable[]): Promise<void> {
    const hashes = runnables.map(({ hash }) => hash);
    for (const hash of hashes) accepted.add(hash);
    try {
      await store.add(plainPath(config.file ?? ''), hashes);
    } catch (error) {
      warn(`this could not be remembered, and will be asked again: ${messageOf(error)}`, io);
    }
  }

  return {
    file: isGiven ? null : store.path,
    missing,
    accept,
    async hold(config) {
      const all = await missing(config);
      if (all.length === 0) return config;
      const held = new Set(all.flatMap(({ key }) => key ?? []));
      const dropped = all.some(({ key }) => key === null) ? droppedIn(config) : null;
      return holdUntrusted(config, held, dropped, adviceFor(config));
    },
    async ask(config) {
      if (!canPick(io)) return;
      const all = await missing(config);
      if (all.length === 0) return;
      io.stderr.write(`${questionText(config, all)}\n`);
      if (!(await confirm('Trust this, and run it from now on?', io)))
        throw new GatewayError('cancelled', 'Nothing was started.');
      await accept(config, all);
    },
  };
}

function isTrustGiven(options: Options, { env }: CommandIo): boolean {
  return options.trust === true || /^(1|true|yes|on)$/i.test(env[TRUST_VARIABLE] ?? '');
}

function runnablesIn(config: Config, io: CommandIo): Runnable[] {
  const place = toolsFolder(config.dataDir);
  return runnablesOf(config, plainPath(config.file ?? ''), plainPath(place), droppedIn(config), io.cwd());
}

/** The names of the folders in the tools folder of the data folder. */
function droppedIn({ dataDir }: Config): string[] {
  const place = toolsFolder(dataDir);
  try {
    return readdirSync(place)
      .filter((name) => !name.startsWith('.') && statSync(join(place, name), { throwIfNoEntry: false })?.isDirectory())
      .sort();
  } catch {
    return [];
  }
}

/** The path without links; as it is if there is nothing. */
function plainPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function adviceFor({ file }: Config): string {
  return `to see and trust it, run "toolgate trust" in ${dirname(file ?? '')}`;
}

function questionText({ file }: Config, all: readonly Runnable[]): string {
  return [
    `Toolgate found ${file ?? ''}. You have not trusted it yet. It would run:`,
    '',
    ...all.map(({ text }) => `  ${text.replaceAll('\n', '\n  ')}`),
    '',
  ].join('\n');
}

/** A folder that the user creates is trusted, unless there are others that nobody has looked at. */
export async function trustCreated<T>(options: Options, io: CommandIo, create: () => Promise<T>): Promise<T> {
  const config = await loadConfig(loadOptions(options, io));
  const isFirst = droppedIn(config).length === 0;
  const created = await create();
  if (isFirst) {
    const trust = openTrust(options, io, false);
    const missing = await trust.missing(config);
    const folders = missing.filter(({ key }) => key === null);
    if (folders.length > 0) await trust.accept(config, folders);
  }
  return created;
}

export const trust = withVerbs('trust', { add, remove });

async function add(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  if (findConfig(loadOptions(options, io)).isNamed)
    return print(
      `${config.file} is named, with --config, TOOLGATE_CONFIG or DATA_DIR. That is enough to trust it.`,
      io,
    );
  const opened = openTrust(options, io, false);
  const all = await opened.missing(config);
  if (all.length === 0) return print(`Everything that ${config.file} runs is trusted.`, io);
  io.stderr.write(`${questionText(config, all)}\n`);
  if (options.yes !== true && !(await confirm('Trust this?', io))) {
    io.stderr.write('Nothing was trusted.\n');
    return 1;
  }
  await opened.accept(config, all);
  return print(`Trusted ${counted(all.length, 'entry', 'entries')} of ${config.file}. A running gateway notices.`, io);
}

async function remove(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { file } = findConfig(loadOptions(options, io));
  const was = await openTrustStore(io.env).remove(plainPath(file));
  return print(was ? `${file} is not trusted any more, from the next start on.` : `${file} was not trusted.`, io);
}
