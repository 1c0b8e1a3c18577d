/**
 * Calls that wait for an answer from a client without a session. The server keeps working on the call and waits. The
 * client's request ends with the question, and the client sends the answer in a new request, which continues the call.
 */
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { decodeString, findMember, readMembers } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { type Question, unanswerable } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import type { Holder } from './holder.ts';
import type { ReplicaRelay } from './relay.ts';
import { createSeal } from './seal.ts';

export interface ParkedCall {
  /** The server asks a question. */
  ask(question: Question): void;
  /** The request that currently waits for the call; null while the client is away. */
  readonly holder: Holder | null;
  /** When the client went away; null if a request is waiting. */
  readonly awaySince: number | null;
  /** Delivers the end of the call to its holder. If there is none, it is kept until a request resumes the call. */
  deliver(to: (holder: Holder) => void): void;
}

export interface ParkedCalls {
  /** Creates a call of this agent that can be parked when its server asks. */
  begin(agent: string, message: Message, holder: Holder, cancel: (reason: string) => void): ParkedCall;
  /**
   * Continues a parked call. Returns null if the request carries no state of ours, or a state with which it starts
   * over.
   */
  resume(agent: string, message: Message, holder: Holder): ((reason: string) => void) | null;
  /**
   * A state with which this agent may send the request again from the start, after doing what the server requires
   * first.
   */
  stateFor(agent: string, message: Message): string;
  readonly size: number;
  close(): void;
}

/** Milliseconds for which a call waits for its client. */
const PATIENCE = 2 * 60_000;
const MOST_PER_AGENT = 8;
const MARK = 'toolgate.';
/** The prefix of the ids in states for requests that start over. Ids of parked calls have a different length. */
const RESTART = 'restart-';

/** Calls that wait at another replica, and the way there. */
export interface ParkedElsewhere {
  readonly relay: ReplicaRelay;
  /** The id of this replica. */
  readonly own: string;
  /** The first signs. */
  readonly keys: readonly Buffer[];
}

export function createParkedCalls(elsewhere: ParkedElsewhere | null = null): ParkedCalls {
  const seal = createSeal(elsewhere?.keys);
  const calls = new Map<string, Parked>();

  class Parked implements ParkedCall {
    readonly agent: string;
    readonly digest: string;
    readonly cancel: (reason: string) => void;
    id = '';
    holder: Holder | null;
    awaySince: number | null = null;
    asked = new Map<string, Question>();
    waiting: Question[] = [];
    outcome: ((holder: Holder) => void) | null = null;
    timer: NodeJS.Timeout | undefined;
    count = 0;

    constructor(agent: string, digest: string, holder: Holder, cancel: (reason: string) => void) {
      this.agent = agent;
      this.digest = digest;
      this.holder = holder;
      this.cancel = cancel;
    }

    ask(question: Question): void {
      question.withdrawn = () => this.drop(question);
      if (this.holder === null) {
        this.waiting.push(question);
        return;
      }
      if (this.id === '' && isFull(this.agent)) {
        question.refuse(unanswerable(question.method, `the client already has ${MOST_PER_AGENT} open questions`));
        return;
      }
      this.asked = new Map([[`question-${++this.count}`, question]]);
      this.park();
    }

    /** The server no longer needs the answer. A client that returns with it just waits for the end of the call. */
    drop(question: Question): void {
      for (const [key, one] of this.asked) if (one === question) this.asked.delete(key);
      this.waiting = this.waiting.filter((one) => one !== question);
    }

    park(): void {
      calls.delete(this.id);
      this.id = randomBytes(18).toString('base64url');
      calls.set(this.id, this);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.expire(), PATIENCE);
      this.timer.unref();
      const { holder } = this;
      this.holder = null;
      this.awaySince = Date.now();
      const named = elsewhere === null ? this.id : `${elsewhere.own}~${this.id}`;
      holder?.park(this.asked, MARK + seal.close(named, this.agent, this.digest));
    }

    expire(): void {
      this.end();
      for (const { method, refuse } of [...this.asked.values(), ...this.waiting])
        refuse(unanswerable(method, 'nobody answered in time'));
      this.cancel('nobody answered the question in time');
    }

    end(): void {
      calls.delete(this.id);
      clearTimeout(this.timer);
    }

    deliver(to: (holder: Holder) => void): void {
      if (this.holder === null) this.outcome = to;
      else {
        this.end();
        to(this.holder);
      }
    }

    /** Passes on the answers to the open questions. Questions without an answer are asked again. */
    resume(answers: ReadonlyMap<string, Buffer>, holder: Holder): void {
      this.holder = holder;
      this.awaySince = null;
      if (this.outcome !== null) {
        this.deliver(this.outcome);
        return;
      }
      for (const [key, question] of [...this.asked]) {
        const answer = answers.get(key);
        if (answer === undefined) continue;
        this.asked.delete(key);
        question.answer(answer);
      }
      const next = this.waiting.shift();
      if (this.asked.size > 0) this.park();
      else if (next !== undefined) this.ask(next);
      else clearTimeout(this.timer);
    }
  }

  function isFull(agent: string): boolean {
    let count = 0;
    for (const call of calls.values()) if (call.agent === agent) count++;
    return count >= MOST_PER_AGENT;
  }

  elsewhere?.relay.serve('resume', (agent, _, message, holder) => resume(agent, message, holder) ?? (() => {}));

  function resume(agent: string, message: Message, holder: Holder): ((reason: string) => void) | null {
    const state = readState(message);
    if (state === null || !state.startsWith(MARK)) return null;
    const named = seal.open(state.slice(MARK.length), agent, digestOf(message));
    const [owner, own] = named?.includes('~') === true ? (named.split('~') as [string, string]) : [null, named];
    if (elsewhere !== null && owner !== null && owner !== elsewhere.own)
      return elsewhere.relay.forward(owner, 'resume', agent, 'modern', message, holder);
    const id = own;
    if (id?.startsWith(RESTART)) {
      if (isAccepted(readAnswers(message))) return null;
      holder.fail(DECLINED);
      return () => {};
    }
    const call = id === null ? undefined : calls.get(id);
    if (call === undefined) {
      throw new GatewayError(
        'params_invalid',
        'The "requestState" is unknown, has expired, was ended by a restart of the gateway, or belongs to another request. Send the request again without it.',
      );
    }
    // The request that returned first is waiting for the end of the call. A second holder would replace it, and it
    // would never be answered.
    if (call.holder !== null)
      throw new GatewayError(
        'params_invalid',
        'The "requestState" was already used, and the request that used it is still running.',
      );
    call.resume(readAnswers(message), holder);
    return (reason) => {
      call.end();
      call.cancel(reason);
    };
  }

  return {
    begin: (agent, message, holder, cancel) => new Parked(agent, digestOf(message), holder, cancel),
    resume,
    stateFor: (agent, message) =>
      MARK + seal.close(`${RESTART}${randomBytes(9).toString('base64url')}`, agent, digestOf(message)),
    get size() {
      return calls.size;
    },
    close() {
      for (const call of [...calls.values()]) call.expire();
    },
  };
}

