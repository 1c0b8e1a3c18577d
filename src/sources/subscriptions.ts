/** The resources of one server that somebody wants to hear of: counted, so that the server is told once. */
import { GatewayError } from '../base/errors.ts';

export interface Subscriptions {
  readonly uris: readonly string[];
  /** Resolves when the server tells of it from here on. Rejects where it does not agree; then it does not count. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
  /** A new connection knows of none yet. */
  renew(): void;
}

export interface Subscriber {
  /** For servers that are told of each one; null while there is no connection, or where they are told of all at once. */
  tell(method: 'resources/subscribe' | 'resources/unsubscribe', uri: string): Promise<unknown> | null;
  /** For servers that are told of all at once: those they tell of, or null likewise. */
  tellAll(uris: readonly string[]): Promise<ReadonlySet<string>> | null;
}

interface Wanted {
  count: number;
  /** Whether the server agrees; whoever comes second waits for that too. */
  readonly agreed: Promise<void>;
}

export function createSubscriptions({ tell, tellAll }: Subscriber): Subscriptions {
  const wanted = new Map<string, Wanted>();
  const ignore = () => {};

  async function agree(uri: string): Promise<void> {
    const all = tellAll([...wanted.keys(), uri]);
    if (all === null) await tell('resources/subscribe', uri);
    else if (!(await all).has(uri))
      throw new GatewayError('method_unknown', `The server does not tell of changes in "${uri}".`);
  }

  return {
    get uris() {
      return [...wanted.keys()];
    },
    async add(uri) {
      const known = wanted.get(uri);
      if (known !== undefined) {
        known.count++;
        return known.agreed;
      }
      const one: Wanted = { count: 1, agreed: agree(uri) };
      wanted.set(uri, one);
      try {
        await one.agreed;
      } catch (error) {
        if (wanted.get(uri) === one) {
          wanted.delete(uri);
          tellAll([...wanted.keys()])?.catch(ignore);
        }
        throw error;
      }
    },
    remove(uri) {
      const known = wanted.get(uri);
      if (known === undefined || --known.count > 0) return;
      wanted.delete(uri);
      tellAll([...wanted.keys()])?.catch(ignore);
      tell('resources/unsubscribe', uri)?.catch(ignore);
    },
    renew() {
      if (wanted.size === 0) return;
      tellAll([...wanted.keys()])?.catch(ignore);
      for (const uri of wanted.keys()) tell('resources/subscribe', uri)?.catch(ignore);
    },
  };
}
