/**
 * One connected client in the revisions with sessions: what each method does, independent of the transport. The door
 * passes in each message with an exchange, and the peer answers through the exchange.
 */
import type { TokenClaims } from '../access/circumstances.ts';
import type { KeptSelection } from '../access/selection.ts';
import type { ListKind } from '../access/view.ts';
import { GatewayError } from '../base/errors.ts';
import type { Caller, ClientOptions, KeptCaller } from '../calls/caller.ts';
import type { McpTasks } from '../calls/tasks/tasks.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type ClientAbilities, NO_ABILITIES } from '../protocol/envelope.ts';
import { toBytes } from '../protocol/json.ts';
import type { ClientTraits } from '../protocol/known-clients.ts';
import { isLogLevel, LOG_LEVELS, type LogLevel } from '../protocol/levels.ts';
import { idText, isRequest, isResponse, type Message, parseParams } from '../protocol/message.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';
import { type Question, unanswerable } from '../protocol/question.ts';
import { LATEST_REVISION, negotiate, type Revision } from '../protocol/revisions.ts';
import { errorObject, errorReply, notificationMessage, requestMessage } from '../protocol/rpc.ts';
import { withoutTasks } from '../protocol/task.ts';
import { Answer, type Client, cancelAll, cancelByMessage, countAwaited, type Exchange, findRunning } from './answer.ts';
import { askAll } from './input-rounds.ts';
import {
  CAPABILITIES,
  idInUse,
  LEGACY_CAPABILITIES,
  methodUnknown,
  readClient,
  readCursor,
  readIntroduction,
  readUri,
  refuseOurselves,
  refuseThrown,
  refuseWith,
  requireListed,
  sendPage,
  sendSkills,
} from './methods.ts';

export interface PeerOptions extends ClientOptions {
  /** Sends a notification that belongs to no request. */
  notify(message: Buffer): void;
  /** Whether such a notification reaches the client now. Absent: it always does. */
  hears?(): boolean;
  /** The client has sent `notifications/initialized`. */
  initialized?(): void;
  /** Absent: no other replica serves the session. */
  readonly shared?: SharedState;
}

/** What other replicas know of a session, and are told. */
export interface SharedState {
  /** In the ids of questions, so that an answer finds the replica that asked. */
  readonly questions: string;
  /** What its caller had before; null for a new session. */
  readonly kept: KeptCaller | null;
  keep(state: KeptCaller): Promise<void>;
  /** A list may have changed since the client was told. */
  announce(kind: ListKind, fingerprint: string, message: Buffer): void;
  /** The client has been sent a list. */
  listed(kind: ListKind, fingerprint: string): void;
  subscribed(uri: string, isOn: boolean): void;
  setLevel(level: string): Promise<void>;
}

/** What a copy of a session has to know. */
export interface RestoredState {
  readonly initialize?: Message;
  readonly isInitialized?: boolean;
  readonly level?: string;
}

const changedMessages: Readonly<Record<ListKind, Buffer>> = {
  tools: notificationMessage('notifications/tools/list_changed'),
  resources: notificationMessage('notifications/resources/list_changed'),
  prompts: notificationMessage('notifications/prompts/list_changed'),
};

const ROOTS_CHANGED = notificationMessage('notifications/roots/list_changed');

/** A server's question that the client has not answered yet. */
interface OpenQuestion {
  readonly question: Question;
  /** The request during which it was asked; null if there was none. */
  readonly answer: Answer | null;
  /** Tells the client that an answer is no longer needed. */
  cancel(reason: string): void;
}

export class Peer implements Client {
  /** Owns the session. */
  readonly principal: string;
  readonly #gateway: Gateway;
  readonly #options: PeerOptions;
  #revision: Revision | null = null;
  #caller: Caller | null = null;
  /** Pending until `initialize` has been answered. Requests that arrive meanwhile are handled after it. */
  #handshake: Promise<void> | null = null;
  #isInitialized = false;
  #audience: ClientAbilities = BEFORE_INITIALIZE;
  /** The requests that have no answer yet. */
  readonly #running: Answer[] = [];
  readonly #questions = new Map<string, OpenQuestion>();
  #lastQuestion = 0;

