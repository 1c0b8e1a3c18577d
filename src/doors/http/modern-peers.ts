/** The modern clients that the door knows, one for each principal and each toolset, namespace or task that an address names. */
import type { Gateway } from '../../gateway-types.ts';
import { ModernPeer } from '../modern.ts';
import { createRegulars, type Memory, type Regulars } from './regulars.ts';

export function createModernPeers(gateway: Gateway, memory?: Memory): Regulars<ModernPeer> {
  return createRegulars(({ agent, principal, toolset, namespace, task }) => {
    const shown = { toolset, namespace, task };
    return new ModernPeer(gateway, { agent, principal, door: 'http', selection: 'own', ...shown, alone: false });
  }, memory);
}
