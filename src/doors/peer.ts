/**
 * One connected client in the revisions with sessions: what each method means, whatever the messages travel over.
 * The door hands in messages and an exchange for each; the peer answers through it.
 */
import { type Kind, kindWords } from '../catalog/item.ts';
import { GatewayError, toGatewayError } from '../errors.ts';
import type { Caller, Gateway, ListKind } from '../gateway.ts';
import { findMember, toBytes } from '../protocol/json.ts';
import { idText, isRequest, isResponse, type Message, parseParams } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import { negotiate, type Revision } from '../protocol/revisions.ts';
import { errorObject, errorReply, errorResult, notificationMessage, type Reply, resultReply } from '../protocol/rpc.ts';
import type { Sink, Ticket } from '../sources/connection.ts';
import { IDENTITY, INSTANCE, INSTANCE_KEY } from '../version.ts';

/** The way back for one request. */
export interface Exchange {
  /** A message that belongs to the request and comes before its answer. */
  send(message: Buffer): void;
  /** The answer; nothing follows. */
  finish(answer: Reply): void;
  /** The request was cancelled: there is no answer. */
  abandon(): void;
  /** Called now and then while the answer is not there. */
  keepAlive(): void;
}

export interface PeerOptions {
  readonly agent: string;
  readonly selection: 'own' | 'default';
  /** A notification that belongs to no request. */
  notify(message: Buffer): void;
}

const listMethods = new Map<string, Kind>(
  Object.entries(kindWords).map(([kind, words]) => [words.method, kind as Kind]),
);

const changedMessages: Readonly<Record<ListKind, Buffer>> = {
  tools: notificationMessage('notifications/tools/list_changed'),
  resources: notificationMessage('notifications/resources/list_changed'),
  prompts: notificationMessage('notifications/prompts/list_changed'),
};

/** One request under way: where its answer goes, and how to stop it. */
class Answer implements Sink {
  readonly id: string;
  readonly method: string;
  readonly exchange: Exchange;
  /** The requests of the same client, in an array for the reason that slots.ts gives. */
  readonly running: Answer[];
  /** Where it stands among them; -1 when it is over. */
  place: number;
  ticket: Ticket | null = null;

  constructor(id: string, method: string, exchange: Exchange, running: Answer[]) {
    this.id = id;
    this.method = method;
    this.exchange = exchange;
    this.running = running;
    this.place = running.push(this) - 1;
  }

  /** False when it was over already. */
  end(): boolean {
    if (this.place < 0) return false;
    const last = this.running.pop()!;
    if (last !== this) {
      this.running[this.place] = last;
      last.place = this.place;
    }
    this.place = -1;
    return true;
  }

  result(result: Parts): void {
    if (this.end()) this.exchange.finish(resultReply(this.id, result));
  }

  error(error: Buffer): void {
    if (this.end()) this.exchange.finish(errorReply(this.id, error));
  }

  fail(error: GatewayError): void {
    // Errors of Toolgate's own about a tool are for the model, and models read results.
    if (this.method === 'tools/call') this.result(errorResult(error));
    else this.error(errorObject(error));
  }

  progress(message: Buffer): void {
    this.exchange.send(message);
  }
}

export class Peer {
  readonly agent: string;
  readonly #gateway: Gateway;
  readonly #options: PeerOptions;
  #revision: Revision | null = null;
  #caller: Caller | null = null;
  #closed = false;
  /** What waits for an answer. */
  readonly #running: Answer[] = [];

  constructor(gateway: Gateway, options: PeerOptions) {
    this.#gateway = gateway;
    this.#options = options;
    this.agent = options.agent;
  }

  /** The revision agreed on; null before `initialize`. */
  get revision(): Revision | null {
    return this.#revision;
  }

  get inFlight(): number {
    return this.#running.length;
  }

