/** Clients as doors describe them, for tests that join a gateway in this process. */
import { type ClientOptions, FULL_SCOPE, type Scope } from '../../src/calls/caller.ts';
import { programIdentity } from '../../src/calls/identity.ts';

export function clientOf(agent: string, scope: Partial<Scope> = {}): ClientOptions {
  return { identity: programIdentity(agent), scope: { ...FULL_SCOPE, ...scope }, door: 'local' };
}
