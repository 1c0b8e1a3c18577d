/**
 * A connection to a worker: a process that serves the tool files of one folder, in one language, over a Unix socket. It is
 * asked in words of its own; towards the gateway it looks like any other server.
 */
import { lstat, mkdir, unlink } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf } from '../errors.ts';
import { cleaned } from '../events.ts';
import { decodeString, findMember, readMembers, toBytes } from '../protocol/json.ts';
import { createLineReader } from '../protocol/lines.ts';
import { readMessage } from '../protocol/read.ts';
import { LATEST_REVISION } from '../protocol/revisions.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import type { Clean } from '../secrets/clean.ts';
import type { Connection, ConnectionEvents, Request } from './connection.ts';
import { createPending, failing } from './pending.ts';
import { spawnServer } from './spawn.ts';
import { killGroup, unwatchGroup, watchGroup } from './watchdog.ts';

/** How a worker is started, and where it is spoken to. */
export interface WorkerLaunch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly namespace: string;
  /** The folder of the sockets, and this one's. */
  readonly socketFolder: string;
  readonly socket: string;
  /** Names what is served: a new worker for it must not do worse than the one before. */
  readonly served: string;
}

export interface WorkerOptions {
  readonly source: string;
  /** Bytes that one line may have. */
  readonly maxMessage: number;
  /** Milliseconds until it has to be there. */
  readonly startTimeout: number;
  readonly redact: (text: string) => string;
  readonly clean: Clean | null;
  /** Whether it is no longer wanted. */
  isClosed(): boolean;
  /** What the worker, and the tools in it, write to their standard output and error. */
  stderr(chunk: Buffer): void;
}

/** How long a worker has to let go of a call that timed out, and to end; then it is ended. */
const GRACE = { cancel: 2_000, end: 2_000 };
const NEWLINE = Buffer.from('\n');
const EMPTY = toBytes({});

/** What the worker said of itself when it was ready. */
interface Ready {
  readonly tools: Buffer;
  readonly failed: readonly { readonly file?: unknown; readonly line?: unknown; readonly message?: unknown }[];
}

/** Files that could not be used in the workers that serve now, by what those serve. */
const tolerated = new Map<string, readonly string[]>();

