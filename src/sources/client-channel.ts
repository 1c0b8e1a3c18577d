/** A client as servers know it that serve each one apart: whose connection it is, and who answers for it. */
import { type ClientAbilities, NO_ABILITIES } from '../protocol/envelope.ts';
import { type Question, unanswerable } from '../protocol/question.ts';

export interface ClientChannel {
  /** What the client can be asked at any time; null for one without a session, which says so with each request. */
  readonly abilities: ClientAbilities | null;
  /** Asks it something outside of its calls. */
  ask(question: Question): void;
  /** A message that is about none of its calls. */
  tell(message: Buffer): void;
}

/** A program, or anybody else who can be asked nothing. Each is one of its own. */
export function silentChannel(): ClientChannel {
  return {
    abilities: NO_ABILITIES,
    ask: ({ method, refuse }) => refuse(unanswerable(method, 'there is nobody to ask')),
    tell() {},
  };
}
