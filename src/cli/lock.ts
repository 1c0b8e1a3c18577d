/** `toolgate lock`: what servers offer now, compared with what a person approved. */
import { GatewayError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/objects.ts';
import { counted } from '../base/text.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import {
  type Deviation,
  type DeviationKind,
  deviationsOf,
  NO_PIN,
  type PinnedServer,
  type Pins,
} from '../catalog/pins.ts';
import { LOCK_FILE, readLock, writeLock } from '../config/pins.ts';
import type { Gateway, ServerOffer } from '../gateway/gateway.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { confirm, hasTerminal } from './prompts.ts';
import { withGateway } from './session.ts';
import { cell, paint, plain, print, printResult, table, warn } from './terminal.ts';

type LockVerb = (state: LockState, names: readonly string[], options: Options, io: CommandIo) => Promise<number>;

const inGateway =
  (verb: LockVerb) =>
  (names: readonly string[], options: Options, io: CommandIo): Promise<number> =>
    withGateway(
      options,
      io,
      async (gateway) => {
        const state = await stateOf(gateway);
        requireKnown(names, state);
        for (const key of state.away) warn(`Server "${key}" is not up, so it cannot be compared.`, io);
        return verb(state, names, options, io);
      },
      { audit: false },
    );

export const lock = withVerbs('lock', {
  status: inGateway(status),
  diff: inGateway(diff),
  approve: inGateway(approve),
});

interface LockState {
  readonly file: string;
  /** Null if there is no lock yet. */
  readonly pins: Pins | null;
  /** What the servers that are up offer. */
  readonly offers: readonly ServerOffer[];
  /** The servers that are not up. */
  readonly away: readonly string[];
}

async function stateOf(gateway: Gateway): Promise<LockState> {
  const { file } = gateway.config.pins;
  if (file === null) throw new GatewayError('usage', 'toolgate lock needs a configuration file.');
  // Folders of tools are the user's own code.
  const own = new Set(gateway.statuses().flatMap(({ key, kind }) => (kind === 'folder' ? key : [])));
  const servers = gateway.offers().filter(({ key }) => !own.has(key));
  return {
    file,
    pins: await readLock(file),
    offers: servers.filter(({ isCurrent }) => isCurrent),
    away: servers.flatMap(({ key, isCurrent }) => (isCurrent ? [] : key)),
  };
}

function requireKnown(names: readonly string[], { offers, pins, away }: LockState): void {
  const servers = [...offers.map(({ key }) => key), ...away, ...Object.keys(pins ?? {})];
  for (const name of names)
    if (!servers.some((key) => name === key || name.startsWith(`${key}.`)))
      throw new GatewayError(
        'usage',
        `There is no server for "${name}". Servers: ${[...new Set(servers)].join(', ')}.`,
      );
}

/** Whether the names mean this item. No names mean everything. */
function isMeant(names: readonly string[], { server, name }: Pick<Deviation, 'server' | 'name'>): boolean {
  return names.length === 0 || names.includes(server) || names.includes(`${server}.${name}`);
}

/** What differs: also whole servers that only one side has. */
function differences({ pins, offers, away }: LockState, names: readonly string[]): Deviation[] {
  const known = pins ?? {};
  const changed = offers.flatMap(({ key, offer }) =>
    deviationsOf(key, offer, Object.hasOwn(known, key) ? known[key] : NO_PIN),
  );
  const present = new Set([...offers.map(({ key }) => key), ...away]);
  const gone = Object.entries(known).flatMap(([server, pinned]) =>
    present.has(server) ? [] : itemsOf(pinned).map(([kind, name, before]) => goneItem(server, kind, name, before)),
  );
  return [...changed, ...gone].filter((one) => isMeant(names, one));
}

function itemsOf({ items }: PinnedServer): (readonly [Kind, string, JsonObject])[] {
  return (Object.keys(items) as Kind[]).flatMap((kind) =>
    Object.entries(items[kind]).map(([name, definition]) => [kind, name, definition] as const),
  );
}

function goneItem(server: string, kind: Kind, name: string, before: JsonObject): Deviation {
  const reasons = ['the configuration no longer has its server'];
  return { server, kind, name, verdict: 'gone', reasons, before, after: null };
}

const COLORS: Readonly<Record<DeviationKind, 'green' | 'yellow' | 'red' | 'dim'>> = {
  new: 'green',
  gone: 'dim',
  compatible: 'green',
  breaking: 'yellow',
  suspicious: 'red',
};

async function status(state: LockState, names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const found = differences(state, names);
  const rows = found.map(({ server, kind, name, verdict, reasons }) => [
    paint(COLORS[verdict], verdict, io),
    cell(kind === 'instructions' ? server : `${server}.${name}`),
    kind,
    plain(reasons.join('; ')),
  ]);
  const json = { file: state.file, exists: state.pins !== null, differences: found.map(withoutDefinitions) };
  printResult(options, json, found.length === 0 ? sameText(state) : `${table(rows)}\n${summary(state, found)}`, io);
  return found.length === 0 ? 0 : 1;
}

function withoutDefinitions({ before: _, after: __, ...rest }: Deviation): object {
  return rest;
}

