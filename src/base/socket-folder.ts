/** Folders for Unix sockets that only this user can reach. */
import { chmod, lstat, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from './errors.ts';
import { sha256 } from './hash.ts';

/** The path of a Unix socket must be shorter than this. */
const MOST_PATH = 100;
/** The most characters of the name of a socket. */
const LONGEST_NAME = 40;

/** The folder itself, unless its path is too long for a socket. */
export function socketFolderFor(folder: string): string {
  if (folder.length + LONGEST_NAME < MOST_PATH) return folder;
  return join(tmpdir(), `toolgate-${sha256(folder).slice(0, 12)}`);
}

/** Creates a folder that only this user can enter. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = await lstat(folder);
  if (process.getuid === undefined) return;
  if (uid !== process.getuid()) {
    const text = `the folder of its socket, ${folder}, belongs to another user. Remove it`;
    throw new GatewayError('source_unavailable', text);
  }
  if ((mode & 0o077) !== 0) await chmod(folder, 0o700);
}
