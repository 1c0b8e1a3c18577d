/**
 * Who sends a request: the agent, the principal and the credential that let the client in. A door determines it once
 * and passes it on unchanged.
 */
import type { TokenClaims } from '../access/circumstances.ts';
import { GatewayError } from '../base/errors.ts';
import { AGENT_NAME, WRONG_NAME } from '../config/agents.ts';
import type { Task } from '../config/task.ts';

/** What let a client in. It can expire, and it can be revoked while the client is still connected. */
export interface Credential {
  /** Milliseconds since 1970; null if it does not expire. It changes when a token is replaced. */
  expires: number | null;
  /** Shared by all credentials that were granted for the same reason, so that one flag revokes them together. */
  readonly revocation: { isRevoked: boolean };
  /** The real one is not known here: a session was read from the store before its client came. */
  readonly isStandIn?: true;
}

/** Who sends a request. Made by `createIdentity`. */
export interface Identity {
  /** The name that policies and limits are written for. */
  readonly agent: string;
  /** The owner of sessions, streams, parked calls and MCP tasks: several people may use one agent. */
  readonly principal: string;
  /** Whether it may see what concerns the whole gateway, such as `/metrics`. */
  readonly isAdmin: boolean;
  /**
   * Whether it is the operator, who writes the policies and is exempt from them.
   * @internal
   */
  readonly isOperator: boolean;
  /** What its token says about it; null without a JWT. Conditions of a policy can look at them. */
  readonly claims: TokenClaims | null;
  /** The only tasks that it may work on; null for any. */
  readonly tasks: readonly Task[] | null;
  /** How it was established. */
  readonly via: 'nothing' | 'token' | 'jwt' | 'certificate' | 'header' | 'program';
  /** @internal */
  readonly credential: Credential;
}

/** What a program may say about an identity in addition to its agent. */
export interface IdentityOptions {
  /** The owner of sessions, if several people use one agent. Default: the agent. */
  readonly principal?: string;
  /** Whether it may see what concerns the whole gateway, such as `/metrics`. */
  readonly isAdmin?: boolean;
  /** When it stops being valid, in milliseconds since 1970; null for as long as `identify` returns it. */
  readonly expires?: number | null;
  /** What conditions of a policy find in `claims`. */
  readonly claims?: TokenClaims | null;
  /** The only tasks that it may work on. The first one applies if the client names none. */
  readonly tasks?: readonly Task[] | null;
}

/**
 * The identity of a user that your program knows, for the `identify` option of an HTTP door to return.
 *
 * @example
 * const ann = createIdentity('reader', { principal: 'ann@example.com' });
 */
export function createIdentity(agent: string, options: IdentityOptions = {}): Identity {
  const { principal = agent, isAdmin = false, expires = null, claims = null, tasks = null } = options;
  if (!AGENT_NAME.test(agent))
    throw new GatewayError('usage', `${JSON.stringify(agent)} is not a valid agent name: ${WRONG_NAME}`);
  return { ...programIdentity(agent, principal, expires), isAdmin, claims, tasks };
}

/** For doors inside a program. The program vouches for its client, so any name of an agent is accepted. */
export function programIdentity(agent: string, principal = agent, expires: number | null = null): Identity {
  const credential = { expires, revocation: { isRevoked: false } };
  return { agent, principal, isAdmin: false, isOperator: false, claims: null, tasks: null, via: 'program', credential };
}

/** The operator, who is exempt from policies. */
export function operatorIdentity(): Identity {
  return { ...programIdentity('local'), isOperator: true };
}

export const REVOKED = new GatewayError('unauthorized', 'The credential was revoked while the request was under way.');

export function isInvalid({ expires, revocation }: Credential, now: number): boolean {
  return revocation.isRevoked || (expires !== null && now >= expires);
}

/** Throws if the credential was revoked meanwhile: a request that arrives slowly must not be carried out with it. */
export function requireNotRevoked({ revocation }: Credential): void {
  if (revocation.isRevoked) throw REVOKED;
}

/** Whether the first credential is valid for longer than the second. */
export function outlives(first: Credential, second: Credential): boolean {
  // Nobody would revoke a stand-in.
  if (second.revocation.isRevoked || second.isStandIn === true) return true;
  return second.expires !== null && (first.expires === null || first.expires > second.expires);
}
