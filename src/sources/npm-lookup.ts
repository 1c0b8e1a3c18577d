/**
 * Asks the registry what packages without exact versions stand for now, as `npx` does at every start. One process with
 * npm's own code answers for all servers with the same settings of npm (`bin/npm-lookup.mjs`): an `npx` of its own for
 * each would cost more than the server.
 *
 * The process has only its pipes to the gateway, so it ends with it, however that ends.
 */
import type { ChildProcess } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { getOrMake } from '../base/memo.ts';
import { toObject } from '../base/objects.ts';
import { ownFile } from '../base/own-files.ts';
import { startProcess } from '../base/start-process.ts';

/** What decides which registry npm asks, and how. */
export interface NpmSettings {
  /** The path of `npx` or `npm`. */
  readonly runner: string;
  readonly settings: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The part of the environment that npm depends on. */
  readonly deciding: Readonly<Record<string, string>>;
}

interface LookupProcess {
  ask(packages: readonly string[]): Promise<readonly string[] | null>;
}

/** In milliseconds. Then `npx` itself is asked. It waits longer, and says what is wrong. */
const LONGEST = 15_000;
/** How long a process waits for further questions: servers start in turns. */
const IDLE = 3_000;

/** Shared by all gateways of this process, as npm's cache is. */
const processes = new Map<string, LookupProcess>();

/** The version and checksum of each package, as one text; null if they could not be found out. */
export async function lookUp(npm: NpmSettings, packages: readonly string[]): Promise<readonly string[] | null> {
  const { runner, settings, cwd, deciding } = npm;
  const key = sha256(canonicalJson({ runner, settings, cwd, deciding }));
  try {
    return await getOrMake(processes, key, () => startLookups(npm, () => processes.delete(key))).ask(packages);
  } catch {
    return null;
  }
}

/** `ended` is called when it takes no more questions. */
function startLookups({ runner, settings, cwd, env }: NpmSettings, ended: () => void): LookupProcess {
  const root = dirname(dirname(realpathSync(runner)));
  const child = startProcess(process.execPath, [ownFile('bin/npm-lookup.mjs'), root, ...settings], {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const waiting = new Map<number, (contents: readonly string[] | null) => void>();
  let last = 0;
  let idle: NodeJS.Timeout | undefined;

  const settle = (id: number, contents: readonly string[] | null) => {
    waiting.get(id)?.(contents);
    waiting.delete(id);
    if (waiting.size > 0) return;
    clearTimeout(idle);
    idle = setTimeout(close, IDLE).unref();
  };
  const close = () => {
    ended();
    clearTimeout(idle);
    for (const id of waiting.keys()) waiting.get(id)?.(null);
    waiting.clear();
    child.stdin?.end();
  };
  letExit(child);
  child.once('error', close);
  child.once('exit', close);
  // Loaded here: most gateways look nothing up.
  const { createInterface } = process.getBuiltinModule('node:readline');
  createInterface(child.stdout!).on('line', (line) => {
    const { id, contents } = parsed(line);
    settle(Number(id), Array.isArray(contents) ? contents.map(String) : null);
  });
  return {
    ask(packages) {
      const id = ++last;
      clearTimeout(idle);
      child.stdin!.write(`${JSON.stringify({ id, packages })}\n`);
      return new Promise((resolve) => {
        const timer = setTimeout(() => settle(id, null), LONGEST);
        waiting.set(id, (contents) => {
          clearTimeout(timer);
          resolve(contents);
        });
      });
    },
  };
}

/** Empty if it is not ours: npm may print something of its own. */
function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return toObject(JSON.parse(line));
  } catch {
    return {};
  }
}

/** It must not keep this process alive. */
function letExit(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) (pipe as Socket | null)?.unref();
}
