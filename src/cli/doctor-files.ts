/** What `toolgate doctor` looks at on disk besides the configuration, and how each problem is repaired. */
import { chmod, copyFile, link, mkdir, readdir, readFile, stat, unlink } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { isAbandoned } from '../base/lock.ts';
import { userFolder } from '../base/user-folder.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { approverKeyFile, operatorKeyFile } from '../store/operator.ts';
import { operatorSocketFolder } from '../store/operator-sockets.ts';
import { openSecretStore } from '../store/secrets.ts';
import { openTrustStore } from '../store/trust.ts';

/** Repairs a problem. Resolves to a sentence that says what was done, without a stop. */
export type Repair = () => Promise<string>;

/** A problem with a file that can be repaired without asking. */
export interface Repairable {
  readonly about: string;
  readonly message: string;
  readonly repair: Repair;
}

/** Problems that are in the way of everything else: they are looked for before anything is started. */
export async function repairables(config: Config, env: EnvVars): Promise<Repairable[]> {
  return [
    ...(await openFiles(config, env)),
    ...(await damagedTrust(env)),
    ...(await staleLocks([config.dataDir, join(config.dataDir, 'toolsets'), userFolder(env)])),
    ...(await staleSockets(config)),
  ];
}

/** Files with keys, and files that decide what runs, if others can read or write them. */
async function openFiles({ dataDir, vault }: Config, env: EnvVars): Promise<Repairable[]> {
  if (process.platform === 'win32') return [];
  const files: readonly (readonly [file: string, mask: number, what: string])[] = [
    [openSecretStore(dataDir, vault).file, 0o077, 'secrets'],
    [operatorKeyFile(env), 0o077, 'operator key'],
    [approverKeyFile(env), 0o077, 'approver key'],
    [openTrustStore(env).path, 0o022, 'trust'],
    [join(dataDir, 'agents.json'), 0o022, 'agents'],
  ];
  const found: Repairable[] = [];
  for (const [file, mask, about] of files) {
    const mode = await stat(file).then(
      (one) => one.mode & 0o777,
      () => null,
    );
    if (mode === null || (mode & mask) === 0) continue;
    const verb = (mode & 0o022) === 0 ? 'read' : 'written';
    found.push({
      about,
      message: `${file} can be ${verb} by others (mode ${mode.toString(8).padStart(4, '0')}). Run: chmod 600 ${file}`,
      async repair() {
        await chmod(file, 0o600);
        return `only you can read and write ${file} now`;
      },
    });
  }
  return found;
}

/** Without it nothing is trusted, so it can be set aside: everything has to be trusted again. */
async function damagedTrust(env: EnvVars): Promise<Repairable[]> {
  const { path } = openTrustStore(env);
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null || isJson(text)) return [];
  const message = `${path} is damaged (it is not JSON). Remove it, and trust your configurations again: toolgate trust`;
  return [{ about: 'trust', message, repair: async () => `${path} ${await setAside(path)}` }];
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Locks whose holders ended without releasing them. The next one who wants such a lock has to wait for it. */
async function staleLocks(folders: readonly string[]): Promise<Repairable[]> {
  const found: Repairable[] = [];
  for (const folder of folders)
    for (const name of await readdir(folder).catch(() => [])) {
      if (!name.endsWith('.lock')) continue;
      const path = join(folder, name);
      if (!(await isAbandoned(path))) continue;
      found.push({
        about: 'data folder',
        message: `${path} is the lock of a process that does not run any more. Remove it.`,
        async repair() {
          await unlink(path);
          return `removed ${path}, the lock of a process that does not run any more`;
        },
      });
    }
  return found;
}

/** Sockets that gateways left behind which were killed. */
async function staleSockets(config: Config): Promise<Repairable[]> {
  if (process.platform === 'win32') return [];
  const folder = operatorSocketFolder(config);
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.sock'));
  const dead = await Promise.all(names.map(async (name) => ((await isRefused(join(folder, name))) ? [name] : [])));
  return dead.flat().map((name) => {
    const path = join(folder, name);
    return {
      about: 'data folder',
      message: `${path} is the socket of a gateway that does not run any more. Remove it.`,
      async repair() {
        await unlink(path);
        return `removed ${path}, the socket of a gateway that does not run any more`;
      },
    };
  });
}

function isRefused(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(socket);
    connection.once('connect', () => {
      connection.destroy();
      resolve(false);
    });
    connection.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'));
  });
}

/** Gives a damaged file another name next to its own, so that nothing is lost and nothing reads it any more. */
export async function setAside(file: string): Promise<string> {
  for (let count = 1; ; count++) {
    const aside = `${file}.damaged${count === 1 ? '' : `-${count}`}`;
    try {
      // Unlike a rename, a link never replaces what was set aside before.
      await link(file, aside);
      await unlink(file);
      return `set aside as ${aside}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** Copies files into a new folder `backup/TIME` of the data folder before they are changed. Resolves to that folder. */
export async function backUp(files: readonly string[], dataDir: string): Promise<string> {
  const folder = join(dataDir, 'backup', new Date().toISOString().replace(/[:.]/g, '-'));
  for (const file of files) {
    const inside = relative(dataDir, file);
    const copy = join(folder, inside.startsWith('..') || isAbsolute(inside) ? basename(file) : inside);
    await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
    await copyFile(file, copy);
  }
  return folder;
}
