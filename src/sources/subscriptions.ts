/** The resources of one server that somebody wants to hear of: counted, so that the server is told once. */

export interface Subscriptions {
  readonly uris: readonly string[];
  /** Rejects where the server does not agree; then it does not count. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
  /** A new connection knows of none yet. */
  renew(): void;
}

export interface Subscriber {
  /** For servers that are told of each one; null while there is no connection, or where they are told of all at once. */
  tell(method: 'resources/subscribe' | 'resources/unsubscribe', uri: string): Promise<unknown> | null;
  /** For servers that are told of all at once. */
  tellAll(uris: readonly string[]): void;
}

export function createSubscriptions({ tell, tellAll }: Subscriber): Subscriptions {
  const counts = new Map<string, number>();
  const ignore = () => {};
  return {
    get uris() {
      return [...counts.keys()];
    },
    async add(uri) {
      const count = counts.get(uri) ?? 0;
      counts.set(uri, count + 1);
      if (count > 0) return;
      tellAll([...counts.keys()]);
      try {
        await tell('resources/subscribe', uri);
      } catch (error) {
        counts.delete(uri);
        throw error;
      }
    },
    remove(uri) {
      const count = counts.get(uri) ?? 0;
      if (count > 1) counts.set(uri, count - 1);
      if (count !== 1) return;
      counts.delete(uri);
      tellAll([...counts.keys()]);
      tell('resources/unsubscribe', uri)?.catch(ignore);
    },
    renew() {
      if (counts.size === 0) return;
      tellAll([...counts.keys()]);
      for (const uri of counts.keys()) tell('resources/subscribe', uri)?.catch(ignore);
    },
  };
}
