/**
 * Tracks which caller has subscribed to which resource, and maps a server's own URI to the URI that each caller used.
 * A subscription is suspended while the policy hides its resource: the server is told to stop, and to begin again when the
 * resource is back, because the client does not learn that it would have to subscribe again.
 */
import { findResource, isHidden } from '../access/find.ts';
import type { View } from '../access/view.ts';
import { GatewayError } from '../base/errors.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import type { Source } from '../sources/source.ts';
import { sourceNaming } from './named-uris.ts';

export interface CallerSubscriptions<T> {
  /** Rejects if there is no such resource, or if its server does not announce changes. */
  subscribe(caller: T, view: View, uri: string): Promise<void>;
  unsubscribe(caller: T, uri: string): void;
  /** What the caller sees may have changed. */
  look(caller: T, view: () => View): void;
  leave(caller: T): void;
  /** The callers that subscribed to a resource, each with the URI it used. */
  subscribers(sourceId: number, upstreamUri: string): [T, string][];
}

interface Wanted {
  readonly sourceId: number;
  readonly upstreamUri: string;
  /** How many times the caller has subscribed to it. */
  count: number;
  /** Whether the server was not told about it, or told to stop, because the caller may not see the resource. */
  isSuspended: boolean;
}

/** `most` is how many a caller may have. */
export function createCallerSubscriptions<T extends { readonly client: ClientChannel; view(): View }>(
  sourceOf: (id: number) => Source | undefined,
  most: () => number,
): CallerSubscriptions<T> {
  const callers = new Map<T, Map<string, Wanted>>();

  function stop({ client }: T, { sourceId, upstreamUri, isSuspended }: Wanted): void {
    if (!isSuspended) sourceOf(sourceId)?.subscriptions?.(client).remove(upstreamUri);
  }

  function resume({ client }: T, wanted: Wanted): void {
    const { sourceId, upstreamUri } = wanted;
    sourceOf(sourceId)
      ?.subscriptions?.(client)
      .add(upstreamUri)
      .catch(() => {
        // The server refuses now. The next look tries again.
        wanted.isSuspended = true;
      });
  }

  return {
    async subscribe(caller, view, uri) {
      const own = callers.get(caller) ?? new Map<string, Wanted>();
      const { entry, upstreamName } = findResource(view, uri, sourceNaming(caller, uri));
      const known = own.get(uri);
      if (known !== undefined) {
        known.count++;
        return;
      }
      if (own.size >= most())
        throw new GatewayError(
          'too_large',
          `The client is subscribed to ${own.size} resources; limits.subscriptions allows no more. Unsubscribe from some first.`,
        );
      const source = sourceOf(entry.sourceId);
      if (source?.subscribes !== true)
        throw new GatewayError(
          'method_unknown',
          `Server "${entry.sourceKey}" does not announce changes of its resources.`,
        );
      const upstreamUri = JSON.parse(Buffer.from(upstreamName, 'latin1').toString()) as string;
      callers.set(caller, own.set(uri, { sourceId: entry.sourceId, upstreamUri, count: 1, isSuspended: false }));
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
      stop(caller, known);
    },
    look(caller, view) {
      for (const [uri, wanted] of callers.get(caller) ?? []) {
        const isNowHidden = isHidden(view(), uri, sourceNaming(caller, uri));
        if (isNowHidden === wanted.isSuspended) continue;
        if (isNowHidden) stop(caller, wanted);
        wanted.isSuspended = isNowHidden;
        if (!isNowHidden) resume(caller, wanted);
      }
    },
    leave(caller) {
      const own = callers.get(caller);
      callers.delete(caller);
      for (const wanted of own?.values() ?? []) stop(caller, wanted);
    },
    subscribers: (sourceId, upstreamUri) =>
      [...callers].flatMap(([caller, own]) =>
        [...own]
          .filter(([, wanted]) => wanted.sourceId === sourceId && wanted.upstreamUri === upstreamUri)
          .map(([uri]) => [caller, uri] as [T, string]),
      ),
  };
}
