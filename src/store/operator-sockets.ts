/**
 * Where a running gateway listens for the commands of its operator: a Unix socket in the data folder, whose name begins
 * with a hash of the configuration file. So a command finds the gateways of its own project and configuration.
 */
import { realpathSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { socketFolderFor } from '../base/socket-folder.ts';
import type { Config } from '../config/config.ts';

type Project = Pick<Config, 'file' | 'dataDir'>;

export function operatorSocketFolder({ dataDir }: Project): string {
  return socketFolderFor(join(realPath(dataDir), 'run'));
}

let last = 0;

/** A path that no other gateway has. */
export function newOperatorSocket(project: Project): string {
  const name = `${hashOf(project)}-${process.pid}-${++last}`;
  // Pipes of Windows are not files.
  if (process.platform === 'win32') return `\\\\.\\pipe\\toolgate-${name}`;
  return join(operatorSocketFolder(project), `${name}.sock`);
}

/** The sockets of all gateways with this configuration, the newest first. Some may be left over from a crash. */
export async function operatorSockets(project: Project): Promise<string[]> {
  const folder = process.platform === 'win32' ? '\\\\.\\pipe\\' : operatorSocketFolder(project);
  const start = process.platform === 'win32' ? `toolgate-${hashOf(project)}-` : `${hashOf(project)}-`;
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(start));
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return {
        path,
        time: await stat(path).then(
          ({ ctimeMs }) => ctimeMs,
          () => 0,
        ),
      };
    }),
  );
  return found.sort((a, b) => b.time - a.time).map(({ path }) => path);
}

function hashOf({ file, dataDir }: Project): string {
  return sha256(file === null ? realPath(dataDir) : realPath(file)).slice(0, 12);
}

/** Two paths to the same file are the same. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
