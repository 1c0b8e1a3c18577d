/** MCP on standard input and output: one client, for as long as the input is open. */
import type { Writable } from 'node:stream';
import { GatewayError, toGatewayError } from '../errors.ts';
import type { Gateway } from '../gateway-types.ts';
import { modernErrorObject } from '../protocol/bridge.ts';
import { claimedRevision, readAudience, requireModern } from '../protocol/envelope.ts';
import { oneLine } from '../protocol/json.ts';
import { createLineReader } from '../protocol/lines.ts';
import { claimsRevision, idText, isRequest, type Message } from '../protocol/message.ts';
import { join, partsOnOneLine } from '../protocol/parts.ts';
import { readBatch, readMessage } from '../protocol/read.ts';
import { allowsBatch } from '../protocol/revisions.ts';
import { errorObject, errorReply, type Reply, writeReply } from '../protocol/rpc.ts';
import { type Exchange, SLOW } from './answer.ts';
import { ModernPeer } from './modern.ts';
import { deliver, Peer } from './peer.ts';

export interface StdioDoor {
  /** Resolves when the client has closed its end. */
  readonly ended: Promise<void>;
  close(): void;
}

/** How long answers may take after the input has ended. */
const LAST_ANSWERS = 5_000;
const NEWLINE = Buffer.from('\n');

/** Whoever starts the program says which agent it is for. */
export function openStdioDoor(
  gateway: Gateway,
  input: NodeJS.ReadableStream,
  output: Writable,
  agent = 'default',
): StdioDoor {
  let open = true;
  const write = (message: Buffer) => {
    if (open) output.write(Buffer.concat([message, NEWLINE]));
    slowDown();
  };
  const answer = (reply: Reply) => {
    if (open) writeReply(output, { head: reply.head, body: partsOnOneLine(reply.body), tail: `${reply.tail}\n` });
    slowDown();
  };
  /** A client that does not read its answers gets to ask no more; one that leaves too much unread is given up. */
  const slowDown = () => {
    if (output.writableLength <= SLOW) return;
    if (output.writableLength > gateway.config.limits.unreadTotal) output.destroy(new Error('not read'));
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
    whenDrained(goOn) {
      output.once('drain', goOn);
    },
  };
  const peer = new Peer(gateway, { agent, door: 'stdio', selection: 'default', notify: write });
  let modern: ModernPeer | null = null;
  const refuse = (error: unknown, id: string | null) => {
    const known = toGatewayError(error);
    const inSession = modern === null || peer.revision !== null;
    answer(inSession ? errorReply(id ?? 'null', errorObject(known)) : errorReply(id, modernErrorObject(known)));
  };

  const receiveOne = (bytes: Buffer) => {
    let message: Message | null = null;
    try {
      message = readMessage(bytes, gateway.config.limits.depth);
      // How the client opens decides. One that has opened a session stays with it.
      if (peer.revision === null && (modern !== null || claimsRevision(message))) receiveModern(message);
      else deliver(peer, message, () => exchange);
    } catch (error) {
      refuse(error, message !== null && isRequest(message) ? idText(message) : null);
    }
  };

  const receiveModern = (message: Message) => {
    // Asking what there is may be how a client finds out that it wants a session after all.
    if (message.method === 'initialize' && !claimsRevision(message)) {
      deliver(peer, message, () => exchange);
      return;
    }
    modern ??= new ModernPeer(gateway, { agent, door: 'stdio', selection: 'default', alone: true });
    if (!isRequest(message)) {
      modern.accept(message);
      return;
    }
    const audience = readAudience(message);
    requireModern(claimedRevision(message), gateway.config.revisions);
    modern.request(message, audience, exchange, null);
  };
  const receive = (line: Buffer) => {
    if (peer.revision === null || !allowsBatch(peer.revision)) {
      receiveOne(line);
      return;
    }
    try {
      for (const part of readBatch(line) ?? [line]) receiveOne(part);
    } catch (error) {
      refuse(error, null);
    }
  };
  const reader = createLineReader(gateway.config.limits.body, {
    line: receive,
    parts: (parts) => receive(join(parts)),
    tooLong: (limit) =>
      refuse(
        new GatewayError('too_large', `The message has more than ${limit} bytes; limits.body allows no more.`),
        null,
      ),
  });

  const leave = () => {
    modern?.close();
    open = false;
    peer.close();
  };
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      leave();
      resolve();
    };
    // Requests piped in from a script end at once; what they asked for is still printed.
    const finish = (deadline: number) => {
      if (peer.inFlight + (modern?.inFlight ?? 0) === 0 || Date.now() > deadline) end();
      else setTimeout(finish, 10, deadline);
    };
    input.on('data', (chunk: Buffer) => reader.push(chunk));
    input.on('end', () => {
      // The last line may come without its end.
      reader.push(NEWLINE);
      finish(Date.now() + LAST_ANSWERS);
    });
    input.on('error', end);
    output.on('error', end);
  });
  return {
    ended,
    close: leave,
  };
}
