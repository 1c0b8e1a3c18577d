/**
 * Lets a modern server ask questions of a client that has a session. Each question goes to the client as a request of
 * ours. Once all are answered, the call is repeated with the answers in it.
 */
import { GatewayError } from '../base/errors.ts';
import { MOST_QUESTIONS } from '../protocol/asked-by.ts';
import { withElicitationId } from '../protocol/elicitation.ts';
import { decodeString, findMember, readMembers } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { capabilityFor, URL_MODE } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import type { Answer } from './answer.ts';

const MOST_ROUNDS = 10;

export function askAll(answer: Answer, result: Buffer, call: (message: Message) => void): void {
  try {
    startRound(answer, result, call);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    answer.fail(error);
  }
}

function startRound(answer: Answer, result: Buffer, call: (message: Message) => void): void {
  if (++answer.rounds > MOST_ROUNDS)
    throw new GatewayError('source_broken', `The server asked for input ${MOST_ROUNDS} times and returned no result.`);
  const questions = readQuestions(result);
  answer.questions += questions.size;
  if (answer.questions > MOST_QUESTIONS)
    throw new GatewayError('source_broken', `The server asked more than ${MOST_QUESTIONS} questions in one call.`);
  for (const [, { method, params }] of questions) {
    const capability = capabilityFor(method, params);
    if (capability === null || !answer.asks.has(capability))
      throw new GatewayError(
        'capability_missing',
        `The server needs a client that supports ${nameOf(method, capability)}.`,
      );
  }
  const answers = new Map<string, Buffer>();
  const fail = (why: string) => {
    clearTimeout(late);
    answer.fail(new GatewayError('question_unanswered', why));
  };
  // Between rounds the server has no call in progress, so no other timeout applies.
  const limit = answer.call?.totalTimeout ?? 0;
  const late = setTimeout(fail, limit, `The client did not answer the server's questions within ${limit / 1000} s.`);
  late.unref();
  const proceed = () => {
    if (answers.size < questions.size) return;
    clearTimeout(late);
    if (answer.place < 0) return;
    call(withAnswers(answer.message, answers, result));
  };
  for (const [key, { method, params }] of questions) {
    answer.ask({
      method,
      params,
      lasting: false,
      answer(reply) {
        answers.set(key, reply);
        proceed();
      },
      refuse(error) {
        fail(`The client did not answer ${method}, which the server needs: ${messageIn(error)}`);
      },
      withdrawn() {},
    });
  }
  // A server may ask for the call to be repeated without asking any questions.
  if (questions.size === 0) proceed();
}

function nameOf(method: string, capability: string | null): string {
  return capability === URL_MODE ? `${method} with the mode "url"` : method;
}

interface Asked {
  readonly method: string;
  readonly params: Buffer | null;
}

function readQuestions(result: Buffer): Map<string, Asked> {
  const requests = findMember(result, 'inputRequests');
  const members = requests === null ? [] : (readMembers(result, requests.start, requests.end) ?? []);
  return new Map(
    members.map(({ key, start, end }) => {
      const method = findMember(result, 'method', start, end);
      const params = findMember(result, 'params', start, end);
      if (method === null || result[method.start] !== 0x22)
        throw new GatewayError('source_broken', 'The server sent a question without a method.');
      const asked = params === null ? null : withElicitationId(result.subarray(params.start, params.end));
      return [key, { method: decodeString(result, method.start, method.end), params: asked }];
    }),
  );
}

/** The same request, with the answers and the state that the server expects back. */
function withAnswers(message: Message, answers: ReadonlyMap<string, Buffer>, result: Buffer): Message {
  const { bytes, method, paramsStart, paramsEnd } = message;
  const state = findMember(result, 'requestState');
  const parts = [
    Buffer.from(`{"jsonrpc":"2.0","id":0,"method":"${method}","params":`),
    bytes.subarray(paramsStart, paramsEnd - 1),
    Buffer.from(',"inputResponses":{'),
    ...[...answers].flatMap(([key, answer], index) => [
      Buffer.from(`${index === 0 ? '' : ','}${JSON.stringify(key)}:`),
      answer,
    ]),
    Buffer.from('}'),
    ...(state === null ? [] : [Buffer.from(',"requestState":'), result.subarray(state.start, state.end)]),
    Buffer.from('}}'),
  ];
  return readMessage(Buffer.concat(parts));
}

function messageIn(error: Buffer): string {
  const message = findMember(error, 'message');
  return message === null || error[message.start] !== 0x22
    ? 'no reason given'
    : decodeString(error, message.start, message.end);
}
