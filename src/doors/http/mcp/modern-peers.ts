/** The modern clients that the door knows, one for each principal and each toolset, namespace or task that an address names. */
import type { Gateway } from '../../../gateway/types.ts';
import { ModernPeer } from '../../modern.ts';
import { createSessionlessClients, type Memory, type SessionlessClients } from './sessionless.ts';

export function createModernPeers(gateway: Gateway, memory?: Memory): SessionlessClients<ModernPeer> {
  return createSessionlessClients(({ agent, principal, toolset, namespace, task }) => {
    const shown = { toolset, namespace, task };
    return new ModernPeer(gateway, { agent, principal, door: 'http', selection: 'own', ...shown, alone: false });
  }, memory);
}