/** Resolves when the worker is ready; rejects, with the reason, where it does not get there. */
export async function openWorker(
  launch: WorkerLaunch,
  options: WorkerOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const { source, redact, clean } = options;
  await makeOwn(launch.socketFolder);
  await unlink(launch.socket).catch(() => {});
  const [file, ...args] = launch.command as [string, ...string[]];
  const child = spawnServer({ kind: 'stdio', file, args, env: launch.env, cwd: launch.cwd, isBare: true });
  const group = child.pid ?? null;
  if (group !== null) watchGroup(group);
  let reason: string | null = null;
  let closing = false;
  let onEnded = () => {};
  const ended = new Promise<void>((resolve) => {
    onEnded = resolve;
  });
  child.stdin.on('error', () => {});
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk: Buffer) => options.stderr(chunk));
    output.on('error', () => {});
  }
  child.on('error', (error) => end(`could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (group !== null) {
      killGroup(group, 'SIGKILL');
      unwatchGroup(group);
    }
    end(signal === null ? `exited with code ${code}` : `was ended by ${signal}`);
  });

  const pending = createPending(source, {
    abandoned({ id }, why) {
      write(`{"op":"cancel","id":"${id}"}`);
      if (why !== 'timed out') return;
      // A call that does not let go holds a thread, or all of the worker: then another one takes its place.
      abandoned.add(id);
      setTimeout(() => abandoned.delete(id) && close(STUCK), GRACE.cancel).unref();
    },
    refused: events.refused,
  });
  /** Calls that timed out and have not come back yet. */
  const abandoned = new Set<number>();
  let socket: Socket | null = null;
  let ready: Ready | null = null;
  let onReady = () => {};
  let heard = 0;

  function end(why: string): void {
    if (reason !== null) return;
    reason = why;
    socket?.destroy();
    onEnded();
    onReady();
    void unlink(launch.socket).catch(() => {});
    pending.failAll(
      new GatewayError('source_broken', redact(`Server "${source}" ${why} before it answered. Try again.`)),
    );
    if (ready !== null && !closing) events.closed(why);
  }

  let batch: (string | Buffer)[] = [];
  function write(message: string | Buffer): void {
    if (batch.length === 0) setImmediate(flush);
    batch.push(message);
  }

  function flush(): void {
    const parts = batch.flatMap((part) => [typeof part === 'string' ? Buffer.from(part) : part, NEWLINE]);
    batch = [];
    if (socket?.writable === true) socket.write(Buffer.concat(parts));
  }

  function receive(line: Buffer): void {
    heard++;
    try {
      const members = readMembers(line) ?? [];
      const find = (key: string) => members.find((member) => member.key === key);
      const op = find('op');
      if (op !== undefined) hear(decodeString(line, op.start, op.end), line, find('id'));
      else settle(line, find('id'), find('ok'), find('result'), find('error'));
    } catch (error) {
      const preview = JSON.stringify(redact(line.toString('utf8', 0, 4_096)).slice(0, 120));
      events.note(`wrote a line that is not of the contract of workers: ${preview} (${messageOf(error)})`);
    }
  }

  type Span = { readonly start: number; readonly end: number } | undefined;

  function idOf(line: Buffer, id: Span): number {
    return id === undefined ? Number.NaN : Number(line.toString('latin1', id.start + 1, id.end - 1));
  }

  function settle(line: Buffer, id: Span, ok: Span, result: Span, error: Span): void {
    const number = idOf(line, id);
    abandoned.delete(number);
    if (ok !== undefined && line.toString('latin1', ok.start, ok.end) === 'true' && result !== undefined)
      pending.deliver(number, line.subarray(result.start, result.end));
    else {
      // A tool that fails with its address, or prints its surroundings, tells what it was given.
      const said: unknown = error === undefined ? {} : JSON.parse(line.toString('utf8', error.start, error.end));
      pending.deliver(number, errorResult(cleaned(said, redact) as object));
    }
  }

  function hear(op: string, line: Buffer, id: Span): void {
    if (op === 'ready') {
      const tools = findMember(line, 'tools');
      const { failed } = JSON.parse(line.toString()) as { failed?: Ready['failed'] };
      ready = {
        tools: tools === null ? Buffer.from('[]') : line.subarray(tools.start, tools.end),
        failed: failed ?? [],
      };
      onReady();
      return;
    }
    const { id: _, op: __, ...rest } = JSON.parse(line.toString()) as Record<string, unknown>;
    if (op === 'progress') {
      const params = { ...rest, progressToken: idOf(line, id) };
      pending.hear(readMessage(notificationMessage('notifications/progress', toBytes(params))), null);
    } else if (op === 'log') {
      const number = idOf(line, id);
      pending.log(
        readMessage(notificationMessage('notifications/message', toBytes(rest))),
        Number.isNaN(number) ? null : number,
      );
    }
  }

  const reader = createLineReader(options.maxMessage, {
    line: clean === null ? receive : (line) => receive(clean(line)),
    parts: (parts) => receive(clean === null ? Buffer.concat(parts) : clean(Buffer.concat(parts))),
    tooLong(limit, head) {
      const id = /"id":\s*"(\d+)"/.exec(head.toString('latin1', 0, 200))?.[1];
      const text = `Server "${source}" answered with more than ${limit} bytes. Raise limits.message to allow it.`;
      events.note(text);
      if (id !== undefined) pending.fail(Number(id), new GatewayError('source_broken', text));
    },
  });

  async function connect(): Promise<void> {
    const deadline = Date.now() + options.startTimeout;
    for (let pause = 5; reason === null && !options.isClosed(); pause = Math.min(pause * 1.5, 100)) {
      const opened = await tryConnect(launch.socket);
      if (opened !== null) {
        socket = opened;
        opened.on('data', (chunk: Buffer) => reader.push(chunk));
        opened.on('error', () => {});
        opened.on('close', () => void close('closed its connection'));
        const told = new Promise<void>((resolve) => {
          onReady = resolve;
        });
        await Promise.race([told, sleep(Math.max(1, deadline - Date.now()), undefined, { ref: false })]);
        break;
      }
      if (Date.now() > deadline) break;
      await sleep(pause);
    }
    if (ready !== null) return;
    const why =
      reason ?? `was not ready within ${options.startTimeout / 1000} s; look at what its files do when they are loaded`;
    await close();
    throw new GatewayError('source_unavailable', why);
  }

  function answerHere(request: Request): Buffer | null {
    if (request.method === 'initialize')
      return toBytes({
        protocolVersion: LATEST_REVISION,
        capabilities: { tools: {}, logging: {} },
        serverInfo: { name: launch.namespace, version: '1' },
      });
    if (request.method === 'tools/list')
      return Buffer.concat([Buffer.from('{"tools":'), ready!.tools, Buffer.from('}')]);
    return request.method === 'logging/setLevel' ? EMPTY : null;
  }

  function print(id: number, request: Request): string | Buffer {
    if (request.method === 'ping') return `{"id":"${id}","op":"ping"}`;
    const wire = request.encode(id, 'legacy');
    const message = readMessage(typeof wire === 'string' ? Buffer.from(wire, 'latin1') : wire);
    const { bytes, nameStart, nameEnd, argumentsStart, argumentsEnd } = message;
    const head = `{"id":"${id}","op":"tools.call"${request.token === null ? '' : ',"progress":true'},"tool":`;
    return Buffer.concat([
      Buffer.from(head),
      bytes.subarray(nameStart, nameEnd),
      Buffer.from(',"arguments":'),
      argumentsStart < 0 ? EMPTY : bytes.subarray(argumentsStart, argumentsEnd),
      Buffer.from('}'),
    ]);
  }

  async function close(fault?: string): Promise<void> {
    if (fault === undefined) closing = true;
    else if (reason === null) pending.failAll(failing(source, fault));
    if (reason !== null || group === null) return;
    if (fault === undefined) write('{"id":"end","op":"shutdown"}');
    setTimeout(() => child.stdin.end(), 20).unref();
    const kill = setTimeout(killGroup, fault === undefined ? GRACE.end : 0, group, 'SIGKILL');
    await ended;
    clearTimeout(kill);
  }

  await connect();
  const failures = ready!.failed.map(
    ({ file, line, message }) => `${String(file)}${typeof line === 'number' ? `:${line}` : ''}: ${String(message)}`,
  );
  const broken = ready!.failed.map(({ file }) => String(file));
  const before = tolerated.get(launch.served);
  const worse = before === undefined ? [] : failures.filter((_, i) => !before.includes(broken[i]!));
  if (worse.length > 0) {
    await close();
    throw new GatewayError('source_unavailable', `keeps its last good version, because ${worse.join('; ')}`);
  }
  tolerated.set(launch.served, broken);
  void ended.then(() => {
    if (tolerated.get(launch.served) === broken) tolerated.delete(launch.served);
  });
  for (const failure of failures) events.note(failure);

  return {
    pid: group,
    mirrors: false,
    get heard() {
      return heard;
    },
    get inFlight() {
      return pending.size;
    },
    asking: 0,
    askable: 0,
    awaited: false,
    speak() {},
    listen() {},
    notify() {},
    request(request) {
      const entry = pending.add(request);
      const known = reason === null ? answerHere(request) : null;
      if (reason !== null) queueMicrotask(() => pending.fail(entry.id, failing(source, reason ?? undefined)));
      else if (known !== null) queueMicrotask(() => pending.deliver(entry.id, known));
      else write(print(entry.id, request));
      return entry;
    },
    close,
  };
}

const STUCK = 'was busy with a call that did not end in time, and is being replaced';

/** Whoever else could write there could answer in the place of the worker. */
async function makeOwn(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid } = await lstat(folder);
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new GatewayError(
      'source_unavailable',
      `${folder}, where its socket has to be, is somebody else's. Remove it.`,
    );
}

/** Null while nobody listens there. */
function tryConnect(path: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}

/** An error of a tool, or about its call, as models read it. */
function errorResult({ code, message, details }: { code?: unknown; message?: unknown; details?: unknown }): Buffer {
  const said = {
    success: false,
    result: null,
    code: String(code ?? 'internal_error'),
    message: String(message ?? 'The tool failed without saying why.'),
    ...(details !== undefined && { details }),
  };
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(said) }], isError: true });
}