  constructor(gateway: Gateway, options: PeerOptions) {
    this.#gateway = gateway;
    this.#options = options;
    this.principal = options.identity.principal;
  }

  get identity(): object {
    return this.#gateway.identity;
  }

  /** The client goes on with another token. */
  setClaims(claims: TokenClaims | null): void {
    this.#caller?.setClaims(claims);
  }

  /** The revision agreed on; null before `initialize`. */
  get revision(): Revision | null {
    return this.#revision;
  }

  /** Whether the client has sent `notifications/initialized`. */
  get isInitialized(): boolean {
    return this.#isInitialized;
  }

  /** What is known of the client; null before `initialize`. */
  get traits(): ClientTraits | null {
    return this.#caller?.own.traits ?? null;
  }

  get inFlight(): number {
    return this.#running.length;
  }

  /** The running requests that still have a client connected. */
  get awaited(): number {
    return countAwaited(this.#running);
  }

  /** MCP tasks exist only in the last revision that has sessions. */
  get #hasTasks(): boolean {
    return this.#revision === LATEST_REVISION;
  }

  /** Makes it a copy of the session that another replica has, or brings it up to date. */
  restore({ initialize, isInitialized, level }: RestoredState): void {
    if (initialize !== undefined) this.#initialize(initialize);
    if (isInitialized === true && !this.#isInitialized) {
      this.#isInitialized = true;
      this.#options.initialized?.();
    }
    if (isLogLevel(level)) this.#takeLevel(level);
  }

  /** Another replica has switched tools for the client. */
  adopt(kept: KeptSelection | null): void {
    this.#caller?.adopt(kept);
  }

  async subscribe(uri: string): Promise<void> {
    await this.#caller?.subscribe(uri);
  }

  unsubscribe(uri: string): void {
    this.#caller?.unsubscribe(uri);
  }

  /** Whether a call may be made a second time, because the operator says so. */
  isRepeatable(message: Message): boolean {
    return this.#caller !== null && this.#gateway.pipeline.isRepeatable(this.#caller, message);
  }

