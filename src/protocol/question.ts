/** What a server asks of whoever called it: of the user, the model, or the client itself. */
import { isUrlMode, withoutElicitationId } from './elicitation.ts';

export interface Question {
  readonly method: string;
  /** As the server wrote them; null where there are none. */
  readonly params: Buffer | null;
  /** Whether it outlives the call in whose course it was asked: it may not have been about that. */
  readonly lasting: boolean;
  /** The result, as whoever was asked wrote it. One of the two is called, once; later calls do nothing. */
  answer(result: Buffer): void;
  /** The error object, likewise. */
  refuse(error: Buffer): void;
  /** Set by whoever is asked: called when nobody wants the answer any more. */
  withdrawn(reason: string): void;
}

/** What a client can be asked, as far as servers may ask it through us. */
export const FORM_MODE = 'elicitation.form';
export const URL_MODE = 'elicitation.url';

/** What a client must be able to be asked this; null for what is no question. */
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

/** The requests in whose course a server may ask something. */
export const ASKING: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Whether a shared server may ask something of this caller. Roots it may not: it is told of none. */
export function isAskable({ asks }: { readonly asks: ReadonlySet<string> }): boolean {
  return asks.has(FORM_MODE) || asks.has(URL_MODE) || asks.has('sampling');
}

/** The error for a question that nobody can be asked. */
export function unanswerable(method: string, why: string): Buffer {
  return Buffer.from(JSON.stringify({ code: -32_601, message: `Toolgate cannot pass on ${method}: ${why}.` }));
}

/** What is asked, by the key that its answer comes under. */
export type Inquiry = ReadonlyMap<string, Pick<Question, 'method' | 'params'>>;

/** The result by which a modern server asks: what, and the state to come back with. */
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
