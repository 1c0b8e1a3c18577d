/** Names in the arguments of a control that cannot be used: unknown ones, and those of servers that are not up. */
import { GatewayError } from '../base/errors.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { AwaySource, Catalog } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/item.ts';

export interface NameProblems {
  /** How many unknown names were added. */
  readonly unknown: number;
  /**
   * A name that was not found. It is unknown, unless a server that is not up may have it. `shown` is how the message
   * names it, and `hint` says more about an unknown one.
   */
  add(kinds: readonly Kind[], name: string, shown: string, hint: () => string): void;
  /** Throws if any name was added. `nothing` begins the message, and `what` follows "Unknown". */
  refuse(nothing: string, what: string): void;
}

export function createNameProblems(catalog: Catalog): NameProblems {
  const unknown: string[] = [];
  const missing: string[] = [];
  const away = new Set<AwaySource>();
  return {
    get unknown() {
      return unknown.length;
    },
    add(kinds, name, shown, hint) {
      const servers = awayWith(catalog, kinds, name);
      for (const server of servers) away.add(server);
      if (servers.length > 0) missing.push(`${shown} (${awayText(servers)})`);
      else unknown.push(shown + hint());
    },
    refuse(nothing, what) {
      if (unknown.length + missing.length === 0) return;
      const parts = [
        nothing,
        ...(unknown.length > 0 ? [`Unknown ${what}: ${unknown.join('; ')}.`] : []),
        ...(missing.length > 0 ? [`Not available now: ${missing.join('; ')}.`] : []),
      ];
      const text = parts.join(' ');
      if (away.size === 0) throw new GatewayError('item_unknown', text);
      throw awayError([...away], text, unknown.length > 0 ? 'item_unknown' : null);
    },
  };
}

/** ` (did you mean git_log, git_show?)`; empty without names. */
export function meantHint(names: readonly string[]): string {
  return names.length === 0 ? '' : ` (did you mean ${names.join(', ')}?)`;
}
