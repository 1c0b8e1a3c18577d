/** What happens inside a gateway, told to whoever listens (log, CLI, tests). Listeners never change what happens next. */

export interface EventMap {
  /** A server changed its state. */
  source: { readonly source: string; readonly state: string; readonly detail: string };
  /** A server said something on its standard error or did something worth knowing. */
  note: { readonly source: string; readonly message: string };
  /** A new catalog is in force. */
  catalog: { readonly version: number; readonly problems: readonly { source: string; message: string }[] };
  /** A configuration was applied or refused. */
  config: { readonly ok: boolean; readonly message: string };
  /** A client was left because it did not read what it was sent. */
  cut: { readonly bytes: number };
  /** Something unexpected was caught. */
  failure: { readonly where: string; readonly error: unknown };
}

export type EventName = keyof EventMap;
export type Listener = <K extends EventName>(name: K, event: EventMap[K]) => void;

export interface Events {
  emit<K extends EventName>(name: K, event: EventMap[K]): void;
  /** Returns the function that ends the listening. */
  listen(listener: Listener): () => void;
}

export function createEvents(): Events {
  const listeners = new Set<Listener>();
  return {
    emit(name, event) {
      for (const listener of listeners) {
        try {
          listener(name, event);
        } catch {
          // A broken listener must not stop the gateway, and there is nobody left to tell.
        }
      }
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
