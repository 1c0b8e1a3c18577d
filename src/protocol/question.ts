/** What a server asks its caller: the user, the model, or the client itself. */
import { isUrlMode, withoutElicitationId } from './elicitation.ts';

export interface Question {
  readonly method: string;
  /** As the server wrote them; null if there are none. */
  readonly params: Buffer | null;
  /** Whether it stays open after the call during which it was asked. It may not belong to that call. */
  readonly lasting: boolean;
  /** Takes the result as the client wrote it. Only the first call of `answer` or `refuse` counts. */
  answer(result: Buffer): void;
  /** Takes the error object. */
  refuse(error: Buffer): void;
  /** Set by the side that is asked. Called when the answer is no longer wanted. */
  withdrawn(reason: string): void;
}

/** The two kinds of elicitation that a client may support. */
export const FORM_MODE = 'elicitation.form';
export const URL_MODE = 'elicitation.url';

/** The capability that a client needs to be asked this; null for a method that is not a question. */
export function capabilityFor(method: string, params: Buffer | null): string | null {
  switch (method) {
    case 'elicitation/create':
      return isUrlMode(params) ? URL_MODE : FORM_MODE;
    case 'sampling/createMessage':
      return 'sampling';
    case 'roots/list':
      return 'roots';
    default:
      return null;
  }
}

/** The requests during which a server may ask something. */
export const ASKING: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Whether a shared server may ask this caller anything. Roots do not count, because shared servers get none. */
export function isAskable({ asks }: { readonly asks: ReadonlySet<string> }): boolean {
  return asks.has(FORM_MODE) || asks.has(URL_MODE) || asks.has('sampling');
}

/** The error for a question that cannot be passed on. */
export function unanswerable(method: string, why: string): Buffer {
  return Buffer.from(JSON.stringify({ code: -32_601, message: `Toolgate cannot pass on ${method}: ${why}.` }));
}

/** Questions by key. The answer to each comes back under the same key. */
export type Inquiry = ReadonlyMap<string, Pick<Question, 'method' | 'params'>>;

/** The modern result that asks questions. The client sends the state back with its answers. */
export function inputRequired(questions: Inquiry, state: string): Buffer {
  const parts: Buffer[] = [Buffer.from('{"resultType":"input_required","inputRequests":{')];
  let first = true;
  for (const [key, { method, params }] of questions) {
    parts.push(Buffer.from(`${first ? '' : ','}${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":`));
    parts.push(params === null ? Buffer.from('{}') : withoutElicitationId(params), Buffer.from('}'));
    first = false;
  }
  parts.push(Buffer.from(`},"requestState":${JSON.stringify(state)}}`));
  return Buffer.concat(parts);
}
