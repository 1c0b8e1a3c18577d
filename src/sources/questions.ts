/**
 * What servers ask of us. Questions for a user or a model go to the caller whose call they belong to. On a shared channel
 * nothing says which call that is: the only one that can be meant gets it, and where there are several it waits until
 * there is only one left. Never a guess.
 */
import { toBytes } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { capabilityFor, type Question, unanswerable } from '../protocol/question.ts';
import { errorReply, type Reply, resultReply } from '../protocol/rpc.ts';
import { relatedTask } from '../protocol/task.ts';
import type { Pending, Waiting } from './pending.ts';

export interface Questions {
  /** `id` is the request with whose reply the question came; null on a shared channel. */
  receive(message: Message, id: number | null): void;
}

/** How long a question waits for its addressee to become certain. */
const UNCERTAIN = 2_000;
const LOOK_AGAIN = 25;
/** How long one in the course of a task waits for the client to come for the result: it polls before that. */
const UNTIL_RESULT = 60_000;

function reasonFor(found: readonly Waiting[] | null): string {
  if (found === null) return 'nobody has asked for the result of its task';
  return found.length === 0 ? 'the client that called cannot be asked that' : 'it may be meant for several clients';
}

/** `send` takes our answers; `asked` is told that the server asks things at all. */
export function createQuestions(pending: Pending, send: (message: Buffer) => void, asked: () => void): Questions {
  const reply = ({ head, body, tail }: Reply) =>
    send(Buffer.concat([Buffer.from(head), join(body), Buffer.from(tail, 'latin1')]));

  function pass(message: Message, capability: string, id: number | null, deadline: number): void {
    const { method } = message;
    const serverId = idText(message);
    const task = relatedTask(message);
    const found = pending.candidates(capability, id, task);
    if (found?.length !== 1 && found?.length !== 0 && performance.now() < deadline) {
      setTimeout(pass, LOOK_AGAIN, message, capability, id, deadline);
      return;
    }
    if (found?.length !== 1) {
      reply(errorReply(serverId, unanswerable(method, reasonFor(found))));
      return;
    }
    const [waiting] = found;
    const resume = pending.pause(waiting!);
    let open = true;
    const settle = (answer: Reply) => {
      if (!open) return;
      open = false;
      resume();
      reply(answer);
    };
    const { bytes, paramsStart, paramsEnd } = message;
    const question: Question = {
      method,
      params: paramsStart < 0 ? null : bytes.subarray(paramsStart, paramsEnd),
      answer: (result) => settle(resultReply(serverId, result)),
      refuse: (error) => settle(errorReply(serverId, error)),
    };
    waiting!.request.sink.ask(question);
  }

  return {
    receive(message, id) {
      const { method } = message;
      const capability = capabilityFor(method);
      if (method === 'ping') reply(resultReply(idText(message), toBytes({})));
      // A server may narrow itself to whatever roots it gets, and this one serves everybody.
      else if (method === 'roots/list') reply(resultReply(idText(message), toBytes({ roots: [] })));
      else if (capability === null)
        reply(errorReply(idText(message), unanswerable(method, 'it is no question to a client')));
      else {
        asked();
        pass(message, capability, id, performance.now() + (relatedTask(message) === null ? UNCERTAIN : UNTIL_RESULT));
      }
    },
  };
}
