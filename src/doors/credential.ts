/** What lets a client in. It may run out, or be taken back while the client is still there. */
import { GatewayError } from '../base/errors.ts';

export interface Credential {
  /** Milliseconds since 1970; null for one that does not run out. It changes where a token is replaced. */
  expires: number | null;
  /** Why it is good: several passes may hang on one reason, and end with it. */
  readonly revocation: { isRevoked: boolean };
}

export function isInvalid({ expires, revocation }: Credential, now: number): boolean {
  return revocation.isRevoked || (expires !== null && now >= expires);
}

/** Throws where it was taken back meanwhile: what comes in slowly must not be carried out by it. */
export function requireNotRevoked({ revocation }: Credential): void {
  if (revocation.isRevoked) throw REVOKED;
}

export const REVOKED = new GatewayError(
  'unauthorized',
  'The credential was taken back while the request was under way.',
);

/** Whether the first is good for longer. */
export function outlives(pass: Credential, other: Credential): boolean {
  if (other.revocation.isRevoked) return true;
  return other.expires !== null && (pass.expires === null || pass.expires > other.expires);
}
