/**
 * A client in the revision without sessions: each request carries everything needed to understand it. We keep only the
 * agent's selection, the running requests and the subscriptions.
 */
import type { KeptSelection } from '../access/selection.ts';
import type { ListKind } from '../access/view.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import type { Caller, ClientOptions, SharedCaller } from '../calls/caller.ts';
import { isInvalid } from '../calls/identity.ts';
import { asFirst, digestOf, readAnswers } from '../calls/parked.ts';
import type { TaskSubscription } from '../calls/tasks/tasks.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { MOST_QUESTIONS } from '../protocol/asked-by.ts';
import { silentChannel } from '../protocol/contract.ts';
import { type ClientAbilities, traitsIn } from '../protocol/envelope.ts';
import { toBytes } from '../protocol/json.ts';
import type { ClientTraits } from '../protocol/known-clients.ts';
import { idText, type Message, parseParams } from '../protocol/message.ts';
import { READ_DIRECTORY, SUBSCRIPTION_ID } from '../protocol/meta.ts';
import type { Headers } from '../protocol/param-headers.ts';
import { ASKING, inputRequired, type Question, URL_MODE, unanswerable } from '../protocol/question.ts';
import { MODERN_REVISION } from '../protocol/revisions.ts';
import { notificationMessage, resultReply } from '../protocol/rpc.ts';
import { underSubscription, withoutTasks } from '../protocol/task.ts';
import { Answer, type Client, cancelAll, cancelByMessage, countAwaited, type Exchange, findRunning } from './answer.ts';
import {
  after,
  idInUse,
  MODERN_CAPABILITIES,
  refuseOurselves,
  refuseThrown,
  requireListed,
  requireTasks,
  sendPage,
  sendSkills,
} from './methods.ts';

export interface ModernOptions extends ClientOptions {
  /** Absent: no other replica has this client. */
  readonly shared?: SharedCaller;
  /** Whether all requests come from one client. Then their ids must be unique. */
  readonly isSingle: boolean;
}

const MOST_LISTENING = 1_024;
/** The most calls whose questions are counted. */
const MOST_ASKING = 1_000;
const RESPONSES = '"inputResponses"';

/** What one `subscriptions/listen` subscribes to. */
interface ListenInterests {
  readonly kinds: ReadonlySet<ListKind>;
  readonly uris: ReadonlySet<string>;
  readonly tasks: TaskSubscription;
}

const FILTERS: Readonly<Record<ListKind, string>> = {
  tools: 'toolsListChanged',
  resources: 'resourcesListChanged',
  prompts: 'promptsListChanged',
};

const URL_CAPABILITY = { requiredCapabilities: { elicitation: { url: {} } } };

function discovery(instructions: string, supported: readonly string[]): Buffer {
  return toBytes({
    supportedVersions: supported,
    capabilities: MODERN_CAPABILITIES,
    ...(instructions !== '' && { instructions }),
  });
}

export class ModernPeer implements Client {
  /** Owns the parked calls and the MCP tasks. */
  readonly principal: string;
  readonly #gateway: Gateway;
  readonly #isSingle: boolean;
  readonly #caller: Caller;
  readonly #running: Answer[] = [];
  /**
   * The `subscriptions/listen` requests. They are kept apart because they never finish, so nothing may wait for them.
   */
  readonly #listening: Answer[] = [];
  /** How many questions calls that are not complete have asked so far. */
  readonly #questions = new BoundedMap<string, number>(MOST_ASKING);
  /** What each `subscriptions/listen` request subscribes to. */
  readonly #interests = new WeakMap<Answer, ListenInterests>();