function sameText({ offers }: LockState): string {
  return `${counted(offers.length, 'server')} as in ${LOCK_FILE}.`;
}

function summary({ pins }: LockState, found: readonly Deviation[]): string {
  if (pins === null) return `There is no ${LOCK_FILE} yet. To approve all of this: toolgate lock approve`;
  const word = found.length === 1 ? 'difference' : 'differences';
  return `${found.length} ${word} from ${LOCK_FILE}. To see them: toolgate lock diff. To approve: toolgate lock approve`;
}

async function diff(state: LockState, names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const found = differences(state, names);
  const text = found.map((one) => diffText(one, io)).join('\n\n');
  printResult(options, found, found.length === 0 ? sameText(state) : text, io);
  return found.length === 0 ? 0 : 1;
}

function diffText({ server, kind, name, verdict, reasons, before, after }: Deviation, io: CommandIo): string {
  const title = kind === 'instructions' ? `instructions of ${cell(server)}` : `${kind} ${cell(`${server}.${name}`)}`;
  const lines = changedLines(before, after).map(([sign, line]) =>
    paint(sign === '-' ? 'red' : 'green', `${sign} ${plain(line)}`, io),
  );
  return [
    `${paint('bold', title, io)}  ${paint(COLORS[verdict], verdict, io)}`,
    ...reasons.map((one) => `  ${plain(one)}`),
    ...lines,
  ].join('\n');
}

/** The members that differ, by path: what is gone, and what is there instead. */
function changedLines(before: Deviation['before'], after: Deviation['after']): (readonly ['-' | '+', string])[] {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  return paths.flatMap((path) => {
    if (old.get(path) === now.get(path)) return [];
    const line = (value: string) => (path === '' ? value : `${path}: ${value}`);
    return [
      ...(old.has(path) ? [['-', line(old.get(path)!)] as const] : []),
      ...(now.has(path) ? [['+', line(now.get(path)!)] as const] : []),
    ];
  });
}

function leavesOf(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (value === null && path === '') return into;
  if (isObject(value) && Object.keys(value).length > 0)
    for (const [key, one] of Object.entries(value)) leavesOf(one, path === '' ? key : `${path}.${key}`, into);
  else if (Array.isArray(value) && value.length > 0)
    for (const [index, one] of value.entries()) leavesOf(one, `${path}[${index}]`, into);
  else into.set(path, JSON.stringify(value));
  return into;
}

async function approve(state: LockState, names: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const found = differences(state, names);
  const suspicious = found.filter(({ verdict }) => verdict === 'suspicious');
  if (suspicious.length > 0 && options.yes !== true) {
    print(suspicious.map((one) => diffText(one, io)).join('\n\n'), io);
    const question = `Approve ${counted(suspicious.length, 'suspicious change')}?`;
    if (!hasTerminal(io))
      throw new GatewayError(
        'usage',
        `${counted(suspicious.length, 'change is', 'changes are')} suspicious. Look at them, and approve them with --yes.`,
      );
    if (!(await confirm(question, io))) return 1;
  }
  const pins = approved(state, found, names);
  await writeLock(state.file, pins);
  const json = { file: state.file, approved: found.map(withoutDefinitions) };
  const servers = counted(Object.keys(pins).length, 'server');
  return printResult(options, json, `${LOCK_FILE} has ${servers}, ${counted(found.length, 'change')} approved.`, io);
}

/** The pins with what was approved. Servers that are not up keep theirs. */
function approved({ pins, offers }: LockState, found: readonly Deviation[], names: readonly string[]): Pins {
  const known = new Map(Object.entries(pins ?? {}));
  // A server that offers nothing has a pin, too: what it offers later is new.
  const meant = offers.flatMap(({ key }) => (names.length === 0 || names.includes(key) ? key : []));
  const keys = new Set([...known.keys(), ...found.map(({ server }) => server), ...meant]);
  const servers = [...keys].map((key) => {
    const changes = found.filter(({ server }) => server === key);
    return [
      key,
      changes.length === 0 ? (known.get(key) ?? NO_PIN) : changed(known.get(key) ?? NO_PIN, changes),
    ] as const;
  });
  const isOffered = (server: string) => offers.some(({ key }) => key === server);
  const isOver = (server: string, pinned: PinnedServer) =>
    !isOffered(server) && itemsOf(pinned).length === 0 && found.some((one) => one.server === server);
  return Object.fromEntries(servers.filter(([key, pinned]) => !isOver(key, pinned)));
}

function changed(pinned: PinnedServer, changes: readonly Deviation[]): PinnedServer {
  const instructions = changes.find(({ kind }) => kind === 'instructions')?.after ?? pinned.instructions;
  const items = Object.fromEntries(
    KINDS.map((kind) => {
      const list = new Map(Object.entries(pinned.items[kind]));
      for (const { name, after } of changes.filter((one) => one.kind === kind))
        if (isObject(after)) list.set(name, after);
        else list.delete(name);
      return [kind, Object.fromEntries(list)];
    }),
  );
  return { instructions: String(instructions), items: items as PinnedServer['items'] };
}
