/** A request that is not let in, and the challenge that tells its client what would be (RFC 6750, RFC 9728). */
import { type ErrorCode, GatewayError } from '../../../base/errors.ts';

export interface Challenge {
  /** Only where a token was given: without one there is nothing wrong with it. */
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly description?: string;
  readonly scopes?: readonly string[];
  /** Where the metadata of this resource is; null where there is none. */
  readonly metadata: string | null;
}

export class Refusal extends GatewayError {
  /** The value of `WWW-Authenticate`. */
  readonly challenge: string;
  /** For the log; it has nothing of the credential. */
  readonly reason: string;

  constructor(code: ErrorCode, message: string, reason: string, challenge: Challenge) {
    super(code, message);
    this.reason = reason;
    this.challenge = printChallenge(challenge);
  }
}

function printChallenge({ error, description, scopes = [], metadata }: Challenge): string {
  const parts: readonly (readonly [string, string | null | undefined])[] = [
    ['realm', 'toolgate'],
    ['error', error],
    ['error_description', description],
    ['scope', scopes.length > 0 ? scopes.join(' ') : null],
    ['resource_metadata', metadata],
  ];
  const said = parts.filter(([, value]) => value != null).map(([name, value]) => `${name}="${quotable(value!)}"`);
  return `Bearer ${said.join(', ')}`;
}

/** What may stand between quotes in a header. */
function quotable(text: string): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?');
}
