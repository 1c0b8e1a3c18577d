/** Who sends a request, and what its address says that it is to see. */
import type { Toolset } from '../../../access/toolset.ts';
import { GatewayError } from '../../../base/errors.ts';
import { AGENT_NAME, WRONG_NAME } from '../../../config/identity-schema.ts';
import type { Task } from '../../../config/task.ts';
import type { Credential } from '../../credential.ts';

/** Whoever sends a request. Made by `createVisitor`. */
export interface Visitor {
  /** By whose name policies and limits are looked up. */
  readonly agent: string;
  /** Whom sessions, streams, parked calls and tasks belong to: several people may come as one agent. */
  readonly principal: string;
  /** Whether it may see what is about the whole gateway. */
  readonly isAdmin: boolean;
  /** What says who it is. */
  readonly via: 'nothing' | 'token' | 'jwt' | 'header' | 'program';
  /** @internal */
  readonly credential: Credential;
  readonly toolset: Toolset | null;
  readonly namespace: string | null;
  readonly task: Task | null;
}

/** What is known of a visitor beside its agent. */
export interface VisitorOptions {
  /** Whom sessions belong to, where several people come as one agent. Absent: the agent. */
  readonly principal?: string;
  /** Whether it may see what is about the whole gateway, such as `/metrics`. */
  readonly isAdmin?: boolean;
  /** Until when it is let in, in milliseconds since 1970; null for as long as it is identified. */
  readonly expires?: number | null;
}

/**
 * Somebody whom a program knows, for `identify` of its door to give.
 *
 * @example
 * const visitor = createVisitor('reader', { principal: 'ann@example.com' });
 */
export function createVisitor(agent: string, options: VisitorOptions = {}): Visitor {
  const { principal = agent, isAdmin = false, expires = null } = options;
  if (!AGENT_NAME.test(agent))
    throw new GatewayError('usage', `${JSON.stringify(agent)} names no agent: ${WRONG_NAME}`);
  const pass: Credential = { expires, revocation: { isRevoked: false } };
  return { agent, principal, isAdmin, via: 'program', credential: pass, toolset: null, namespace: null, task: null };
}