  /** Starts a request. The answer goes through the exchange. */
  request(message: Message, exchange: Exchange): void {
    const id = idText(message);
    if (findRunning(this.#running, id) !== undefined) {
      exchange.finish(errorReply(id, errorObject(idInUse(id))));
      return;
    }
    // Earlier revisions define no MCP tasks, so a request for one is removed.
    const asked = withoutTasks(message, this.#hasTasks);
    const answer = new Answer(asked, exchange, this.#running, this, this.#audience, 'legacy', null);
    if (this.#handshake === null) this.#take(asked, answer);
    else void this.#handshake.then(() => this.#take(asked, answer));
  }

  #take(message: Message, answer: Answer): void {
    try {
      this.#dispatch(message, answer);
    } catch (error) {
      refuseThrown(this.#gateway, answer, error);
    }
  }

  accept(message: Message): void {
    if (isResponse(message)) this.#settle(message);
    else if (message.method === 'notifications/cancelled') cancelByMessage(this.#running, message);
    else if (message.method === 'notifications/roots/list_changed') this.#caller?.tell(ROOTS_CHANGED);
    else if (message.method === 'notifications/initialized' && this.#revision !== null) {
      this.#isInitialized = true;
      this.#options.initialized?.();
    }
  }

  ask(answer: Answer, question: Question): void {
    const { exchange } = answer;
    const { notify } = this.#options;
    // A lasting question ends if its call is cancelled, but outlives the call's answer.
    answer.wasAsked ||= !question.lasting;
    const isOver = () => question.lasting && answer.place < 0;
    this.#pose(question, answer, (message) => (isOver() ? notify(message) : exchange.send(message)));
  }

  #pose(question: Question, answer: Answer | null, send: (message: Buffer) => void): void {
    // A client may still answer a question of the gateway that its window had before: no two have the same id.
    const { before = 0 } = this.#options.window ?? {};
    const { questions } = this.#options.shared ?? {};
    const mark = questions ?? (before === 0 ? null : before);
    const requestId = `toolgate-${mark === null ? '' : `${mark}-`}${++this.#lastQuestion}`;
    const id = JSON.stringify(requestId);
    const cancel = (reason: string) => {
      this.#questions.delete(id);
      send(notificationMessage('notifications/cancelled', toBytes({ requestId, reason })));
    };
    this.#questions.set(id, { question, answer, cancel });
    question.withdrawn = cancel;
    send(requestMessage(requestId, question.method, question.params ?? EMPTY));
  }

  askAll(answer: Answer, result: Buffer): void {
    askAll(answer, result, (message) => answer.start(this.#gateway.pipeline, this.#caller!, message));
  }

  /** Returns false: clients with a session understand the server's error itself. */
  sendTo(): boolean {
    return false;
  }

  /** Closes the questions of a request that is over: the server no longer needs the answers, and the client is told. */
  left(answer: Answer): void {
    this.#closeQuestions((open) => open.answer === answer, 'the call is over');
  }

  #closeQuestions(matches: (open: OpenQuestion) => boolean, why: string): void {
    for (const open of [...this.#questions.values()].filter(matches)) {
      open.cancel(why);
      open.question.refuse(unanswerable(open.question.method, why));
    }
  }

  #settle(message: Message): void {
    const id = message.idStart < 0 ? '' : idText(message);
    const open = this.#questions.get(id);
    if (open === undefined) return;
    this.#questions.delete(id);
    const { bytes, resultStart, resultEnd, errorStart, errorEnd } = message;
    if (bytes[resultStart] === 0x7b) open.question.answer(bytes.subarray(resultStart, resultEnd));
    else if (bytes[errorStart] === 0x7b) open.question.refuse(bytes.subarray(errorStart, errorEnd));
    else
      open.question.refuse(
        unanswerable(open.question.method, 'the client answered with neither a result nor an error'),
      );
  }

  keepAlive(): void {
    for (const answer of this.#running) answer.exchange.keepAlive();
  }

  /** Ends the peer and cancels its requests. A client whose credential was revoked is told so. */
  close(isTurnedOut = false): void {
    if (isTurnedOut) for (const answer of [...this.#running]) answer.turnOut();
    this.#gateway.tasks.leave(this);
    cancelAll(this.#running);
    this.#closeQuestions(() => true, 'the client is gone');
    this.#caller?.leave();
  }

  #dispatch(message: Message, answer: Answer): void {
    switch (message.method) {
      case 'tools/call':
      case 'resources/read':
      case READ_DIRECTORY:
      case 'prompts/get':
      case 'completion/complete':
        answer.start(this.#gateway.pipeline, this.#initialized(message), message);
        return;
      case 'logging/setLevel':
        this.#initialized(message);
        this.#setLogLevel(message);
        answer.own(EMPTY);
        return;
      case 'resources/subscribe': {
        const uri = readUri(message);
        this.#initialized(message)
          .subscribe(uri)
          .then(
            () => {
              this.#options.shared?.subscribed(uri, true);
              answer.own(EMPTY);
            },
            (error: unknown) => refuseWith(answer, error),
          );
        return;
      }
      case 'resources/unsubscribe':
        this.#initialized(message).unsubscribe(readUri(message));
        this.#options.shared?.subscribed(readUri(message), false);
        answer.own(EMPTY);
        return;
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
        answer.ticket = this.#tasks(message).call(this.principal, 'legacy', message, answer);
        return;
      case 'tasks/list':
        if (readCursor(message) !== null)
          throw new GatewayError('params_invalid', 'tasks/list has a single page: send no "cursor".');
        void this.#tasks(message)
          .list(this.principal)
          .then((list) => answer.own(list));
        return;
      case 'skills/list':
      case 'skills/get':
        sendSkills(this.#gateway, this.#initialized(message), answer);
        return;
      case 'ping':
        answer.own(EMPTY);
        return;
      case 'initialize':
        this.#greet(this.#initialize(message), answer);
        return;
      default: {
        const kind = requireListed(message);
        sendPage(this.#gateway, this.#initialized(message), kind, answer);
      }
    }
  }

  #initialized(message: Message): Caller {
    if (this.#caller === null)
      throw new GatewayError('not_initialized', `Send "initialize" before "${message.method}".`);
    return this.#caller;
  }

  #tasks(message: Message): McpTasks {
    this.#initialized(message);
    if (!this.#hasTasks) throw methodUnknown(message.method);
    return this.#gateway.tasks;
  }

  #initialize(message: Message): Caller {
    if (this.#caller !== null) throw new GatewayError('request_invalid', 'This session is already initialized.');
    refuseOurselves(message, this.#gateway.instance);
    const { protocolVersion } = parseParams(message);
    const revision = negotiate(protocolVersion, this.#gateway.config.revisions);
    if (revision === null) throw sessionless(this.#gateway.config.revisions);
    this.#audience = { ...readClient(message), logLevel: this.#audience.logLevel };
    this.#revision = revision;
    const { identity, scope, door, clientId = null, window, notify, hears = () => true, shared } = this.#options;
    this.#gateway.tasks.join(this, notify);
    this.#caller = this.#gateway.join({
      identity,
      scope,
      door,
      clientId,
      ...(window !== undefined && { window }),
      revision,
      traits: readIntroduction(message),
      ...(shared !== undefined && {
        shared: { ...shared, known: shared.kept?.known ?? null, selection: shared.kept?.selection ?? null },
      }),
      changed: (kind, fingerprint) => {
        if (shared === undefined) notify(changedMessages[kind]);
        else shared.announce(kind, fingerprint, changedMessages[kind]);
      },
      hears,
      updated: (uri) => notify(notificationMessage('notifications/resources/updated', toBytes({ uri }))),
      client: { abilities: this.#audience, ask: (question) => this.#pose(question, null, notify), tell: notify },
    });
    return this.#caller;
  }

  #greet(caller: Caller, answer: Answer): void {
    const { introducing } = this.#gateway;
    const greet = () => {
      this.#handshake = null;
      const instructions = caller.introduction();
      answer.own(
        toBytes({
          protocolVersion: this.#revision,
          capabilities: this.#hasTasks ? LEGACY_CAPABILITIES : CAPABILITIES,
          serverInfo: this.identity,
          ...(instructions !== '' && { instructions }),
        }),
      );
    };
    if (introducing === null) greet();
    else this.#handshake = introducing.then(greet);
  }

  #setLogLevel(message: Message): void {
    const { level } = parseParams(message);
    if (!isLogLevel(level)) {
      throw new GatewayError('params_invalid', `"level" must be one of ${LOG_LEVELS.join(', ')}.`);
    }
    this.#takeLevel(level);
    void this.#options.shared?.setLevel(level).catch(() => {});
  }

  #takeLevel(level: LogLevel): void {
    this.#audience = { ...this.#audience, logLevel: level };
    this.#gateway.setLogLevel(level);
  }
}

const EMPTY = toBytes({});

/** The abilities before `initialize`. Until the client sets a log level, it gets log messages of `info` and above. */
const BEFORE_INITIALIZE: ClientAbilities = { ...NO_ABILITIES, logLevel: 'info' };

/** Passes a message of any kind to the peer. */
export function deliver(peer: Peer, message: Message, exchangeFor: (message: Message) => Exchange): void {
  if (isRequest(message)) peer.request(message, exchangeFor(message));
  else peer.accept(message);
}

/** The error for a client that asks for a session if none of the configured revisions has sessions. */
function sessionless(supported: readonly string[]): GatewayError {
  return new GatewayError(
    'version_unsupported',
    `This gateway has no sessions: it speaks ${supported.join(', ')} only.`,
  );
}
