/** The place where a worker is spoken to. */
import { lstat, mkdir } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { GatewayError } from '../base/errors.ts';

/** Whoever else could write there could answer in the place of the worker. */
export async function makeOwn(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid } = await lstat(folder);
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new GatewayError(
      'source_unavailable',
      `${folder}, where its socket has to be, is somebody else's. Remove it.`,
    );
}

/** Null while nobody listens there. */
export function tryConnect(path: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}