  constructor(gateway: Gateway, options: ModernOptions) {
    const { identity, scope, door, clientId = null, window, isSingle, shared } = options;
    this.#gateway = gateway;
    this.#isSingle = isSingle;
    this.principal = identity.principal;
    this.#caller = gateway.join({
      identity,
      scope,
      door,
      clientId,
      ...(window !== undefined && { window }),
      revision: MODERN_REVISION,
      ...(shared !== undefined && { shared }),
      changed: (kind) => this.#changed(kind),
      hears: (client) => this.#hears(client),
      updated: (uri) => this.#updated(uri),
      client: { ...silentChannel(), abilities: null },
    });
  }

  get identity(): object {
    return this.#gateway.identity;
  }

  get inFlight(): number {
    return this.#running.length;
  }

  /** The running requests that still have a client connected. */
  get awaited(): number {
    return countAwaited(this.#running);
  }

  /** Starts a request whose envelope has been checked. The answer goes through the exchange. */
  request(received: Message, audience: ClientAbilities, exchange: Exchange, headers: Headers | null): Answer {
    // In this revision the server decides whether a call becomes an MCP task, so the client's request for one is
    // removed.
    const message = withoutTasks(received, false);
    const isListening = message.method === 'subscriptions/listen';
    const taken = this.#isSingle && this.#find(idText(message)) !== undefined;
    const running = taken ? [] : isListening ? this.#listening : this.#running;
    const answer = new Answer(message, exchange, running, this, audience, 'modern', headers);
    try {
      if (taken) throw idInUse(answer.id);
      this.#dispatch(message, answer);
    } catch (error) {
      refuseThrown(this.#gateway, answer, error);
    }
    return answer;
  }

  accept(message: Message): void {
    if (message.method !== 'notifications/cancelled') return;
    cancelByMessage(this.#running, message);
    cancelByMessage(this.#listening, message);
  }

  ask(answer: Answer, question: Question): void {
    if (!ASKING.has(answer.message.method)) {
      question.refuse(unanswerable(question.method, `no questions are possible during ${answer.message.method}`));
      return;
    }
    answer.parked ??= this.#gateway.parked.begin(this.principal, answer.message, answer, (reason) =>
      answer.ticket?.cancel(reason),
    );
    answer.parked.ask(question);
  }

  sendTo(answer: Answer, urls: readonly Buffer[]): boolean {
    if (!ASKING.has(answer.message.method)) return false;
    if (!answer.asks.has(URL_MODE)) {
      const text = 'The server needs a client that can open a URL for its user (elicitation with the mode "url").';
      answer.fail(new GatewayError('capability_missing', text, { details: URL_CAPABILITY }));
      return true;
    }
    const asked = urls.map((url, index): [string, Pick<Question, 'method' | 'params'>] => [
      `address-${index + 1}`,
      { method: 'elicitation/create', params: url },
    ]);
    const state = this.#gateway.parked.stateFor(this.principal, answer.message);
    answer.finish(resultReply(answer.id, inputRequired(new Map(asked), state)));
    return true;
  }

  /** Does nothing: a modern server's questions reach a modern client as the result itself. */
  askAll(): void {}

  left(answer: Answer): void {
    const interests = this.#interests.get(answer);
    for (const uri of interests?.uris ?? []) this.#caller.unsubscribe(uri);
    interests?.tasks.stop();
    this.#interests.delete(answer);
  }

  /** Another replica has switched tools for the client. */
  adopt(kept: KeptSelection | null): void {
    this.#caller.adopt(kept);
  }

  /** Whether closing it would lose only the selection. */
  get isIdle(): boolean {
    return this.#running.length === 0 && this.#listening.length === 0;
  }

  /**
   * Keeps streams open. A call that was admitted gets its answer even if the credential has expired since; a
   * subscription needs a valid credential throughout.
   */
  keepAlive(now: number): void {
    for (const answer of this.#running) answer.exchange.keepAlive();
    for (const answer of [...this.#listening]) {
      const { credential } = answer.exchange;
      if (credential != null && isInvalid(credential, now)) answer.cancel('its credential has expired');
      else answer.exchange.keepAlive();
    }
  }

  /** Ends the requests whose credential was revoked. */
  turnOut(): void {
    for (const answer of [...this.#running, ...this.#listening])
      if (answer.exchange.credential?.revocation.isRevoked === true) answer.turnOut();
  }

  close(): void {
    cancelAll(this.#running);
    this.#caller.leave();
    // An answer tells the client that the end is intentional. If the stream just broke off, it would reconnect at once.
    for (const answer of [...this.#listening]) answer.result(latin1(`{"_meta":${subscription(answer)}}`), 'legacy');
  }

  #find(id: string): Answer | undefined {
    return findRunning(this.#running, id) ?? findRunning(this.#listening, id);
  }

  #dispatch(message: Message, answer: Answer): void {
    switch (message.method) {
      case 'tools/call':
      case 'resources/read':
      case READ_DIRECTORY:
      case 'prompts/get':
      case 'completion/complete':
        if (answer.logLevel !== null) this.#gateway.setLogLevel(answer.logLevel);
        if (this.#resume(message, answer)) return;
        this.#countAnswers(message, answer);
        answer.start(this.#gateway.pipeline, this.#caller, asFirst(message));
        return;
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        requireTasks(answer);
        answer.ticket = this.#gateway.tasks.call(this.principal, 'modern', message, answer);
        return;
      case 'server/discover':
        refuseOurselves(message, this.#gateway.instance);
        after(this.#gateway.introducing, answer, () =>
          answer.own(discovery(this.#caller.introduction(traitsIn(message)), this.#gateway.config.revisions)),
        );
        return;
      case 'subscriptions/listen':
        this.#listen(message, answer);
        return;
      case 'skills/list':
      case 'skills/get':
        sendSkills(this.#gateway, this.#caller, answer);
        return;
      default:
        sendPage(this.#gateway, this.#caller, requireListed(message), answer);
    }
  }

  /** Continues a parked call with the client's answers. False if the message does not continue one. */
  #resume(message: Message, answer: Answer): boolean {
    const cancel = this.#gateway.parked.resume(this.principal, message, answer);
    if (cancel === null) return false;
    answer.ticket = { cancel };
    return true;
  }

  /**
   * A server of this revision asks by its result, and the client sends the call again with the answers. So the questions
   * of a call are counted by the answers that come with its repetitions. Calls without answers cost nothing.
   */
  #countAnswers(message: Message, answer: Answer): void {
    if (!message.bytes.includes(RESPONSES)) return;
    const call = digestOf(message);
    const count = (this.#questions.get(call) ?? 0) + readAnswers(message).size;
    this.#questions.delete(call);
    if (count > MOST_QUESTIONS)
      throw new GatewayError('source_broken', `The server asked more than ${MOST_QUESTIONS} questions in one call.`);
    this.#questions.set(call, count);
    answer.completed = () => this.#questions.delete(call);
  }

  #listen(message: Message, answer: Answer): void {
    if (this.#listening.length > MOST_LISTENING)
      throw new GatewayError(
        'sessions_full',
        `More than ${MOST_LISTENING} subscriptions are open. Close some, or try again later.`,
      );
    const { notifications } = parseParams(message);
    if (typeof notifications !== 'object' || notifications === null || Array.isArray(notifications)) {
      throw new GatewayError(
        'params_invalid',
        'subscriptions/listen needs an object "notifications" in its parameters.',
      );
    }
    const asked = notifications as Readonly<Record<string, unknown>>;
    const kinds = new Set((Object.keys(FILTERS) as ListKind[]).filter((kind) => asked[FILTERS[kind]] === true));
    const lists = Object.fromEntries([...kinds].map((kind) => [FILTERS[kind], true]));
    const uris = textsIn(asked.resourceSubscriptions);
    const taskIds = textsIn(asked.taskIds);
    if (asked.taskIds !== undefined) requireTasks(answer);
    const { subscriptions: most } = this.#gateway.config.limits;
    if (uris.length > most || taskIds.length > most)
      throw new GatewayError(
        'too_large',
        `The request names ${Math.max(uris.length, taskIds.length)} resources or tasks; limits.subscriptions allows ${most}.`,
      );
    // Task notifications that arrive before our acknowledgement are held back until it has been sent.
    let early: Buffer[] | null = [];
    const send = (task: Buffer) => answer.notify(taskNotification(answer, task));
    const receive = (task: Buffer) => (early === null ? send(task) : void early.push(task));
    const listened = this.#gateway.tasks.listen(this.principal, taskIds, receive);
    void Promise.all([this.#subscribe(uris), listened]).then(([honoured, tasks]) => {
      const notifications = {
        ...lists,
        ...(uris.length > 0 && { resourceSubscriptions: honoured }),
        ...(taskIds.length > 0 && { taskIds: tasks.ids }),
      };
      this.#interests.set(answer, { kinds, uris: new Set(honoured), tasks });
      if (answer.place < 0) {
        this.left(answer);
        return;
      }
      answer.notify(notification('notifications/subscriptions/acknowledged', answer, { notifications }));
      early?.forEach(send);
      early = null;
    });
  }

  /**
   * Subscribes, and returns the URIs that succeeded. Unknown ones are left out, and those of servers that send no
   * updates.
   */
  async #subscribe(uris: readonly string[]): Promise<string[]> {
    const outcomes = await Promise.allSettled(uris.map((uri) => this.#caller.subscribe(uri)));
    return uris.filter((_, index) => outcomes[index]!.status === 'fulfilled');
  }

  #updated(uri: string): void {
    for (const answer of this.#listening)
      if (this.#interests.get(answer)?.uris.has(uri))
        answer.notify(notification('notifications/resources/updated', answer, { uri }));
  }

  #hears(client: ClientTraits): boolean {
    return this.#listening.some(
      (answer) => this.#interests.get(answer)?.kinds.has('tools') === true && traitsIn(answer.message) === client,
    );
  }

  #changed(kind: ListKind): void {
    for (const answer of this.#listening)
      if (this.#interests.get(answer)?.kinds.has(kind))
        answer.notify(notification(`notifications/${kind}/list_changed`, answer));
  }
}

function textsIn(list: unknown): string[] {
  return Array.isArray(list) ? [...new Set(list.filter((text) => typeof text === 'string'))] : [];
}

/** The `_meta` that tells the client which subscription a message belongs to. */
function subscription({ id }: Answer): string {
  return `{"${SUBSCRIPTION_ID}":${id}}`;
}

function notification(method: string, answer: Answer, params: object = {}): Buffer {
  const members = Object.entries(params).map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`);
  const more = Buffer.from(members.join('')).toString('latin1');
  return latin1(`{"jsonrpc":"2.0","method":"${method}","params":{"_meta":${subscription(answer)}${more}}}`);
}

/** A server's notification about an MCP task, under the id of the client's own subscription. */
function taskNotification({ id }: Answer, params: Buffer): Buffer {
  return notificationMessage('notifications/tasks', underSubscription(params, latin1(id)));
}

/** Encodes text that contains an id: ids are returned byte for byte as the client sent them. */
function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
