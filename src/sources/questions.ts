/**
 * What servers ask. A question for a user or a model goes to the caller whose call it belongs to. On a shared channel
 * nothing says which call that is. If only one call can be meant, its caller is asked. If there are several, the
 * question waits until one is left, and is refused if that takes too long. Nothing is guessed. A question on a
 * connection that belongs to one client is for that client.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { askedBy, BadQuestion, MOST_OPEN_QUESTIONS } from '../protocol/asked-by.ts';
import type { ClientChannel, SourceRequest } from '../protocol/contract.ts';
import { elicitationId, requiredUrls } from '../protocol/elicitation.ts';
import { findMember, toBytes } from '../protocol/json.ts';
import { idText, type Message, parseParams } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { capabilityFor, isAskable, type Question, unanswerable } from '../protocol/question.ts';
import { errorReply, type Reply, resultReply } from '../protocol/rpc.ts';
import { relatedTask } from '../protocol/task.ts';
import { questionCandidates } from './attribution.ts';
import type { PendingRequest, PendingRequests } from './pending.ts';

export interface QuestionEvents {
  /** The server has asked its client something. `isStray`: on a channel that does not say which request it is about. */
  asked(isStray: boolean): void;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

/** How long a question waits for its addressee to become certain. */
const UNCERTAIN = 2_000;
const LOOK_AGAIN = 25;
/** How long a question about a task waits for a client to ask for the result. Clients poll the status first. */
const UNTIL_RESULT = 60_000;

/** A question that was passed on and has no answer yet. */
interface PassedQuestion {
  readonly question: Question;
  /** Starts the clock of its call again. */
  resume(): void;
}

const NO_ROOTS = toBytes({ roots: [] });
const nothing = () => {};

export class Questions {
  readonly #requests: PendingRequests;
  readonly #send: (message: Buffer) => void;
  readonly #events: QuestionEvents;
  readonly #client: ClientChannel | null;
  readonly #elicitations = new Elicitations();
  /** Open questions by the server's own ids; null while the addressee is not certain. */
  readonly #open = new Map<string, PassedQuestion | null>();

  /** `send` sends our answers. `client` is the one that the connection belongs to; null for a shared one. */
  constructor(
    requests: PendingRequests,
    send: (message: Buffer) => void,
    events: QuestionEvents,
    client: ClientChannel | null,
  ) {
    this.#requests = requests;
    this.#send = send;
    this.#events = events;
    this.#client = client;
  }

  /** Whether a user may still be busy at a URL that the server sent them to. */
  get isAwaited(): boolean {
    return this.#elicitations.isOpen;
  }

