/**
 * What happens inside a gateway, for observers: the log, the metrics, the audit, tests and programs. The gateway never acts on
 * an event. Its rooms get an `EventSink`, which can only emit; what has to follow from a change is a direct call.
 */

import type { ErrorCode } from './errors.ts';

/** Every event with its payload. */
export interface EventMap {
  /** A server changed its state. */
  source: { readonly source: string; readonly state: string; readonly detail: string };
  /** A server wrote to its standard error, or something worth knowing happened to it. */
  note: { readonly source: string; readonly message: string };
  /** A new catalog is in force. */
  catalog: { readonly version: number; readonly problems: readonly { source: string; message: string }[] };
  /** A configuration was applied or refused. */
  config: { readonly ok: boolean; readonly message: string };
  /** Somebody changed something that concerns others: agents, toolsets and the like. */
  admin: { readonly act: string; readonly agent: string; readonly detail: string };
  /** An approval request was made, or decided. */
  approval: {
    readonly id: string;
    readonly state: string;
    readonly agent: string;
    readonly tool: string;
    readonly by: string;
    readonly reason: string;
  };
  /** A credential was missing or wrong. */
  unauthorized: { readonly reason: string; readonly remote: string };
  /** The audit can no longer be written, or can be again. */
  audit: { readonly ok: boolean; readonly message: string };
  /** A client was disconnected because it did not read what it was sent. */
  cut: { readonly bytes: number };
  /** The HTTP door refused a request before it reached MCP, or because it was malformed. */
  sent_away: { readonly code: ErrorCode };
  /** Something failed unexpectedly. */
  failure: { readonly where: string; readonly error: unknown };
}

/** The name of an event. */
export type EventName = keyof EventMap;
/** Hears every event. Errors that it throws are ignored. */
export type Listener = <K extends EventName>(name: K, event: EventMap[K]) => void;

/**
 * What happens in a gateway. Texts contain no secrets.
 *
 * @example
 * const stop = gateway.events.on('source', ({ source, state }) => console.error(source, state));
 * stop();
 */
export interface Events {
  emit<K extends EventName>(name: K, event: EventMap[K]): void;
  /** Hears every event; returns a function that ends that. */
  listen(listener: Listener): () => void;
  /** Hears the events of one name. */
  on<K extends EventName>(name: K, listener: (event: EventMap[K]) => void): () => void;
}

/** The side of `Events` that rooms of the gateway get. It has no way to listen, so no control flow can hang on an event. */
export type EventSink = Pick<Events, 'emit'>;

/** `redact` removes secrets from every text of an event. */
export function createEvents(redact: (text: string) => string = (text) => text): Events {
  const listeners = new Set<Listener>();
  const listen = (listener: Listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    emit(name, event) {
      if (listeners.size === 0) return;
      const clean = redacted(event, redact) as typeof event;
      for (const listener of listeners) {
        try {
          listener(name, clean);
        } catch {
          // A broken observer must not stop the gateway, and reporting it would call the same observer again.
        }
      }
    },
    listen,
    on: (wanted, listener) =>
      listen((name, event) => {
        if ((name as string) === wanted) listener(event as never);
      }),
  };
}

/** The same value with every text in it redacted. */
export function redacted(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (value instanceof Error) return redactedError(value, redact);
  if (Array.isArray(value)) return value.map((one) => redacted(one, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redacted(inner, redact)]));
}

function redactedError(error: Error, redact: (text: string) => string): Error {
  const { message, stack = '' } = error;
  if (redact(message) === message && redact(stack) === stack) return error;
  const clean = new Error(redact(message));
  clean.name = error.name;
  clean.stack = redact(stack);
  return clean;
}
