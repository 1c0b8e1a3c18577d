/**
 * An edit with a mistake in the entry of a server that is in force: the server goes on as it is, and the rest of the
 * edit is applied. It is not removed, because its author did not ask for that. The whole edit is not refused, because
 * one entry that stays wrong would then block every later edit.
 */
import type { BrokenEntry } from '../config/broken.ts';
import type { Config } from '../config/config.ts';

export function keepBroken(next: Config, inForce: Config): Config {
  const known = new Map([...inForce.servers, ...inForce.folders.named].map((server) => [server.key, server]));
  const isKept = ({ section, key }: BrokenEntry) => section === 'servers' && known.has(key);
  const kept = next.broken.filter(isKept);
  if (kept.length === 0) return next;
  return Object.freeze({
    ...next,
    servers: withKept(next.servers, inForce.servers, kept),
    folders: { ...next.folders, named: withKept(next.folders.named, inForce.folders.named, kept) },
    broken: next.broken.map((one) => ({ ...one, isKept: isKept(one) })),
    // What the servers in force were given has to stay unseen.
    secrets: () => [...new Set([...next.secrets(), ...inForce.secrets()])],
  });
}

/** The servers with those that are kept at the places where the file lists them. */
function withKept<Server extends { readonly key: string }>(
  servers: readonly Server[],
  inForce: readonly Server[],
  kept: readonly BrokenEntry[],
): readonly Server[] {
  const all = [...servers];
  let added = 0;
  for (const { key, server } of kept) {
    const before = inForce.find((one) => one.key === key);
    if (before === undefined || server === null) continue;
    all.splice(server.place + added, 0, before);
    added++;
  }
  return all;
}
