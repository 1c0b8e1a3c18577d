/**
 * What servers ask of us. Questions for a user or a model go to the caller whose call they belong to. On a shared channel
 * nothing says which call that is: the only one that can be meant gets it, and where there are several it waits until
 * there is only one left. Never a guess. What comes over a connection that a session has to itself is for that session.
 */

import type { ClientChannel } from '../protocol/contract.ts';
import { findMember, toBytes } from '../protocol/json.ts';
import { idText, type Message, parseParams } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { capabilityFor, type Question, unanswerable } from '../protocol/question.ts';
import { errorReply, type Reply, resultReply } from '../protocol/rpc.ts';
import { relatedTask } from '../protocol/task.ts';
import type { Pending, Waiting } from './pending.ts';

export interface Questions {
  /** `id` is the request with whose reply the question came; null on a shared channel. */
  receive(message: Message, id: number | null): void;
  /** Takes a notification that is about a question; false for any other. */
  hear(message: Message): boolean;
  /** The server is gone, and with it whatever it wanted to know. */
  close(reason: string): void;
}

export interface QuestionEvents {
  /** The server asks things of its clients. */
  asked(): void;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

/** How long a question waits for its addressee to become certain. */
const UNCERTAIN = 2_000;
const LOOK_AGAIN = 25;
/** How long one in the course of a task waits for the client to come for the result: it polls before that. */
const UNTIL_RESULT = 60_000;

function reasonFor(found: readonly (Waiting | null)[] | null): string {
  if (found === null) return 'nobody has asked for the result of its task';
  return found.length === 0 ? 'the client that called cannot be asked that' : 'it may be meant for several clients';
}

/** One that is not answered yet. */
interface Open {
  readonly question: Question;
  /** Starts the clock of its call again. */
  resume(): void;
}

const NO_ROOTS = toBytes({ roots: [] });
const nothing = () => {};

/** `send` takes our answers; `guest` is whose connection it is, or null where it is everybody's. */
export function createQuestions(
  pending: Pending,
  send: (message: Buffer) => void,
  events: QuestionEvents,
  client: ClientChannel | null,
): Questions {
  /** By the server's own ids; null for those whose addressee is not certain yet. */
  const open = new Map<string, Open | null>();

  const reply = ({ head, body, tail }: Reply) =>
    send(Buffer.concat([Buffer.from(head), join(body), Buffer.from(tail, 'latin1')]));

  function pass(message: Message, capability: string, id: number | null, deadline: number): void {
    const key = idText(message);
    if (open.get(key) !== null) return;
    const found = pending.candidates(capability, id, relatedTask(message));
    const session = client?.abilities?.asks.has(capability) === true ? client : null;
    if (found?.length === 1) {
      const { request } = found[0]!;
      pose(message, request.sink, request.client, session !== null && id === null, pending.pause(found[0]!));
    } else if (session !== null) {
      pose(message, session, session, true, nothing);
    } else if (found?.length !== 0 && performance.now() < deadline) {
      setTimeout(pass, LOOK_AGAIN, message, capability, id, deadline);
    } else {
      open.delete(key);
      reply(refusal(message, found));
    }
  }

  function pose(
    message: Message,
    whom: { ask(question: Question): void },
    owner: ClientChannel | null,
    lasting: boolean,
    resume: () => void,
  ): void {
    const key = idText(message);
    const settle = (answer: Reply) => {
      if (open.get(key)?.question !== question) return;
      open.delete(key);
      resume();
      reply(answer);
    };
    const question: Question = {
      method: message.method,
      params: paramsOf(message),
      lasting,
      answer: (result) => settle(resultReply(key, result)),
      refuse: (error) => settle(errorReply(key, error)),
      withdrawn: nothing,
    };
    open.set(key, { question, resume });
    pending.elicitations.note(question.params, owner);
    whom.ask(question);
  }

  /** For a question with no addressee, or with too many. */
  function refusal(message: Message, found: readonly (Waiting | null)[] | null): Reply {
    const { method } = message;
    const key = idText(message);
    if (method === 'roots/list') {
      events.note('asked for roots where no client can be asked for them, and was told of none');
      return resultReply(key, NO_ROOTS);
    }
    return errorReply(key, unanswerable(method, reasonFor(found)));
  }

  function withdraw(key: string, reason: string): void {
    const known = open.get(key);
    open.delete(key);
    known?.resume();
    known?.question.withdrawn(reason);
  }

  return {
    receive(message, id) {
      const { method } = message;
      const capability = capabilityFor(method, paramsOf(message));
      if (method === 'ping') reply(resultReply(idText(message), toBytes({})));
      // A server may narrow itself to whatever roots it gets, and this one serves everybody.
      else if (method === 'roots/list' && client === null) reply(resultReply(idText(message), NO_ROOTS));
      else if (capability === null)
        reply(errorReply(idText(message), unanswerable(method, 'it is no question to a client')));
      else {
        events.asked();
        open.set(idText(message), null);
        pass(message, capability, id, performance.now() + (relatedTask(message) === null ? UNCERTAIN : UNTIL_RESULT));
      }
    },
    hear(message) {
      const { method, bytes, paramsStart, paramsEnd } = message;
      if (method === 'notifications/elicitation/complete') pending.elicitations.complete(message);
      else if (method !== 'notifications/cancelled') return false;
      else {
        const id = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
        const { reason } = parseParams(message);
        if (id !== null)
          withdraw(bytes.toString('latin1', id.start, id.end), typeof reason === 'string' ? reason : 'cancelled');
      }
      return true;
    },
    close(reason) {
      for (const key of [...open.keys()]) withdraw(key, reason);
    },
  };
}

function paramsOf({ bytes, paramsStart, paramsEnd }: Message): Buffer | null {
  return paramsStart < 0 ? null : bytes.subarray(paramsStart, paramsEnd);
}
