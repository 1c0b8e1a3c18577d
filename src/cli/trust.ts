/**
 * Trust in a configuration that Toolgate finds by itself. A cloned project may bring one, so nothing of it is run before
 * the user has seen what that is. A configuration that the user names is trusted by that.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { findConfig } from '../config/find.ts';
import { loadConfig } from '../config/load.ts';
import { type FoundCredentials, type Runnable, runnablesOf } from '../config/runnables.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { holdCredentials, holdUntrusted } from '../gateway/hold-untrusted.ts';
import type { ConfigHolder } from '../gateway/watch.ts';
import { openAgentStore } from '../store/agents.ts';
import { openTrustStore } from '../store/trust.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { canPick, confirm } from './prompts.ts';
import { print, warn } from './terminal.ts';
import { isTrustGiven } from './trust-given.ts';

export interface Trust extends ConfigHolder {
  /** What this configuration would run and nobody has trusted yet. */
  missing(config: Config): Promise<readonly Runnable[]>;
  /** Remembers these. Those that cannot be remembered are trusted until the process ends. */
  accept(config: Config, runnables: readonly Runnable[]): Promise<void>;
  /** What to do before something that is added to this configuration runs; null if it is trusted as a whole. */
  advice(config: Config): string | null;
  /** The configuration in force, with the credentials held back that nobody trusts now. */
  judge(config: Config): Promise<Config>;
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
    const all = (await runnablesNow(config, io)).filter(({ hash }) => !known.has(hash) && !accepted.has(hash));
    servesDropped ||= !all.some(isDropped);
    return servesDropped ? all.filter((one) => !isDropped(one)) : all;
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
    advice: (config) => (isTrusted() ? null : adviceFor(config)),
    async hold(config) {
      return holdUntrusted(config, await missing(config), droppedIn(config), adviceFor(config));
    },
    async judge(config) {
      if (config.file === null || isTrusted()) return config;
      // If the trust of this user cannot be read, nothing is trusted.
      const all = await missing(config).catch(() => runnablesNow(config, io));
      return holdCredentials(config, all, adviceFor(config));
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

/** Judges credentials that change while the gateway runs. */
export function followTrust(gateway: Gateway, { judge }: Trust): { close(): void } {
  return { close: gateway.addApplier({ name: 'trust in credentials', judge }) };
}

function runnablesIn(config: Config, io: CommandIo, credentials: FoundCredentials): Runnable[] {
  const place = toolsFolder(config.dataDir);
  return runnablesOf(config, plainPath(config.file ?? ''), plainPath(place), droppedIn(config), io.cwd(), credentials);
}

function isDropped({ subject }: Runnable): boolean {
  return subject.kind === 'dropped';
}

const NO_CREDENTIALS: FoundCredentials = { tokens: [], authorities: null };

/** A file that cannot be read lets nobody in. */
async function credentialsIn({ agents, dataDir, http }: Config): Promise<FoundCredentials> {
  const stored =
    (await openAgentStore(dataDir)
      .read()
      .catch(() => null)) ?? [];
  const file = http.tls?.clients?.ca;
  return {
    tokens: [
      ...agents.flatMap(({ name, tokens }) => tokens.map((one) => ({ agent: name, sha256: one }))),
      ...stored.flatMap(({ name, tokens }) => tokens.map((one) => ({ agent: name, sha256: one.sha256 }))),
    ],
    authorities:
      file === undefined
        ? null
        : await readFile(file).then(
            (bytes) => sha256(bytes),
            () => null,
          ),
  };
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

/** The path without links, also of a file that will be written. */
export function plainPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(plainPath(folder), basename(path));
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

/**
 * What the user adds is trusted by that, and nothing else: servers, tokens and folders of tools that are there after
 * `act` and were not there before. The first folder of tools is trusted too, unless there are others that nobody has
 * looked at.
 */
export async function trustAdded<T>(options: Options, io: CommandIo, act: () => Promise<T>): Promise<T> {
  const before = await loadConfig(loadOptions(options, io));
  const known = new Set((await runnablesNow(before, io)).map(({ hash }) => hash));
  const done = await act();
  const config = await loadConfig(loadOptions(options, io));
  const opened = openTrust(options, io, false);
  const added = (await opened.missing(config)).filter(({ hash }) => !known.has(hash));
  if (added.length > 0) await opened.accept(config, added);
  return done;
}

async function runnablesNow(config: Config, io: CommandIo): Promise<Runnable[]> {
  return runnablesIn(config, io, await credentialsIn(config));
}

/**
 * Trust in the servers that a person adds by a command, for `beforeWrite` of an edit. Nothing else of the file is trusted
 * by that.
 */
export function trustServers(keys: readonly string[], io: CommandIo): (config: Config) => Promise<void> {
  return async (config) => {
    const added = runnablesIn(config, io, NO_CREDENTIALS).filter(
      ({ subject }) => subject.kind === 'server' && keys.includes(subject.key),
    );
    const hashes = added.map(({ hash }) => hash);
    await openTrustStore(io.env)
      .add(plainPath(config.file ?? ''), hashes)
      .catch((error) => warn(`that you trust it could not be remembered, and will be asked: ${messageOf(error)}`, io));
  };
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
