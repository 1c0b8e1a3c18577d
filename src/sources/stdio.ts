/** A connection to a server that runs as a child process and speaks newline-delimited JSON on its pipes. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import { fastAnswer, readFastAnswer } from '../protocol/fast-answer.ts';
import { toBytes } from '../protocol/json.ts';
import { createLineReader } from '../protocol/lines.ts';
import { LONG, readLongAnswer } from '../protocol/long-answer.ts';
import { isRequest, isResponse, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import type { Wire } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import type { Clean } from '../secrets/clean.ts';
import type { Connection, ConnectionEvents, ListenRequest } from './connection.ts';
import { ACKNOWLEDGED, hearAcknowledged, isListenAnswer } from './handshake.ts';
import { keepListening, type Listening } from './listening.ts';
import { createPending, failing } from './pending.ts';
import { createQuestions } from './questions.ts';
import { type StdioLaunch, spawnServer, startProblem } from './spawn.ts';
import { killGroup, unwatchGroup, watchGroup } from './watchdog.ts';

/** How long a server has after its input closed, and then after SIGTERM, before the next step. */
const GRACE = { input: 400, term: 1200 };
/** How long a server may live on after it has closed one of its pipes; most are about to exit. */
const LAST_BREATH = 1000;
/** What may wait in a pipe that the server does not read. */
const MAX_UNREAD = 64 * 1024 * 1024;
/** So many lines that make no sense are reported: what a server logs to its stdout must not flood our own log. */
const MAX_NOTES = 20;

export interface StdioOptions {
  readonly source: string;
  /** Bytes that one message may have. */
  readonly maxMessage: number;
  /** Takes secrets out of what goes into errors. */
  readonly redact: (text: string) => string;
  /** Takes the secrets that it was given out of a message; null where there are none. */
  readonly clean: Clean | null;
  /** Whose connection it is; null where it is everybody's. */
  readonly client: ClientChannel | null;
  /** Everything the server writes to its standard error. */
  stderr(chunk: Buffer): void;
}

