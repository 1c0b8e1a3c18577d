/**
 * One client on a channel that carries all of its messages in both directions: a pipe, or a link within one process.
 */
import { toGatewayError } from '../base/errors.ts';
import type { ClientOptions } from '../calls/caller.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { modernErrorObject } from '../protocol/bridge.ts';
import { claimedRevision, readAbilities, requireModern, traitsIn } from '../protocol/envelope.ts';
import { type ClientTraits, UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { claimsRevision, idText, isRequest, type Message } from '../protocol/message.ts';
import { readBatch, readMessage, requireUniqueKeys } from '../protocol/read.ts';
import { allowsBatch } from '../protocol/revisions.ts';
import { errorObject, errorReply } from '../protocol/rpc.ts';
import type { Exchange } from './answer.ts';
import { ModernPeer } from './modern.ts';
import { deliver, Peer } from './peer.ts';

export interface Channel {
  /** Takes one message, or a batch if the revision allows batches. */
  receive(bytes: Buffer): void;
  /** Answers input that is not a valid message. */
  refuse(error: unknown): void;
  readonly inFlight: number;
  /** What is known of the client, from its last introduction. */
  readonly client: ClientTraits;
  close(): void;
}

/** The way back to the client. */
export interface Outlet {
  /** Carries the answers to its requests. */
  readonly exchange: Exchange;
  /** The exchange for one particular request, if they differ. */
  exchangeFor?(message: Message): Exchange;
  /** Sends a message that belongs to no request. */
  notify(message: Buffer): void;
  /** Called on closing. Nothing is sent after it. */
  end(): void;
}

export function openChannel(gateway: Gateway, client: ClientOptions, outlet: Outlet): Channel {
  const { exchange, notify, end, exchangeFor = () => exchange } = outlet;
  const peer = new Peer(gateway, { ...client, notify });
  let modern: ModernPeer | null = null;
  /** The traits that the last request without a session named. */
  let named: ClientTraits = UNKNOWN_CLIENT;

  function refuse(error: unknown, id: string | null): void {
    const known = toGatewayError(error);
    const inSession = modern === null || peer.revision !== null;
    exchange.finish(
      inSession ? errorReply(id ?? 'null', errorObject(known)) : errorReply(id, modernErrorObject(known)),
    );
  }

  function receiveOne(bytes: Buffer): void {
    let message: Message | null = null;
    try {
      message = readMessage(bytes, gateway.config.limits.depth);
      requireUniqueKeys(message);
      // The client's first message decides the era. A client that has opened a session keeps it.
      if (peer.revision === null && (modern !== null || claimsRevision(message))) receiveModern(message);
      else deliver(peer, message, exchangeFor);
    } catch (error) {
      refuse(error, message !== null && isRequest(message) ? idText(message) : null);
    }
  }

  function receiveModern(message: Message): void {
    // A client may call `server/discover` first, and then decide to open a session.
    if (message.method === 'initialize' && !claimsRevision(message)) {
      deliver(peer, message, exchangeFor);
      return;
    }
    modern ??= new ModernPeer(gateway, { ...client, isSingle: true });
    if (!isRequest(message)) {
      modern.accept(message);
      return;
    }
    const audience = readAbilities(message);
    named = traitsIn(message);
    requireModern(claimedRevision(message), gateway.config.revisions);
    modern.request(message, audience, exchangeFor(message), null);
  }

  return {
    receive(bytes) {
      if (peer.revision === null || !allowsBatch(peer.revision)) {
        receiveOne(bytes);
        return;
      }
      try {
        for (const part of readBatch(bytes, gateway.config.limits.batch) ?? [bytes]) receiveOne(part);
      } catch (error) {
        refuse(error, null);
      }
    },
    refuse: (error) => refuse(error, null),
    get client() {
      return peer.traits ?? named;
    },
    get inFlight() {
      return peer.inFlight + (modern?.inFlight ?? 0);
    },
    close() {
      // The modern peer goes first, because it still has to tell its client that its subscriptions have ended. The
      // session peer closes after the output: it would otherwise send cancellations of its open questions.
      modern?.close();
      end();
      peer.close();
    },
  };
}
