/**
 * Calls from the page. Each goes through the pipeline like any other: policy, approvals, limits and audit apply to the
 * agent that it is made for. Progress, log messages and questions of the server become events; a person answers.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { findTool } from '../access/find.ts';
import { GatewayError } from '../base/errors.ts';
import { redacted } from '../base/events.ts';
import { type JsonObject, toObject } from '../base/objects.ts';
import { type Caller, FULL_SCOPE } from '../calls/caller.ts';
import { operatorIdentity, programIdentity } from '../calls/identity.ts';
import { DRY_RUN } from '../calls/macros/run.ts';
import { AGENT_NAME, WRONG_NAME } from '../config/agents.ts';
import { Answer, type Client, type Exchange } from '../doors/answer.ts';
import { askAll } from '../doors/input-rounds.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { READS_AT_ONCE } from '../protocol/contract.ts';
import type { ClientAbilities } from '../protocol/envelope.ts';
import { toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { join, sizeOf } from '../protocol/parts.ts';
import { FORM_MODE, type Question, URL_MODE, unanswerable } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import type { TryEvents } from './api-types.ts';
import type { AnswerInput, TryInput } from './inputs.ts';
import type { PageSession } from './page-sessions.ts';
import { eventText } from './streams.ts';

export interface Tries {
  /** Calls it, and writes what happens to the response. The call is cancelled with its session. */
  start(asked: TryInput, session: PageSession, response: ServerResponse, headers: readonly string[]): Promise<void>;
  answer(id: string, question: string, answer: AnswerInput): void;
  cancel(id: string): null;
  close(): void;
}

const MOST_TRIES = 32;
const KEEPALIVE = 15_000;
/** Bytes that a page may leave unread. Beyond that it gets no more progress and log messages. */
const MOST_UNREAD = 1_024 * 1_024;
const METHODS = { tool: 'tools/call', resource: 'resources/read', prompt: 'prompts/get' } as const;

/** What the person at the page can be asked. */
const ABILITIES: ClientAbilities = {
  capabilities: '{"elicitation":{"form":{},"url":{}}}',
  asks: new Set([FORM_MODE, URL_MODE]),
  logLevel: 'debug',
  tasks: false,
};

export function createTries(gateway: Gateway, isValid: (session: PageSession) => Promise<boolean>): Tries {
  const running = new Map<string, PageTry>();

  function find(id: string): PageTry {
    const found = running.get(id);
    if (found === undefined) throw new GatewayError('path_unknown', 'This call is over.');
    return found;
  }

  return {
    async start(asked, session, response, headers) {
      if (running.size >= MOST_TRIES)
        throw new GatewayError(
          'source_busy',
          `There are ${MOST_TRIES} calls of pages under way already. Wait for one.`,
        );
      const { agent } = asked;
      if (agent !== null && !AGENT_NAME.test(agent)) throw new GatewayError('params_invalid', `"agent": ${WRONG_NAME}`);
      await gateway.opening;
      const caller = gateway.join({
        identity: agent === null ? operatorIdentity() : programIdentity(agent),
        scope: { ...FULL_SCOPE, selection: 'all' },
        door: 'local',
      });
      let message: Message;
      try {
        message = tryMessage(asked, caller);
      } catch (error) {
        caller.leave();
        throw error;
      }
      const id = randomBytes(9).toString('base64url');
      const ended = () => running.delete(id);
      const one = new PageTry(gateway, caller, response, { ended, mayLook: () => isValid(session) });
      running.set(id, one);
      one.openFor(id, message, headers);
    },
    answer(id, key, { action, content }) {
      find(id).reply(key, toBytes(action === 'accept' ? { action, content: content ?? {} } : { action }));
    },
    cancel(id) {
      find(id).cancel();
      return null;
    },
    close() {
      for (const one of [...running.values()]) one.cancel();
    },
  };
}

interface PageTryOptions {
  ended(): void;
  /** Whether the session that began it still lasts. */
  mayLook(): Promise<boolean>;
}

class PageTry implements Exchange, Client {
  readonly identity = {};
  readonly isFull = READS_AT_ONCE.isFull;
  readonly whenDrained = READS_AT_ONCE.whenDrained;
  readonly #gateway: Gateway;
  readonly #caller: Caller;
  readonly #response: ServerResponse;
  readonly #options: PageTryOptions;
  readonly #questions = new Map<string, Question>();
  readonly #started = performance.now();
  #answer: Answer | null = null;
  #beating: NodeJS.Timeout | undefined;
  #lastQuestion = 0;
  #isOver = false;

  constructor(gateway: Gateway, caller: Caller, response: ServerResponse, options: PageTryOptions) {
    this.#gateway = gateway;
    this.#caller = caller;
    this.#response = response;
    this.#options = options;
  }