function readState({ bytes, stateStart, stateEnd }: Message): string | null {
  return stateStart < 0 || bytes[stateStart] !== 0x22 ? null : decodeString(bytes, stateStart, stateEnd);
}

/** After a user declines, sending the request again would only lead to the same question. */
function isAccepted(answers: ReadonlyMap<string, Buffer>): boolean {
  return [...answers.values()].every((answer) => {
    const action = findMember(answer, 'action');
    return action === null || answer.toString('latin1', action.start, action.end) === '"accept"';
  });
}

const DECLINED = new GatewayError(
  'question_unanswered',
  'The server needs the user to open a URL first, and the user declined.',
);

/** If the request starts over, returns it without its state and answers; otherwise returns it unchanged. */
export function asFirst(message: Message): Message {
  if (readState(message)?.startsWith(MARK) !== true) return message;
  const { bytes, method, paramsStart, paramsEnd } = message;
  const members = readMembers(bytes, paramsStart, paramsEnd) ?? [];
  const kept = members.filter(({ key }) => key !== 'inputResponses' && key !== 'requestState');
  const texts = kept.map(({ keyStart, end }) => bytes.toString('latin1', keyStart, end));
  const head = `{"jsonrpc":"2.0","id":${idText(message)},"method":"${method}","params":`;
  return readMessage(Buffer.from(`${head}{${texts.join(',')}}}`, 'latin1'));
}

/** Answers are results, so each is an object. Anything else counts as missing. */
export function readAnswers({ bytes, paramsStart, paramsEnd }: Message): Map<string, Buffer> {
  const responses = findMember(bytes, 'inputResponses', paramsStart, paramsEnd);
  const members = responses === null ? null : readMembers(bytes, responses.start, responses.end);
  return new Map(
    members
      ?.filter(({ start }) => bytes[start] === 0x7b)
      .map(({ key, start, end }) => [key, bytes.subarray(start, end)] as const),
  );
}

/** Equal for a request and its repetition, in whatever order the arguments are. */
export function digestOf({
  bytes,
  method,
  nameStart,
  nameEnd,
  uriStart,
  uriEnd,
  argumentsStart,
  argumentsEnd,
}: Message): string {
  const name = bytes.toString('utf8', Math.max(nameStart, uriStart), Math.max(nameEnd, uriEnd));
  const args = argumentsStart < 0 ? 'null' : bytes.toString('utf8', argumentsStart, argumentsEnd);
  return sha256(JSON.stringify([method, canonical(name), canonical(args)]), 'base64url');
}

function canonical(text: string): string {
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    // Our scanner accepts very long strings and deep nesting that the parser or the printer rejects.
    return text;
  }
}
