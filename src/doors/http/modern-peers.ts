/** The modern clients that the door knows, one for each principal and each toolset or namespace that an address names. */
import type { Toolset } from '../../access/toolset.ts';
import type { Gateway } from '../../gateway-types.ts';
import { ModernPeer } from '../modern.ts';
import type { Visitor } from './visitor.ts';

export interface ModernPeers {
  of(visitor: Visitor): ModernPeer;
  readonly all: Iterable<ModernPeer>;
  readonly size: number;
}

interface Known {
  readonly peer: ModernPeer;
  readonly toolset: Toolset | null;
  /** Whether it came again since the last time that room was made. */
  wasUsed: boolean;
}

/** Tokens name any number of principals; beyond this many, those who have not come for longest are forgotten. */
const MOST = 4_096;

/** Lists may differ by agent and by nothing else, so what an agent has switched on is its own, whatever it comes through. */
export function createModernPeers(gateway: Gateway, most = MOST): ModernPeers {
  const peers = new Map<string, Known>();

  /** Forgets some that are idle: first those that came once, or not since the last time, then any. Not just one, which takes as long. */
  function makeRoom(): void {
    for (const isLast of [false, true]) {
      for (const [key, known] of peers) {
        if (peers.size < most * 0.75) return;
        if (known.peer.isIdle && (isLast || !known.wasUsed)) forget(key, known);
        else known.wasUsed = false;
      }
    }
  }

  function forget(key: string, { peer }: Known): void {
    peers.delete(key);
    peer.close();
  }

  function join(key: string, { agent, principal, toolset, namespace }: Visitor): ModernPeer {
    if (peers.size >= most) makeRoom();
    const shown = { toolset, namespace };
    const peer = new ModernPeer(gateway, { agent, principal, door: 'http', selection: 'own', ...shown, alone: false });
    peers.set(key, { peer, toolset, wasUsed: false });
    return peer;
  }

  return {
    of(visitor) {
      const { principal, agent, toolset, namespace } = visitor;
      // A principal comes as another agent when the configuration says so.
      const isPlain = toolset === null && namespace === null && principal === agent;
      const key = isPlain ? agent : JSON.stringify([principal, agent, toolset?.name, namespace]);
      const known = peers.get(key);
      if (known === undefined) return join(key, visitor);
      known.wasUsed = true;
      if (toolset === null || JSON.stringify(known.toolset) === JSON.stringify(toolset)) return known.peer;
      // One that was changed since makes another of them.
      forget(key, known);
      return join(key, visitor);
    },
    get all() {
      return [...peers.values()].map(({ peer }) => peer);
    },
    get size() {
      return peers.size;
    },
  };
}
