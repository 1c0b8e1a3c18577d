/**
 * Events inside a gateway, for observers: the log, the metrics, the audit, tests and programs. The gateway itself never
 * acts on an event. Its parts get an `EventSink`, which can only emit; consequences of a change are direct calls.
 */
import type { ErrorCode } from './errors.ts';

/** Every event with its payload. */
export interface EventMap {
  /** A server changed its state. */
  source: { readonly source: string; readonly state: string; readonly detail: string };
  /** A server wrote to its standard error, or something notable happened to it. */
  note: { readonly source: string; readonly message: string };
  /** A server changed the definition of an item, or its instructions (then `name` is empty). */
  definition: {
    readonly source: string;
    readonly kind: string;
    readonly name: string;
    /** The fields that differ. */
    readonly fields: readonly string[];
    /** SHA-256 of the definition, its keys sorted. */
    readonly before: string;
    readonly after: string;
  };
  /** A new catalog is in force. */
  catalog: { readonly version: number; readonly problems: readonly { source: string; message: string }[] };
  /** A configuration was applied or refused. */
  config: { readonly ok: boolean; readonly message: string };
  /** An agent or the operator changed something that affects others: agents, toolsets and the like. */
  admin: {
    readonly act: string;
    readonly agent: string;
    readonly detail: string;
    /** The name of the admin token that it was done with; absent if it was none. */
    readonly by?: string;
  };
  /** An approval request was created or decided. */
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
  /** A web page, or a program that uses a foreign name for this gateway, was refused. `rule` is a key of `http`. */
  forbidden: { readonly rule: string; readonly remote: string };
  /** A request was refused that is not a call: for a closed or unknown address, definition or subscription. */
  denied: {
    readonly agent: string;
    readonly principal: string;
    readonly door: string;
    /** Empty if the request was refused before it was read. */
    readonly method: string;
    /** Null for no particular one. */
    readonly namespace: string | null;
    /** The name or URI of the item; null if it asked for something else. */
    readonly name: string | null;
    readonly code: ErrorCode;
    readonly detail: string;
  };
  /** The audit can no longer be written, or can be written again. */
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
/** Receives every event. Errors that it throws are ignored. */
export type Listener = <K extends EventName>(name: K, event: EventMap[K]) => void;

/**
 * The events of a gateway. Their texts contain no secrets.
 *
 * @example
 * const stop = gateway.events.on('source', ({ source, state }) => console.error(source, state));
 * stop();
 */
export interface Events {
  emit<K extends EventName>(name: K, event: EventMap[K]): void;
  /** Subscribes to every event; returns the function that unsubscribes. */
  listen(listener: Listener): () => void;
  /** Subscribes to the events of one name; returns the function that unsubscribes. */
  on<K extends EventName>(name: K, listener: (event: EventMap[K]) => void): () => void;
}

/**
 * The emitting half of `Events`, for the parts of the gateway. It cannot listen, so no control flow can depend on an
 * event.
 */
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
          // A failing listener must not stop the gateway, and reporting the failure would call the same listener again.
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

/** A copy of the value with every string in it redacted. */
export function redacted(value: unknown, redact: (text: string) => string, depth = 0): unknown {
  if (typeof value === 'string') return redact(value);
  if (value instanceof Error) return redactedError(value, redact);
  if (typeof value !== 'object' || value === null) return value;
  // A server can nest more deeply than the stack reaches.
  if (depth === DEEPEST) return '[nested too deeply to be shown]';
  if (Array.isArray(value)) return value.map((one) => redacted(one, redact, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redacted(inner, redact, depth + 1)]));
}

const DEEPEST = 500;

const MOST_CAUSES = 10;

function redactedError(error: Error, redact: (text: string) => string, depth = 0): Error {
  const { message, stack = '', cause } = error;
  const isDeep = cause instanceof Error && depth < MOST_CAUSES;
  const cleanCause = isDeep ? redactedError(cause, redact, depth + 1) : cause;
  if (redact(message) === message && redact(stack) === stack && cleanCause === cause) return error;
  const clean = new Error(redact(message), isDeep ? { cause: cleanCause } : {});
  clean.name = error.name;
  clean.stack = redact(stack);
  return clean;
}
