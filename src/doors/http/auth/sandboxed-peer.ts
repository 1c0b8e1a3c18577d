/**
 * Finds out whether a connection comes from a sandboxed tool of Toolgate. A sandbox with network shares loopback with us,
 * so without a credential its tools could use every tool of the gateway, beyond any policy. On Linux a socket has an
 * owner: its number is in /proc/net/tcp, and in the open files of the process that holds it.
 *
 * Who cannot be found is refused. A tool could close its end, or hand it from one of its processes to another, while we
 * look.
 */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { isLoopback } from '../../../base/loopback.ts';
import { openFiles, processFile, processIds } from '../../../base/proc.ts';
import { hasNetworkedSandbox, isSandboxCommand } from '../../../workers/isolation.ts';

/** Connections whose owner is known to be outside. */
const outside = new WeakSet<Socket>();

/** False without waiting as long as no sandbox of this process had network. */
export function isFromSandbox(socket: Socket): false | Promise<boolean> {
  if (!hasNetworkedSandbox() || outside.has(socket) || socket.remotePort === undefined) return false;
  return findOwner(socket).then((isOutside) => {
    if (isOutside) outside.add(socket);
    return !isOutside;
  });
}

interface SocketEntry {
  readonly uid: number;
  /** 0 if nobody holds it any more. */
  readonly inode: number;
}

async function findOwner({ remoteAddress = '', remotePort = 0, localPort = 0 }: Socket): Promise<boolean> {
  const entries = clientEntries(remotePort, localPort);
  // A client on another machine has no entry here.
  if (entries.length === 0) return !isLoopback(remoteAddress);
  // Processes in a sandbox are those of our user, for the system.
  const ours = entries.filter(({ uid, inode }) => inode === 0 || uid === process.getuid?.());
  if (ours.length === 0) return true;
  if (ours.some(({ inode }) => inode === 0)) return false;
  const holders = await holdersOfSockets();
  return ours.every(({ inode }) => {
    const pids = holders.get(inode) ?? [];
    return pids.length > 0 && !pids.some(isInSandbox);
  });
}

/** The client's ends of connections between these ports. There can be several, on several addresses. */
function clientEntries(clientPort: number, ownPort: number): SocketEntry[] {
  const [client, own] = [clientPort, ownPort].map((port) => port.toString(16).toUpperCase().padStart(4, '0'));
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    readText(file)
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = '', remote = '']) => local.endsWith(`:${client}`) && remote.endsWith(`:${own}`))
      .map((fields) => ({ uid: Number(fields[7]), inode: Number(fields[9]) })),
  );
}

let scan: Promise<ReadonlyMap<number, readonly number[]>> | null = null;
let next: Promise<ReadonlyMap<number, readonly number[]>> | null = null;

/** The processes by the sockets that they hold. A scan that has begun may have missed a socket: then it is the next one. */
function holdersOfSockets(): Promise<ReadonlyMap<number, readonly number[]>> {
  next ??= (scan ?? Promise.resolve()).then(() => {
    scan = next;
    next = null;
    return scanProcesses();
  });
  return next;
}

/** So many processes are looked at in one turn, so that other requests do not wait. */
const AT_ONCE = 25;

async function scanProcesses(): Promise<ReadonlyMap<number, readonly number[]>> {
  const holders = new Map<number, number[]>();
  let looked = 0;
  for (const pid of processIds()) {
    for (const { target } of openFiles(pid)) {
      const inode = Number(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? 0);
      if (inode > 0) holders.set(inode, [...(holders.get(inode) ?? []), pid]);
    }
    if (++looked % AT_ONCE === 0) await new Promise(setImmediate);
  }
  return holders;
}

/** Also a process that its parent left belongs to a sandbox: the first process in there becomes its parent. */
function isInSandbox(pid: number): boolean {
  for (let at = pid; at > 1; ) {
    if (isSandboxCommand(processFile(at, 'cmdline').toString().split('\0'))) return true;
    const parent = /^PPid:\s*(\d+)$/m.exec(processFile(at, 'status').toString())?.[1];
    // It ended while we looked.
    if (parent === undefined) return true;
    at = Number(parent);
  }
  return false;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
