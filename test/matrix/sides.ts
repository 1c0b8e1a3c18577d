/** The two sides of the gateway: the kinds of clients with their doors, and the kinds of servers with their transports. */
import { type Era, MODERN_REVISION, REVISIONS } from '../../src/protocol/revisions.ts';
import { some } from '../support/wide.ts';

export type Transport = 'stdio' | 'http' | 'sse';

export interface Side {
  readonly era: Era;
  readonly transport: Transport;
}

/** A client and a server with the gateway between them. */
export interface Cell {
  readonly client: Side;
  readonly upstream: Side;
}

export const ERAS: readonly Era[] = ['legacy', 'modern'];
export const TRANSPORTS: readonly Transport[] = ['stdio', 'http', 'sse'];

export const transportNames: Readonly<Record<Transport, string>> = {
  stdio: 'stdio',
  http: 'Streamable HTTP',
  sse: 'HTTP+SSE',
};

export const revisions: Readonly<Record<Era, readonly string[]>> = {
  legacy: REVISIONS.toReversed(),
  modern: [MODERN_REVISION],
};

/** Why such a client or server does not exist; undefined if it does. */
export function whyNoSide({ era, transport }: Side): string | undefined {
  if (era === 'modern' && transport === 'sse')
    return 'HTTP+SSE is the transport of 2024-11-05, which carries a session; 2026-07-28 has neither.';
  return undefined;
}

/** The same for clients and for servers. */
export const sides: readonly Side[] = ERAS.flatMap((era) => TRANSPORTS.map((transport) => ({ era, transport }))).filter(
  (side) => whyNoSide(side) === undefined,
);

export function titleOf({ era, transport }: Side): string {
  return `${era}, ${transportNames[transport]}`;
}

/**
 * The clients that are checked with a server. A wide run checks all of them. Otherwise every side occurs with two
 * others, in both roles, and every pair of eras occurs.
 */
export function clientsFor(upstream: Side): readonly Side[] {
  const at = sides.findIndex((side) => titleOf(side) === titleOf(upstream));
  return some(
    sides,
    sides.filter((_, i) => (i + 2 * at) % sides.length < 2),
  );
}
