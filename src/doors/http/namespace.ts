/** The namespace that a request names: whether there is one for its sender, and whether it may be left out or changed. */
import { GatewayError } from '../../base/errors.ts';
import type { Gateway } from '../../gateway/types.ts';
import type { Visitor } from './auth/visitor.ts';

/** Throws where there is none for this agent; while servers are starting, that is known later. */
export function findNamespace(gateway: Gateway, agent: string, namespace: string): Promise<void> | null {
  if (gateway.knows(agent, namespace)) return null;
  const { opening } = gateway;
  if (opening === null) throw unknown(namespace);
  return opening.then(() => {
    if (!gateway.knows(agent, namespace)) throw unknown(namespace);
  });
}

// One that is hidden from an agent and one that does not exist answer alike.
function unknown(namespace: string): GatewayError {
  const name = JSON.stringify(namespace.slice(0, 100));
  return new GatewayError(
    'path_unknown',
    `There is no namespace ${name}. Name another in X-Namespace, or leave it out.`,
  );
}

/** For whoever comes for the first time, or comes anew with every request. */
export function requireNamespace({ config }: Gateway, { namespace }: Visitor): void {
  if (!config.http.requireNamespace || namespace !== null) return;
  throw new GatewayError(
    'request_invalid',
    'A namespace is needed here: name it in the header X-Namespace, or use the same address below /ns/NAMESPACE.',
  );
}

/** For whoever comes again: a session stays where it was opened. */
export function requireSame(opened: string | null, { namespace }: Visitor): void {
  if (namespace === null || namespace === opened) return;
  throw new GatewayError(
    'request_invalid',
    'The session was opened for another namespace. Leave X-Namespace as it was, or start a new session.',
  );
}