export function openStdio(launch: StdioLaunch, options: StdioOptions, events: ConnectionEvents): Connection {
  const { source, redact, clean } = options;
  const child = spawnServer(launch);
  const group = child.pid ?? null;
  if (group !== null) watchGroup(group);
  let closing = false;
  let ended = false;
  let onEnded: () => void = () => {};
  const whenEnded = new Promise<void>((resolve) => {
    onEnded = resolve;
  });

  // Messages of the same turn of the event loop leave in one write: with many callers that is most of the cost of a call.
  let batch = '';
  const write = (message: Wire) => {
    if (typeof message !== 'string') {
      flush();
      child.stdin.write(message);
      child.stdin.write('\n');
      return;
    }
    if (batch === '') setImmediate(flush);
    batch += `${message}\n`;
  };
  const flush = () => {
    if (batch !== '' && child.stdin.writable) child.stdin.write(batch, 'latin1');
    batch = '';
  };
  const pending = createPending(source, {
    abandoned: ({ id }, reason) =>
      write(notificationMessage('notifications/cancelled', toBytes({ requestId: id, reason }))),
    refused: events.refused,
  });

  const questions = createQuestions(pending, write, events, options.client);
  let listening: Listening | null = null;
  let listened: ListenRequest | null = null;
  /** What tells of changes until its successor does. */
  const replaced: string[] = [];
  let notes = 0;
  const note = (text: string) => {
    notes++;
    if (notes <= MAX_NOTES) events.note(notes < MAX_NOTES ? text : `${text} Further ones are not reported.`);
  };

  const receiveParts = (parts: readonly Buffer[]) => {
    const answer = readLongAnswer(parts);
    if (answer === null) receiveStrictly(join(parts));
    else pending.deliver(answer.id, answer.result);
  };

  const receive = (line: Buffer) => {
    if (line.length > LONG) receiveParts([line]);
    else if (readFastAnswer(line)) pending.deliver(fastAnswer.id, line.subarray(fastAnswer.start, fastAnswer.end));
    else receiveStrictly(line);
  };

  const receiveStrictly = (line: Buffer) => {
    let message: Message;
    try {
      message = readMessage(line);
    } catch (error) {
      reject(line, messageOf(error));
      return;
    }
    if (isResponse(message)) {
      if (listened !== null && isListenAnswer(message, listened.id)) listenEnded(message);
      else pending.settle(message);
    } else if (isRequest(message)) {
      questions.receive(message, null);
    } else if (message.method === 'notifications/message') {
      pending.log(message, null);
    } else if (pending.hear(message, null)) {
      return;
    } else if (message.method === ACKNOWLEDGED) {
      if (!hearAcknowledged(message, listened)) return;
      listening?.taken();
      endReplaced();
    } else if (!questions.hear(message)) {
      events.notification(message);
    }
  };

  const endReplaced = () => {
    for (const requestId of replaced.splice(0))
      write(notificationMessage('notifications/cancelled', toBytes({ requestId })));
  };

  /** A server that answers with an error will not do better the next time. */
  const listenEnded = ({ errorStart }: Message) => {
    if (errorStart < 0) listening?.lost();
    else {
      listening?.stop();
      listened?.refused();
    }
  };

  // A broken answer ends its call now, not at the time-out: the ids are our own, so the call can be told from a fragment.
  const reject = (line: Buffer, why: string) => {
    // Cut only when it is clean: half of a secret would not be known for one.
    const preview = JSON.stringify(redact(line.toString('utf8', 0, 4_096)).slice(0, 120));
    note(`wrote a line that is not a JSON-RPC message: ${preview} (${why})`);
    const ends = `${line.toString('latin1', 0, 200)} ${line.toString('latin1', Math.max(0, line.length - 64))}`;
    const id = /"id":\s*(\d+)/.exec(ends)?.[1];
    // A line of a log may well have an id too.
    if (id === undefined || ends.includes('"method"') || !ends.includes('"jsonrpc"')) return;
    pending.fail(
      Number(id),
      new GatewayError('source_broken', redact(`Server "${source}" answered with invalid JSON. ${why}`)),
    );
  };

  const reader = createLineReader(options.maxMessage, {
    line: clean === null ? receive : (line) => receive(clean(line)),
    parts: clean === null ? receiveParts : (parts) => receiveParts([clean(join(parts))]),
    tooLong(limit, head) {
      const text = `Server "${source}" sent a message of more than ${limit} bytes. Raise limits.message to allow it.`;
      note(text);
      const error = new GatewayError('source_broken', text);
      const start = head.toString('latin1', 0, 200);
      const id = /"id":\s*(\d+)\s*,\s*"(?:result|error)"/.exec(start)?.[1];
      if (id !== undefined) pending.fail(Number(id), error);
      // An answer whose id has gone by: it may have been any of them.
      else if (start.startsWith('{') && !start.includes('"method"')) pending.failAll(error);
    },
  });
  let heard = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    heard++;
    reader.push(chunk);
  });
  child.stdout.on('error', () => {});
  // Without its pipes a server can serve nobody, though its process may live on: it has to go before it can come back.
  let unpiped: NodeJS.Timeout | undefined;
  const pipeClosed = () => {
    const runs = child.exitCode === null && child.signalCode === null;
    if (group !== null && runs && !closing) unpiped ??= setTimeout(killGroup, LAST_BREATH, group, 'SIGKILL');
  };
  child.stdout.on('end', pipeClosed);
  child.stderr.on('data', (chunk: Buffer) => options.stderr(chunk));
  child.stderr.on('error', () => {});
  child.stdin.on('error', pipeClosed);

  const end = (reason: string) => {
    if (ended) return;
    ended = true;
    listening?.stop();
    onEnded();
    questions.close('the server is gone');
    const text = redact(`Server "${source}" ${reason} before it answered. Try again.`);
    pending.failAll(new GatewayError('source_broken', text));
    if (!closing) events.closed(reason);
  };
  child.on('error', (error: NodeJS.ErrnoException) => {
    if (child.pid === undefined) end(`could not be started: ${startProblem(launch, error.code) ?? error.message}`);
  });
  child.on('exit', (code, signal) => {
    clearTimeout(unpiped);
    // Whatever the server left behind goes with it; that also closes the pipes that a grandchild holds open.
    if (group !== null) {
      killGroup(group, 'SIGKILL');
      unwatchGroup(group);
    }
    const reason = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    const last = setTimeout(end, 500, reason);
    child.once('close', () => {
      clearTimeout(last);
      end(reason);
    });
  });

  return {
    pid: group,
    mirrors: false,
    get heard() {
      return heard;
    },
    get inFlight() {
      return pending.size;
    },
    get asking() {
      return pending.asking;
    },
    get askable() {
      return pending.askable;
    },
    get awaited() {
      return pending.elicitations.open;
    },
    speak(era) {
      pending.era = era;
    },
    listen(request) {
      listening?.stop();
      if (listened !== null) replaced.push(listened.id);
      listened = request;
      listening = request === null ? null : keepListening(() => write(request.message), events.missed);
      if (request === null) endReplaced();
    },
    notify: write,
    request(request) {
      if (ended || !child.stdin.writable || child.stdin.writableLength > MAX_UNREAD) {
        const busy = !ended && child.stdin.writable;
        queueMicrotask(() =>
          request.sink.fail(
            busy
              ? new GatewayError('source_busy', `Server "${source}" does not read its input. Try again later.`)
              : new GatewayError('source_unavailable', `Server "${source}" is not running. Try again in a moment.`),
          ),
        );
        return { cancel() {} };
      }
      const entry = pending.add(request);
      write(request.encode(entry.id, pending.era));
      return entry;
    },
    async close(reason) {
      closing = true;
      listening?.stop();
      if (ended || group === null) return;
      if (reason !== undefined) pending.failAll(failing(source, reason));
      setImmediate(() => child.stdin.end());
      const term = setTimeout(killGroup, GRACE.input, group, 'SIGTERM');
      const kill = setTimeout(killGroup, GRACE.input + GRACE.term, group, 'SIGKILL');
      await whenEnded;
      clearTimeout(term);
      clearTimeout(kill);
    },
  };
}
