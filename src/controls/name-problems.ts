/** Names in the arguments of a control that cannot be used: unknown ones, and those of servers that are not up. */
import { GatewayError } from '../base/errors.ts';
import { shortened } from '../base/text.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { AwaySource, Catalog } from '../catalog/catalog.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { firstOf, invalid } from './arguments.ts';

export interface NameProblems {
  /**
   * A name that was not found. It is unknown, unless a server that is not up may have it. `shown` is how the message
   * names it, and `hint` says more about an unknown one. Only the first few get a hint, because each is compared with the
   * whole catalog.
   */
  add(kinds: readonly Kind[], name: string, shown: string, hint: () => string): void;
  /** Throws if any name was added. `nothing` begins the message, and `what` follows "Unknown". */
  refuse(nothing: string, what: string): void;
}

/** Comparisons of a text with a name that one request may cause: others wait for them. */
const MOST_COMPARED = 100_000;
/** The same of those that look for something similar, which take longer. */
const MOST_SUGGESTING = 15_000;
const MOST_HINTS = 20;
const LEAST_PATTERNS = 20;

/** How many unknown names get a hint. */
export function mostHints({ entries }: Catalog): number {
  const names = KINDS.reduce((sum, kind) => sum + entries[kind].size, 0);
  return Math.min(MOST_HINTS, Math.max(1, Math.floor(MOST_SUGGESTING / Math.max(names, 1))));
}

/** Throws if so many patterns are too many for so many names. */
export function requireFewPatterns(patterns: number, names: number): void {
  const most = Math.max(LEAST_PATTERNS, Math.floor(MOST_COMPARED / Math.max(names, 1)));
  if (patterns > most)
    throw invalid(
      `${patterns} patterns are too many for ${names} names: a call may have ${most}. Use fewer, or names.`,
    );
}

export function createNameProblems(catalog: Catalog): NameProblems {
  const unknown: string[] = [];
  const hints = mostHints(catalog);
  const missing: string[] = [];
  const away = new Set<AwaySource>();
  return {
    add(kinds, name, shown, hint) {
      const servers = awayWith(catalog, kinds, name);
      for (const server of servers) away.add(server);
      const text = shortened(shown, 1_000);
      if (servers.length > 0) missing.push(`${text} (${awayText(servers)})`);
      else unknown.push(unknown.length < hints ? text + hint() : text);
    },
    refuse(nothing, what) {
      if (unknown.length + missing.length === 0) return;
      const parts = [
        nothing,
        ...(unknown.length > 0 ? [`Unknown ${what}: ${firstOf(unknown, '; ')}.`] : []),
        ...(missing.length > 0 ? [`Not available now: ${firstOf(missing, '; ')}.`] : []),
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
