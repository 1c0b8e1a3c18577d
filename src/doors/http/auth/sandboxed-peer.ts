/**
 * Finds out whether a connection comes from a sandboxed tool of Toolgate. A sandbox with network shares loopback with us,
 * so without a credential its tools could use every tool of the gateway, beyond any policy. On Linux a socket has an
 * owner: its number is in /proc/net/tcp, and in the open files of the process that holds it.
 *
 * Who cannot be found is refused. A tool could close its end, or hand it from one of its processes to another, while we
 * look.
 */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import { isLoopback } from '../../../base/loopback.ts';
import { fileSystemOf, openFiles, processFile, processIds } from '../../../base/proc.ts';
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

async function findOwner(socket: Socket): Promise<boolean> {
  const entries = await clientEntries(socket);
  // A client on another machine has no entry here.
  if (entries.length === 0) return !isLoopback(socket.remoteAddress ?? '');
  // Processes in a sandbox are those of our user, for the system.
  const ours = entries.filter(({ uid, inode }) => inode === 0 || uid === process.getuid?.());
  if (ours.length === 0) return true;
  if (ours.some(({ inode }) => inode === 0)) return false;
  if (ours.every(({ inode }) => isHeldByClient(inode))) return true;
  const holders = await holdersOfSockets();
  return ours.every(({ inode }) => {
    const pids = holders.get(inode) ?? [];
    if (pids.length === 0 || pids.some(isInSandbox)) return false;
    rememberClient(pids[0]!);
    return true;
  });
}

/** Processes outside that connected before. Most connections come from the same few, and a scan looks at all processes. */
const clients = new Set<number>();
const MOST_CLIENTS = 8;

function rememberClient(pid: number): void {
  clients.delete(pid);
  clients.add(pid);
  if (clients.size > MOST_CLIENTS) clients.delete(clients.values().next().value!);
}

/** Whether one of these processes holds the socket, and no process in a sandbox does. */
function isHeldByClient(inode: number): boolean {
  const holds = (pid: number) => openFiles(pid).some(({ target }) => target === `socket:[${inode}]`);
  const holder = [...clients].find(holds);
  // The number may have been given to another process since.
  if (holder === undefined || isInSandbox(holder)) return false;
  // A sandbox has a file system of its own, so the files of all others need not be looked at.
  const own = fileSystemOf(process.pid);
  return own !== '' && !processIds().some((pid) => fileSystemOf(pid) !== own && holds(pid));
}

/** The client's end of a connection. If only the ports can be compared, there can be several, on several addresses. */
async function clientEntries(socket: Socket): Promise<readonly SocketEntry[]> {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
  const [client, own] = [remotePort, localPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`);
  const exact = `${ipv4InHex(remoteAddress)}${client} ${ipv4InHex(localAddress)}${own} `;
  const ipv4 = await ipv4Sockets();
  // Most programs connect by IPv4, and the system takes milliseconds to write each of these files.
  const one = ipv4.find((line) => line.includes(exact));
  if (one !== undefined) return [entryOf(one)];
  return [...ipv4, ...(await ipv6Sockets())]
    .filter((line) => line.includes(`${client} `) && line.includes(`${own} `))
    .filter((line) => {
      const [, local = '', remote = ''] = line.trim().split(/\s+/);
      return local.endsWith(client!) && remote.endsWith(own!);
    })
    .map(entryOf);
}

function entryOf(line: string): SocketEntry {
  const fields = line.trim().split(/\s+/);
  return { uid: Number(fields[7]), inode: Number(fields[9]) };
}

/** As the system writes it: one number in the byte order of the machine. What is not IPv4 matches nothing. */
function ipv4InHex(address: string): string {
  const [, ...bytes] = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address) ?? [];
  if (bytes.length === 0) return 'none';
  const hex = bytes.map((byte) => Number(byte).toString(16).toUpperCase().padStart(2, '0'));
  return (endianness() === 'LE' ? hex.reverse() : hex).join('');
}

const ipv4Sockets = sharedLook(() => linesOf('/proc/net/tcp'));
const ipv6Sockets = sharedLook(() => linesOf('/proc/net/tcp6'));
/** The processes by the sockets that they hold. */
const holdersOfSockets = sharedLook(scanProcesses);

/** Connections that come at the same time share a look. One that has begun may have missed a socket: then it is the next one. */
function sharedLook<T>(look: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () => {
    next ??= current.then(() => {
      current = next!;
      next = null;
      return look();
    });
    return next;
  };
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

async function linesOf(file: string): Promise<string[]> {
  return (await readFile(file, 'utf8').catch(() => '')).split('\n');
}
