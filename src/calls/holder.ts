import type { Sink } from '../protocol/contract.ts';
import type { Question } from '../protocol/question.ts';

/** Receives the outcome of the call: first the request that started it, then the request that resumed it. */
export interface Holder extends Sink {
  /** Ends the request with the questions and the state that the client has to send back. */
  park(questions: ReadonlyMap<string, Question>, state: string): void;
}
