/** What lets a client in. It may run out, or be taken back while the client is still there. */
import { GatewayError } from '../errors.ts';

export interface Pass {
  /** Milliseconds since 1970; null for one that does not run out. It changes where a token is replaced. */
  expires: number | null;
  /** Why it is good: several passes may hang on one reason, and end with it. */
  readonly ground: { isGone: boolean };
}

export function isOver({ expires, ground }: Pass, now: number): boolean {
  return ground.isGone || (expires !== null && now >= expires);
}

/** Throws where it was taken back meanwhile: what comes in slowly must not be carried out by it. */
export function requireGround({ ground }: Pass): void {
  if (ground.isGone) throw TAKEN_BACK;
}

export const TAKEN_BACK = new GatewayError(
  'unauthorized',
  'The credential was taken back while the request was under way.',
);

/** Whether the first is good for longer. */
export function outlasts(pass: Pass, other: Pass): boolean {
  if (other.ground.isGone) return true;
  return other.expires !== null && (pass.expires === null || pass.expires > other.expires);
}