  /** `id` is the request whose reply the question came with; null on a shared channel. */
  receive(message: Message, id: number | null): void {
    const { method } = message;
    const capability = capabilityFor(method, paramsOf(message));
    const key = idText(message);
    if (method === 'ping') this.#reply(resultReply(key, toBytes({})));
    // A server may restrict itself to the roots that it gets, and a shared server serves all clients.
    else if (method === 'roots/list' && this.#client === null) this.#reply(resultReply(key, NO_ROOTS));
    else if (capability === null)
      this.#reply(errorReply(key, unanswerable(method, 'it is not a question to a client')));
    else if (this.#open.size >= MOST_OPEN_QUESTIONS * Math.max(1, this.#requests.size))
      this.#reply(errorReply(key, unanswerable(method, 'too many questions are open already')));
    else {
      this.#events.asked(id === null);
      this.#open.set(key, null);
      const wait = relatedTask(message) === null ? UNCERTAIN : UNTIL_RESULT;
      this.#pass(message, capability, id, performance.now() + wait);
    }
  }

  /** Takes a notification about a question; false for any other. */
  hear(message: Message): boolean {
    const { method, bytes, paramsStart, paramsEnd } = message;
    if (method === 'notifications/elicitation/complete') {
      this.#elicitations.complete(message);
      return true;
    }
    if (method !== 'notifications/cancelled') return false;
    const id = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
    const { reason } = parseParams(message);
    if (id !== null)
      this.#withdraw(bytes.toString('latin1', id.start, id.end), typeof reason === 'string' ? reason : 'cancelled');
    return true;
  }

  /** The server answered with an error. It may ask the user to open URLs first. */
  failed({ client }: SourceRequest, error: Buffer): void {
    for (const params of requiredUrls(error)) this.#elicitations.note(params, client);
  }

  /** The server is gone, so the answers are no longer needed. */
  close(reason: string): void {
    for (const key of [...this.#open.keys()]) this.#withdraw(key, reason);
  }

  #pass(message: Message, capability: string, id: number | null, deadline: number): void {
    const key = idText(message);
    if (this.#open.get(key) !== null) return;
    const found = questionCandidates(this.#requests, capability, id, relatedTask(message));
    const owner = this.#client?.abilities?.asks.has(capability) === true ? this.#client : null;
    if (found?.length === 1) {
      const { sink, client } = found[0]!.request;
      this.#ask(message, sink, client, owner !== null && id === null, [found[0]!]);
    } else if (owner !== null) {
      this.#ask(message, owner, owner, true, []);
    } else if (found !== null && isOneClient(found)) {
      // Whichever of its calls the question belongs to, it is for this client. It may outlive the call it is sent with.
      const { sink, client } = found[0]!.request;
      this.#ask(message, sink, client, true, found);
    } else if (found?.length !== 0 && performance.now() < deadline) {
      setTimeout(() => this.#pass(message, capability, id, deadline), LOOK_AGAIN);
    } else {
      this.#open.delete(key);
      this.#reply(this.#refusal(message, found));
    }
  }

  #ask(
    message: Message,
    addressee: { ask(question: Question): void },
    client: ClientChannel | null,
    lasting: boolean,
    during: readonly (PendingRequest | null)[],
  ): void {
    const key = idText(message);
    const calls = during.filter((pending) => pending !== null);
    const params = this.#accept(message, calls);
    if (params === undefined) return;
    const resumes = calls.map((pending) => pending.pause());
    const resume = () => {
      for (const one of resumes) one();
    };
    const settle = (answer: Reply) => {
      if (this.#open.get(key)?.question !== question) return;
      this.#open.delete(key);
      resume();
      this.#reply(answer);
    };
    const question: Question = {
      method: message.method,
      params,
      lasting,
      answer: (result) => settle(resultReply(key, result)),
      refuse: (error) => settle(errorReply(key, error)),
      withdrawn: nothing,
    };
    this.#open.set(key, { question, resume });
    this.#elicitations.note(question.params, client);
    addressee.ask(question);
  }

  /** The parameters as the caller gets them. Undefined if the question is refused: then the server has been told why. */
  #accept(message: Message, calls: readonly PendingRequest[]): Buffer | null | undefined {
    const { method } = message;
    const refuse = (why: string) => {
      const key = idText(message);
      this.#open.delete(key);
      this.#reply(errorReply(key, unanswerable(method, why)));
      return undefined;
    };
    for (const pending of calls) {
      const why = pending.countQuestion();
      if (why !== null) return refuse(why);
    }
    try {
      return askedBy(this.#requests.source, method, paramsOf(message));
    } catch (error) {
      if (!(error instanceof BadQuestion)) throw error;
      return refuse(error.message);
    }
  }

  /** For a question with no addressee, or with too many. */
  #refusal(message: Message, found: readonly (PendingRequest | null)[] | null): Reply {
    const { method } = message;
    const key = idText(message);
    if (method === 'roots/list') {
      this.#events.note('asked for roots, but no client can be asked for them; it got an empty list');
      return resultReply(key, NO_ROOTS);
    }
    return errorReply(key, unanswerable(method, refusalReason(found)));
  }

  #withdraw(key: string, reason: string): void {
    const known = this.#open.get(key);
    this.#open.delete(key);
    known?.resume();
    known?.question.withdrawn(reason);
  }

  #reply({ head, body, tail }: Reply): void {
    this.#send(Buffer.concat([Buffer.from(head), join(body), Buffer.from(tail, 'latin1')]));
  }
}

/** Whether all these requests are of one client with a session, so that it is certain who is asked. */
function isOneClient(found: readonly (PendingRequest | null)[]): found is readonly PendingRequest[] {
  const first = found[0]?.request;
  if (first === undefined || first.client?.abilities == null) return false;
  return found.every((pending) => pending?.request.client === first.client && isAskable(pending.request.sink));
}

function refusalReason(found: readonly (PendingRequest | null)[] | null): string {
  if (found === null) return 'nobody has asked for the result of its task';
  return found.length === 0 ? 'the client of the call does not support it' : 'it may be meant for several clients';
}

function paramsOf({ bytes, paramsStart, paramsEnd }: Message): Buffer | null {
  return paramsStart < 0 ? null : bytes.subarray(paramsStart, paramsEnd);
}

const MOST_ELICITATIONS = 1_000;
/** How long a process that would otherwise be stopped is kept for users who may still be busy at a URL. */
const PATIENCE = 10 * 60_000;

/** Which client was sent to which URL. Only that client is notified when its user is done there. */
class Elicitations {
  readonly #clients = new BoundedMap<string, ClientChannel>(MOST_ELICITATIONS);
  #last = Number.NEGATIVE_INFINITY;

  get isOpen(): boolean {
    return this.#clients.size > 0 && performance.now() - this.#last < PATIENCE;
  }

  /** The client was sent to the URL in these parameters. */
  note(params: Buffer | null, client: ClientChannel | null): void {
    const id = elicitationId(params);
    // Clients without a session are not notified: their revision has no such notification.
    if (id === null || client === null || client.abilities === null) return;
    this.#clients.set(id, client);
    this.#last = performance.now();
  }

  complete({ bytes, paramsStart, paramsEnd }: Message): void {
    const id = paramsStart < 0 ? null : elicitationId(bytes.subarray(paramsStart, paramsEnd));
    if (id === null) return;
    this.#clients.get(id)?.tell(bytes);
    this.#clients.delete(id);
  }
}
