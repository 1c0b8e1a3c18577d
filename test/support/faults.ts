/**
 * Makes the system refuse what Toolgate asks of it, in the process of the test: a program is not started, a file is not
 * written. Node itself runs as usual, so each error takes the way that it takes on a machine that is out of something.
 * Only calls from src/ are refused, and what tests do themselves is not.
 */
import { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import promises, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

export type Fault = 'EMFILE' | 'ENFILE' | 'EAGAIN' | 'ENOMEM' | 'ENOSPC' | 'EIO' | 'EROFS';

/** What is called, and from where: `writeFile in files.ts viaTemporary < toolsets.ts save`. */
export type Site = string;
export type FaultKind = 'spawn' | 'write';

const FAULTS: Readonly<Record<FaultKind, readonly Fault[]>> = {
  spawn: ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ENOSPC'],
  write: ['ENOSPC', 'EIO', 'EMFILE', 'EROFS', 'ENFILE', 'ENOMEM', 'EAGAIN'],
};

/** The errors that the system may give there. */
export function faultsOf(kind: FaultKind): readonly Fault[] {
  return FAULTS[kind];
}

export interface Injector {
  /** Every place that has called so far. */
  readonly sites: ReadonlyMap<Site, FaultKind>;
  /** From now on these calls fail. Returns how many did, when asked. */
  refuse(fault: (site: Site, kind: FaultKind) => Fault | null): () => number;
  /** From now on nothing fails. */
  allow(): void;
  /** Errors that nobody caught. */
  readonly uncaught: unknown[];
  /** Puts everything back. */
  remove(): void;
}

type Anything = (...args: unknown[]) => unknown;

const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));
const FRAME = /^\s*at (?:async )?(?:(.+?) \()?(?:file:\/\/)?([^()]+?):\d+:\d+\)?$/;
/** Helpers that everybody calls: the site is who called them. */
const HELPERS = /^base\/(files|json-file|lock|start-process|queue|memo)\.ts$/;
const ASYNC = [
  'writeFile',
  'appendFile',
  'mkdir',
  'rename',
  'link',
  'cp',
  'copyFile',
  'utimes',
  'unlink',
  'rm',
  'chmod',
];
const SYNC = [
  'writeFileSync',
  'mkdirSync',
  'mkdtempSync',
  'renameSync',
  'utimesSync',
  'rmSync',
  'unlinkSync',
  'writeSync',
];
const HANDLE = ['write', 'writeFile', 'appendFile', 'sync', 'datasync', 'truncate'] as const;
/** What cannot fail so: removing needs no space and no descriptor. */
const REMOVES = new Set(['unlink', 'rm', 'rmSync', 'unlinkSync']);

export async function injectFaults(): Promise<Injector> {
  const sites = new Map<Site, FaultKind>();
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
  const undo: (() => void)[] = [];
  let chosen: (site: Site, kind: FaultKind) => Fault | null = () => null;
  let hits = 0;

  const faultAt = (what: string, kind: FaultKind): Fault | null => {
    const site = siteOf(what);
    if (site === null) return null;
    sites.set(site, kind);
    const fault = chosen(site, kind);
    if (fault === null || (REMOVES.has(what) && fault !== 'EIO' && fault !== 'EROFS')) return null;
    hits++;
    return fault;
  };
  const replace = (owner: object, name: string, make: (original: Anything) => Anything) => {
    const members = owner as Record<string, Anything>;
    const original = members[name]!;
    members[name] = make(original);
    undo.push(() => {
      members[name] = original;
    });
  };

  // What Node itself calls to start a process. It returns the error code of the system.
  const handle = Object.getPrototypeOf((new ChildProcess() as unknown as { _handle: object })._handle) as object;
  replace(handle, 'spawn', (spawn) => {
    return function (this: unknown, ...args) {
      const fault = faultAt('spawn', 'spawn');
      return fault === null ? spawn.apply(this, args) : -constants.errno[fault];
    };
  });
  for (const name of ASYNC)
    replace(promises, name, (original) => async (...args) => {
      const fault = faultAt(name, 'write');
      if (fault === null) return original(...args);
      if (isHalfWritten(fault) && name.endsWith('File')) await original(args[0], half(args[1]), args[2]);
      throw failure(fault, name, args[0]);
    });
  replace(promises, 'open', (original) => async (path, flags = 'r', ...args) => {
    const isRead = flags === 'r' || (typeof flags === 'number' && (flags & 3) === fs.constants.O_RDONLY);
    const fault = isRead ? null : faultAt('open', 'write');
    if (fault !== null) throw failure(fault, 'open', path);
    return original(path, flags, ...args);
  });
  for (const name of SYNC)
    replace(fs, name, (original) => (...args) => {
      const fault = faultAt(name, 'write');
      if (fault === null) return original(...args);
      if (isHalfWritten(fault) && name === 'writeFileSync') original(args[0], half(args[1]), args[2]);
      throw failure(fault, name, args[0]);
    });
  replace(fs, 'openSync', (original) => (path, flags = 'r', ...args) => {
    const fault = flags === 'r' ? null : faultAt('openSync', 'write');
    if (fault !== null) throw failure(fault, 'open', path);
    return original(path, flags, ...args);
  });
  const opened: FileHandle = await fs.promises.open('/dev/null');
  const prototype = Object.getPrototypeOf(opened) as object;
  await opened.close();
  for (const name of HANDLE)
    replace(
      prototype,
      name,
      (original) =>
        async function (this: unknown, ...args) {
          const fault = faultAt(`handle.${name}`, 'write');
          if (fault === null) return original.apply(this, args);
          // A full disk takes the first bytes, and says how many.
          if (fault === 'ENOSPC' && name === 'write') return original.call(this, half(args[0]));
          throw failure(fault, name, '');
        },
    );
  syncBuiltinESMExports();

  return {
    sites,
    uncaught,
    refuse(fault) {
      hits = 0;
      chosen = fault;
      return () => hits;
    },
    allow() {
      chosen = () => null;
    },
    remove() {
      for (const one of undo) one();
      syncBuiltinESMExports();
      process.off('uncaughtException', note);
      process.off('unhandledRejection', note);
    },
  };
}

/** A disk that is full, or fails, takes the first bytes. */
function isHalfWritten(fault: Fault): boolean {
  return fault === 'ENOSPC' || fault === 'EIO';
}

function half(data: unknown): unknown {
  if (typeof data === 'string') return data.slice(0, data.length >> 1);
  return data instanceof Uint8Array ? data.subarray(0, data.length >> 1) : data;
}

function failure(code: Fault, call: string, path: unknown): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${code}: injected, ${call} '${String(path)}'`);
  return Object.assign(error, { code, errno: -constants.errno[code], syscall: call, path: String(path) });
}

/** Null if the call does not come from src/. */
function siteOf(what: string): Site | null {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 40;
  const stack = new Error().stack ?? '';
  Error.stackTraceLimit = limit;
  const frames: string[] = [];
  for (const line of stack.split('\n')) {
    const [, name = '', file = ''] = FRAME.exec(line) ?? [];
    if (!file.startsWith(SOURCE)) continue;
    const path = file.slice(SOURCE.length);
    frames.push(`${path} ${name}`.trim());
    if (!HELPERS.test(path)) break;
  }
  return frames.length === 0 ? null : `${what} in ${frames.join(' < ')}`;
}
