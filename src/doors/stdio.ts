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
    if (output.writableLength <= SLOW) return;
    if (output.writableLength > gateway.config.limits.unreadTotal && !output.destroyed) {
      gateway.events.emit('cut', { bytes: output.writableLength });
      output.destroy(new Error('not read'));
    }
    if (input.isPaused()) return;
    input.pause();
    output.once('drain', () => input.resume());
  };
  const exchange: Exchange = {
    send: (message) => write(oneLine(message)),
    finish: answer,
    abandon() {},
    keepAlive() {},
    get isFull() {
      return output.writableLength > SLOW;
    },
    whenDrained(proceed) {
      output.once('drain', proceed);
    },
  };
  const channel = openChannel(gateway, client, {
    exchange,
    notify: write,
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