  /** Takes a request; its answer goes through the exchange. */
  request(message: Message, exchange: Exchange): void {
    const id = idText(message);
    if (this.#find(id) !== undefined) {
      const error = new GatewayError('request_invalid', `The id ${id} is in use by another request.`);
      exchange.finish(errorReply(id, errorObject(error)));
      return;
    }
    const answer = new Answer(id, message.method, exchange, this.#running);
    try {
      this.#dispatch(message, answer);
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') this.#gateway.events.emit('failure', { where: message.method, error });
      answer.error(errorObject(known));
    }
  }

  /** Takes a notification or a response. */
  accept(message: Message): void {
    if (isResponse(message) || message.method !== 'notifications/cancelled') return;
    const { bytes, paramsStart, paramsEnd } = message;
    const id = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
    const answer = id === null ? undefined : this.#find(bytes.toString('latin1', id.start, id.end));
    if (answer === undefined) return;
    const { reason } = parseParams(message);
    answer.end();
    answer.ticket?.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
    answer.exchange.abandon();
  }

  keepAlive(): void {
    for (const answer of this.#running) answer.exchange.keepAlive();
  }

  /** Ends the peer and cancels what it was waiting for. */
  close(): void {
    this.#closed = true;
    this.#caller?.leave();
    for (const answer of [...this.#running]) {
      answer.end();
      answer.ticket?.cancel('the client is gone');
      answer.exchange.abandon();
    }
  }

  /** Ids are compared as the client wrote them: `7` and `"7"` are different. */
  #find(id: string): Answer | undefined {
    return this.#running.find((answer) => answer.id === id);
  }

  #dispatch(message: Message, answer: Answer): void {
    switch (message.method) {
      case 'tools/call':
      case 'resources/read':
      case 'prompts/get':
        answer.ticket = this.#initialized(message).call(message, answer);
        return;
      case 'ping':
        answer.result(EMPTY);
        return;
      case 'initialize':
        answer.result(this.#initialize(message));
        return;
      default: {
        const kind = listMethods.get(message.method);
        if (kind === undefined)
          throw new GatewayError('method_unknown', `Toolgate does not know the method "${message.method}".`);
        refuseCursor(message);
        this.#list(this.#initialized(message), kind, answer);
      }
    }
  }

  #initialized(message: Message): Caller {
    if (this.#caller === null)
      throw new GatewayError('not_initialized', `Send "initialize" before "${message.method}".`);
    return this.#caller;
  }

  #initialize(message: Message): Buffer {
    if (this.#caller !== null) throw new GatewayError('request_invalid', 'This session is initialized already.');
    const { protocolVersion, _meta } = parseParams(message);
    if ((_meta as Record<string, unknown> | undefined)?.[INSTANCE_KEY] === INSTANCE) {
      throw new GatewayError(
        'request_invalid',
        'A gateway cannot be its own server: remove this entry from its servers.',
      );
    }
    this.#revision = negotiate(protocolVersion);
    const { agent, selection, notify } = this.#options;
    this.#caller = this.#gateway.join({ agent, selection, changed: (kind) => notify(changedMessages[kind]) });
    return toBytes({
      protocolVersion: this.#revision,
      capabilities: { tools: { listChanged: true }, resources: { listChanged: true }, prompts: { listChanged: true } },
      serverInfo: IDENTITY,
    });
  }

  #list(caller: Caller, kind: Kind, answer: Answer): void {
    const { opening } = this.#gateway;
    if (opening === null) {
      answer.result(caller.list(kind));
      return;
    }
    void opening.then(() => {
      if (!this.#closed) answer.result(caller.list(kind));
    });
  }
}

const EMPTY = toBytes({});

/** Lists come whole, so no cursor can be one of ours. */
function refuseCursor(message: Message): void {
  if (message.paramsStart < 0) return;
  const { cursor } = parseParams(message);
  if (cursor !== undefined)
    throw new GatewayError('params_invalid', 'The cursor is unknown: Toolgate lists everything on one page.');
}

/** Hands a message to the peer, whichever kind it is. */
export function deliver(peer: Peer, message: Message, exchange: () => Exchange): void {
  if (isRequest(message)) peer.request(message, exchange());
  else peer.accept(message);
}
