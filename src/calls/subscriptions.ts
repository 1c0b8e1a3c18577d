/**
 * Tracks which caller has subscribed to which resource, and maps a server's own URI to the URI that each caller used.
 */

import { findResource } from '../access/find.ts';
import type { View } from '../access/view.ts';
import { GatewayError } from '../base/errors.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import type { Source } from '../sources/source.ts';

export interface CallerSubscriptions<T> {
  /** Rejects if there is no such resource, or if its server does not announce changes. */
  subscribe(caller: T, view: View, uri: string): Promise<void>;
  unsubscribe(caller: T, uri: string): void;
  leave(caller: T): void;
  /** The callers that subscribed to a resource, each with the URI it used. */
  subscribers(sourceId: number, upstreamUri: string): [T, string][];
}

interface Wanted {
  readonly sourceId: number;
  readonly upstreamUri: string;
  /** How many times the caller has subscribed to it. */
  count: number;
}

export function createCallerSubscriptions<T extends { readonly client: ClientChannel }>(
  sourceOf: (id: number) => Source | undefined,
): CallerSubscriptions<T> {
  const callers = new Map<T, Map<string, Wanted>>();

  function forget({ client }: T, { sourceId, upstreamUri }: Wanted): void {
    sourceOf(sourceId)?.subscriptions?.(client).remove(upstreamUri);
  }

  return {
    async subscribe(caller, view, uri) {
      const own = callers.get(caller) ?? new Map<string, Wanted>();
      const known = own.get(uri);
      if (known !== undefined) {
        known.count++;
        return;
      }
      const { entry, upstreamName } = findResource(view, uri);
      const source = sourceOf(entry.sourceId);
      if (source?.subscribes !== true)
        throw new GatewayError(
          'method_unknown',
          `Server "${entry.sourceKey}" does not announce changes of its resources.`,
        );
      const upstreamUri = JSON.parse(Buffer.from(upstreamName, 'latin1').toString()) as string;
      callers.set(caller, own.set(uri, { sourceId: entry.sourceId, upstreamUri, count: 1 }));
      try {
        await source.subscriptions!(caller.client).add(upstreamUri);
      } catch (error) {
        own.delete(uri);
        throw error;
      }
    },
    unsubscribe(caller, uri) {
      const own = callers.get(caller);
      const known = own?.get(uri);
      if (own === undefined || known === undefined || --known.count > 0) return;
      own.delete(uri);
      if (own.size === 0) callers.delete(caller);
      forget(caller, known);
    },
    leave(caller) {
      const own = callers.get(caller);
      callers.delete(caller);
      for (const wanted of own?.values() ?? []) forget(caller, wanted);
    },
    subscribers: (sourceId, upstreamUri) =>
      [...callers].flatMap(([caller, own]) =>
        [...own]
          .filter(([, wanted]) => wanted.sourceId === sourceId && wanted.upstreamUri === upstreamUri)
          .map(([uri]) => [caller, uri] as [T, string]),
      ),
  };
}