  openFor(id: string, message: Message, headers: readonly string[]): void {
    const response = this.#response;
    response.writeHead(200, [
      ...headers,
      ...['content-type', 'text/event-stream', 'cache-control', 'no-store', 'x-accel-buffering', 'no'],
      ...['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'],
    ]);
    this.#beating = setInterval(() => void this.#beat(), KEEPALIVE).unref();
    response.once('close', () => this.#answer?.cancel('the page was closed'));
    this.#tell('started', { id, replica: this.#gateway.replica?.id ?? null });
    this.#answer = new TryAnswer(message, this, [], this, ABILITIES, 'legacy', null);
    this.#answer.start(this.#gateway.pipeline, this.#caller, message);
  }

  #tell<Name extends keyof TryEvents>(name: Name, data: TryEvents[Name]): void {
    if (this.#isOver || this.#response.destroyed) return;
    // A server can send them without end, and there is no other way to slow it down.
    if ((name === 'progress' || name === 'log') && this.#response.writableLength > MOST_UNREAD) return;
    this.#response.write(eventText(name, data));
  }

  /** Keeps proxies from closing the stream. Somebody who was logged out sees and changes nothing more. */
  async #beat(): Promise<void> {
    if (await this.#options.mayLook()) {
      if (!this.#isOver) this.#response.write(': \n\n');
    } else this.cancel('The session is over.');
  }

  #clean(bytes: Buffer): JsonObject {
    return toObject(redacted(JSON.parse(bytes.toString()), this.#gateway.redact));
  }

  get #ms(): number {
    return Math.round((performance.now() - this.#started) * 1_000) / 1_000;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#beating);
    this.#options.ended();
    this.#caller.leave();
    this.#response.end();
  }

  reply(key: string, result: Buffer): void {
    const question = this.#questions.get(key);
    if (question === undefined) throw new GatewayError('path_unknown', 'This question was answered or withdrawn.');
    this.#questions.delete(key);
    question.answer(result);
  }

  cancel(message = 'The call was cancelled.'): void {
    this.#tell('failed', { code: 'cancelled', message, ms: this.#ms });
    this.#answer?.cancel('cancelled in the page');
    this.#end();
  }

  /** An error of Toolgate's own. */
  failed({ code, message }: GatewayError): void {
    this.#tell('failed', { code, message: this.#gateway.redact(message), ms: this.#ms });
    this.#end();
  }

  // The way back

  send(message: Buffer): void {
    const { method, params } = this.#clean(message);
    const { progressToken: _, ...shown } = toObject(params);
    if (method === 'notifications/progress') this.#tell('progress', shown as unknown as TryEvents['progress']);
    else if (method === 'notifications/message') this.#tell('log', shown as unknown as TryEvents['log']);
  }

  finish({ head, body, tail }: Parameters<Exchange['finish']>[0]): void {
    const bytes = Buffer.concat([Buffer.from(head, 'latin1'), join(body), Buffer.from(tail, 'latin1')]);
    const { result, error } = this.#clean(bytes);
    if (error === undefined) this.#tell('result', { result: toObject(result), ms: this.#ms, bytes: sizeOf(body) });
    else {
      const { code, message } = toObject(error);
      this.#tell('failed', { code: typeof code === 'number' ? code : 'error', message: String(message), ms: this.#ms });
    }
    this.#end();
  }

  abandon(): void {
    this.#end();
  }

  keepAlive(): void {}

  // The client

  ask(_: Answer, question: Question): void {
    if (question.method !== 'elicitation/create') {
      question.refuse(unanswerable(question.method, 'the dashboard has no model and no folders'));
      return;
    }
    const key = String(++this.#lastQuestion);
    this.#questions.set(key, question);
    question.withdrawn = (reason) => {
      if (this.#questions.delete(key)) this.#tell('withdrawn', { question: key, reason });
    };
    const params = question.params === null ? {} : this.#clean(question.params);
    this.#tell('question', { question: key, method: 'elicitation/create', params });
  }

  askAll(answer: Answer, result: Buffer): void {
    askAll(answer, result, (message) => answer.start(this.#gateway.pipeline, this.#caller, message));
  }

  sendTo(): boolean {
    return false;
  }

  left(): void {
    for (const question of this.#questions.values()) question.refuse(unanswerable(question.method, 'the call is over'));
    this.#questions.clear();
  }
}

/** Models read errors as results. A person is told that the call failed. */
class TryAnswer extends Answer {
  override fail(error: GatewayError): void {
    if (this.end()) (this.client as unknown as PageTry).failed(error);
  }
}

function tryMessage({ kind, name, arguments: given = {}, dryRun }: TryInput, caller: Caller): Message {
  if (dryRun === true && (kind !== 'tool' || findTool(caller.view(), name).item.uses === undefined))
    throw new GatewayError('params_invalid', `"${name}" is not a macro, and only macros have a dry run.`);
  const meta = { progressToken: 1, ...(dryRun === true && { [DRY_RUN]: true }) };
  const params = kind === 'resource' ? { uri: name, _meta: meta } : { name, arguments: given, _meta: meta };
  return readMessage(toBytes({ jsonrpc: '2.0', id: 1, method: METHODS[kind], params }));
}
