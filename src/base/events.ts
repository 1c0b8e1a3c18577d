/** What happens inside a gateway, told to whoever listens (log, CLI, tests). Listeners never change what happens next. */

import type { ErrorCode } from './errors.ts';

/** Every event, with what comes along. */
export interface EventMap {
  /** A server changed its state. */
  source: { readonly source: string; readonly state: string; readonly detail: string };
  /** A server said something on its standard error or did something worth knowing. */
  note: { readonly source: string; readonly message: string };
  /** A new catalog is in force. */
  catalog: { readonly version: number; readonly problems: readonly { source: string; message: string }[] };
  /** A configuration was applied or refused. */
  config: { readonly ok: boolean; readonly message: string };
  /** Somebody did what concerns others: agents, toolsets, and the like. */
  admin: { readonly act: string; readonly agent: string; readonly detail: string };
  /** Somebody waits for an approval, or does no more. */
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
  /** The audit cannot be written any more, or can again. */
  audit: { readonly ok: boolean; readonly message: string };
  /** A client was left because it did not read what it was sent. */
  cut: { readonly bytes: number };
  /** The HTTP door sent a request away before anything of MCP was looked at, or for what is wrong with it. */
  sent_away: { readonly code: ErrorCode };
  /** Something unexpected was caught. */
  failure: { readonly where: string; readonly error: unknown };
}

/** What may happen. */
export type EventName = keyof EventMap;
/** Hears of every event. What it throws is ignored. */
export type Listener = <K extends EventName>(name: K, event: EventMap[K]) => void;

/**
 * What happens in a gateway. Texts are without secrets.
 *
 * @example
 * const stop = gateway.events.on('source', ({ source, state }) => console.error(source, state));
 * stop();
 */
export interface Events {
  emit<K extends EventName>(name: K, event: EventMap[K]): void;
  /** Returns the function that ends the listening. */
  listen(listener: Listener): () => void;
  /** The same for events of one name. */
  on<K extends EventName>(name: K, listener: (event: EventMap[K]) => void): () => void;
}

/** `redact` takes out of every text what nobody is to read. */
export function createEvents(redact: (text: string) => string = (text) => text): Events {
  const listeners = new Set<Listener>();
  const listen = (listener: Listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    emit(name, event) {
      if (listeners.size === 0) return;
      const clean = cleaned(event, redact) as typeof event;
      for (const listener of listeners) {
        try {
          listener(name, clean);
        } catch {
          // A broken listener must not stop the gateway, and there is nobody left to tell.
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

/** The same value, with every text in it redacted. */
export function cleaned(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (value instanceof Error) return cleanedError(value, redact);
  if (Array.isArray(value)) return value.map((one) => cleaned(one, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cleaned(inner, redact)]));
}

function cleanedError(error: Error, redact: (text: string) => string): Error {
  const { message, stack = '' } = error;
  if (redact(message) === message && redact(stack) === stack) return error;
  const clean = new Error(redact(message));
  clean.name = error.name;
  clean.stack = redact(stack);
  return clean;
}
