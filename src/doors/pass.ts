/** What lets a client in. It may run out, or be taken back while the client is still there. */
export interface Pass {
  /** Milliseconds since 1970; null for one that does not run out. It changes where a token is replaced. */
  expires: number | null;
  /** Why it is good: several passes may hang on one reason, and end with it. */
  readonly ground: { isGone: boolean };
}

export function isOver({ expires, ground }: Pass, now: number): boolean {
  return ground.isGone || (expires !== null && now >= expires);
}

/** Whether the first is good for longer. */
export function outlasts(pass: Pass, other: Pass): boolean {
  if (other.ground.isGone) return true;
  return other.expires !== null && (pass.expires === null || pass.expires > other.expires);
}
