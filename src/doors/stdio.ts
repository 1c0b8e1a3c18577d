/** MCP on standard input and output: one client, served until the input closes. */
import type { Writable } from 'node:stream';
import { GatewayError } from '../base/errors.ts';
import { type ClientOptions, FULL_SCOPE, type Scope } from '../calls/caller.ts';
import { programIdentity } from '../calls/identity.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { oneLine } from '../protocol/json.ts';
import { UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { createLineReader } from '../protocol/lines.ts';
import { join, partsOnOneLine } from '../protocol/parts.ts';
import { type Reply, writeReply } from '../protocol/rpc.ts';
import { type Exchange, SLOW } from './answer.ts';
import { type Channel, openChannel } from './channel.ts';

/** A client on a pair of streams. */
export interface StdioDoor {
  /** Resolves when the client has closed its end. */
  readonly ended: Promise<void>;
  /**
   * What people call the client; null if nobody knows, or if it has not introduced itself yet.
   * @internal
   */
  readonly client: string | null;
  close(): void;
}

/** Milliseconds that pending answers may take after the input has ended. */
const LAST_ANSWERS = 5_000;
const NEWLINE = Buffer.from('\n');
/** Bytes that a message takes while it waits in a stream, besides its own. */
const MESSAGE = 256;
const NEWS =
  /^\{"jsonrpc":"2\.0","method":"notifications\/(?:resources\/updated|(?:tools|resources|prompts)\/list_changed)"/;
/** More than the beginning that `NEWS` looks at. */
const BEGINNING = 80;

/**
 * Serves a client on a pair of streams, as `toolgate` does. The program that starts it decides which agent it serves.
 *
 * @example
 * const door = openStdioDoor(gateway, process.stdin, process.stdout);
 * await door.ended;
 * await gateway.close();
 */
export function openStdioDoor(
  gateway: Gateway,
  input: NodeJS.ReadableStream,
  output: Writable,
  agent = 'default',
): StdioDoor {
  const scope: Scope = { ...FULL_SCOPE, selection: 'default' };
  return serveStreams(gateway, { identity: programIdentity(agent), scope, door: 'stdio' }, input, output);
}

/** Serves this client on a pair of streams. */
export function serveStreams(
  gateway: Gateway,
  client: ClientOptions,
  input: NodeJS.ReadableStream,
  output: Writable,
): StdioDoor & Pick<Channel, 'inFlight'> {
  let open = true;
  /** Messages that were sent while the client was behind. Each takes memory besides its bytes, and small ones mostly that. */
  let late = 0;
  const isBehind = () => output.writableLength > SLOW;
  const write = (message: Buffer) => {
    if (open) output.write(Buffer.concat([message, NEWLINE]));
    slowDown();
  };
  const answer = (reply: Reply) => {
    if (open) writeReply(output, { head: reply.head, body: partsOnOneLine(reply.body), tail: `${reply.tail}\n` });
    slowDown();
  };
  /**
   * Stops reading requests while the client does not read its answers. If too much is unread, the output is destroyed.
   */
  const slowDown = () => {
    if (!isBehind() || !open) return;
    const unread = output.writableLength + ++late * MESSAGE;
    if (unread > gateway.config.limits.unreadTotal) {
      // At once: servers may send more before the stream tells of its end, and standard output cannot be destroyed.
      open = false;
      news.clear();
      gateway.events.emit('cut', { bytes: output.writableLength });
      output.destroy(Object.assign(new Error('The client does not read.'), { code: 'EPIPE' }));
    }
    if (late > 1) return;
    input.pause();
    output.once('drain', catchUp);
  };
  const catchUp = () => {
    late = 0;
    input.resume();
    const lines = [...news];
    news.clear();
    for (const line of lines) write(Buffer.from(line, 'latin1'));
  };
  /** News for a client that is behind. It gets each once, when it has caught up: they only tell it to look again. */
  const news = new Set<string>();
  const notify = (message: Buffer) => {
    if (isBehind() && isNews(message)) news.add(message.toString('latin1'));
    else write(message);
  };
  const exchange: Exchange = {
    send: (message) => write(oneLine(message)),
    finish: answer,
    abandon() {},
    keepAlive() {},
    get isFull() {
      return isBehind();
    },
    whenDrained(proceed) {
      output.once('drain', proceed);
    },
  };
  const channel = openChannel(gateway, client, {
    exchange,
    notify,
    end() {
      open = false;
    },
  });
  const reader = createLineReader(gateway.config.limits.body, {
    line: channel.receive,
    parts: (parts) => channel.receive(join(parts)),
    tooLong: (limit) =>
      channel.refuse(
        new GatewayError('too_large', `The message has more than ${limit} bytes; limits.body allows no more.`),
      ),
  });

  const ended = new Promise<void>((resolve) => {
    const end = () => {
      channel.close();
      resolve();
    };
    // Input piped in from a script ends immediately, and its requests must still be answered.
    const finish = (deadline: number) => {
      if (channel.inFlight === 0 || Date.now() > deadline) end();
      else setTimeout(finish, 10, deadline);
    };
    input.on('data', (chunk: Buffer) => reader.push(chunk));
    input.on('end', () => {
      // The last line may lack its newline.
      reader.push(NEWLINE);
      finish(Date.now() + LAST_ANSWERS);
    });
    input.on('error', end);
    output.on('error', end);
  });
  return {
    ended,
    get client() {
      const { title } = channel.client;
      return title === UNKNOWN_CLIENT.title ? null : title;
    },
    get inFlight() {
      return channel.inFlight;
    },
    close: channel.close,
  };
}

/** Whether a message only says that something is to be read again. Ours all begin alike. */
function isNews(message: Buffer): boolean {
  return NEWS.test(message.toString('latin1', 0, BEGINNING));
}
