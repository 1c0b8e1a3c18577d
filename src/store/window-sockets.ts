/**
 * Where a shared gateway listens for its windows: a Unix socket in a runtime folder that only this user can enter. Its name
 * says what a window has to have in common with the gateway: the project, and the way it is started. It is found without
 * reading the configuration, because every window waits for that.
 */
import { realpathSync, statSync } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { socketFolderFor } from '../base/socket-folder.ts';
import { VERSION } from '../base/version.ts';

/** What one gateway may be shared by. */
export interface WindowKey {
  /** The same for every gateway of the working folder and the configuration file. */
  readonly project: string;
  /** The same for every gateway of this program that was started in the same way. */
  readonly start: string;
}

export interface WindowStart {
  readonly cwd: string;
  readonly file: string;
  /** Whether the user named the file. Then it is trusted. */
  readonly isNamed: boolean;
  /** Whether everything is trusted, for this start. */
  readonly isTrusted: boolean;
  /** The file of the program. */
  readonly program: string;
}

export function windowKey({ cwd, file, isNamed, isTrusted, program }: WindowStart): WindowKey {
  return {
    project: shortHash([realPath(cwd), realPath(file)]),
    start: shortHash([VERSION, realPath(program), buildOf(program), isNamed, isTrusted]),
  };
}

/** The most characters that the path of the folder may have, so that the path of a socket is not too long. */
const LONGEST_FOLDER = 60;

/** Of the user, and of this machine. */
export function windowFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { XDG_RUNTIME_DIR: given } = env;
  const isUsable = given !== undefined && given.length < LONGEST_FOLDER && isOurs(given);
  return isUsable ? join(given, 'toolgate') : socketFolderFor(join(tmpdir(), `toolgate-${process.getuid?.() ?? 0}`));
}

/** A path that no other gateway has. */
export function newWindowSocket(folder: string, { project, start }: WindowKey): string {
  return join(folder, `${project}-${start}-${process.pid}.sock`);
}

/** Held by the process that starts a gateway for a project. */
export function startLock(folder: string, { project }: WindowKey): string {
  return join(folder, `${project}.lock`);
}

/**
 * The sockets of the gateways of a project, the newest first: all of them, or those that were started in the same way. Some
 * may be left over from a crash. None if another user could have put them there.
 */
export async function windowSockets(folder: string, project: string, start = ''): Promise<string[]> {
  if (!(await isPrivate(folder))) return [];
  const names = (await readdir(folder)).filter(
    (name) => name.startsWith(`${project}-${start}`) && name.endsWith('.sock'),
  );
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const time = await stat(path).then(
        ({ ctimeMs }) => ctimeMs,
        () => 0,
      );
      return { path, time };
    }),
  );
  return found.sort((a, b) => b.time - a.time).map(({ path }) => path);
}

async function isPrivate(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  if (found?.isDirectory() !== true) return false;
  return found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
}

function isOurs(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.();
}

/** Changes with every build and installation, also of the same version. */
function buildOf(program: string): string {
  const found = statSync(program, { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.size} ${found.mtimeMs}`;
}

function shortHash(parts: readonly unknown[]): string {
  return sha256(JSON.stringify(parts)).slice(0, 12);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
