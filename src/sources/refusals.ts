/**
 * Requests that a modern server refuses because of how we sent them. What we know about the server may be outdated, so
 * each is sent once more. The codes concern our own connection and are never passed on to callers.
 */
import { GatewayError } from '../base/errors.ts';
import type { Offer } from '../catalog/item.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { PASSED_ON, TASKS_CAPABILITY } from '../protocol/envelope.ts';
import { findMember } from '../protocol/json.ts';
import { TASKS } from '../protocol/meta.ts';
import type { Era } from '../protocol/revisions.ts';
import { deferRequest } from './tickets.ts';

export const HEADER_MISMATCH = -32_020;
const CAPABILITY_MISSING = -32_021;
export const REVISION_UNSUPPORTED = -32_022;
const CODES: readonly number[] = [HEADER_MISMATCH, CAPABILITY_MISSING, REVISION_UNSUPPORTED];

export interface UpstreamRefusal {
  readonly code: number;
  readonly data: unknown;
  /** The complete error object, as the server sent it. */
  readonly error: Buffer;
}

/** The refusal in an error object; null for an error that is meant for the caller. */
export function readRefusal(error: Buffer, era: Era): UpstreamRefusal | null {
  const member = findMember(error, 'code')!;
  const code = Number(error.toString('latin1', member.start, member.end));
  if (!CODES.includes(code)) return null;
  const data = readData(error);
  // In earlier revisions the codes may mean anything. But a modern server may have taken the place of a legacy one.
  const isModern = era === 'modern' || (code === REVISION_UNSUPPORTED && Array.isArray(data?.supported));
  return isModern ? { code, error, data } : null;
}

function readData(error: Buffer): { readonly supported?: unknown } | null {
  try {
    return (JSON.parse(error.toString()) as { data?: object }).data ?? null;
  } catch {
    return null;
  }
}

export interface RefusalRetryOptions {
  /** The name of the server. */
  key(): string;
  isClosed(): boolean;
  call(request: SourceRequest): Ticket;
  /** Lists the tools again and returns the complete offer. */
  relist(): Promise<Offer>;
}

export class RefusalRetries {
  readonly #options: RefusalRetryOptions;
  readonly #retried = new WeakSet<SourceRequest>();

  constructor(options: RefusalRetryOptions) {
    this.#options = options;
  }

  /** Sends the request again; null if it was already sent again once, or the server is closed. */
  again(request: SourceRequest): Ticket | null {
    if (this.#retried.has(request) || this.#options.isClosed()) return null;
    this.#retried.add(request);
    return this.#options.call(request);
  }

  /**
   * The request continues under the returned ticket, or was answered if there is none. `reconnect` opens a new
   * connection with a new handshake, and sends the request there.
   */
  refused(
    request: SourceRequest,
    { code, data }: UpstreamRefusal,
    reconnect: (request: SourceRequest) => Ticket | null,
  ): Ticket | null {
    if (code === CAPABILITY_MISSING) {
      request.sink.fail(capabilityMissing(this.#options.key(), data));
      return null;
    }
    if (this.#retried.has(request)) return this.#giveUp(request, code);
    if (code === HEADER_MISMATCH && request.method === 'tools/call') return this.#relist(request, code);
    return (code === REVISION_UNSUPPORTED ? reconnect(request) : null) ?? this.#giveUp(request, code);
  }

  /** Headers repeat the arguments that the tool's definition marks, and the definition may have changed. */
  #relist(request: SourceRequest, code: number): Ticket {
    const retry = (offer: Offer) => {
      request.renew?.(offer.items);
      return this.again(request) ?? this.#giveUp(request, code);
    };
    return deferRequest(request, this.#options.relist(), retry);
  }

  #giveUp(request: SourceRequest, code: number): null {
    const what =
      code === REVISION_UNSUPPORTED ? 'the protocol revision that it agreed to' : 'the headers of the request';
    const text = `Server "${this.#options.key()}" does not accept ${what}. Try again later.`;
    request.sink.fail(new GatewayError('source_broken', text));
    return null;
  }
}

/** The error for a caller whose call needs a capability that the caller did not declare. */
function capabilityMissing(source: string, data: unknown): GatewayError {
  const required = (data as { requiredCapabilities?: unknown } | null)?.requiredCapabilities;
  if (isTasks(required))
    return new GatewayError(
      'capability_missing',
      `Server "${source}" runs this only as an MCP task: it needs a client that declares the extension "${TASKS}".`,
      { details: { requiredCapabilities: TASKS_CAPABILITY } },
    );
  const names = typeof required === 'object' && required !== null ? Object.keys(required) : [];
  const list = names.length === 0 ? 'a capability' : names.map((name) => `"${name}"`).join(', ');
  if (names.some((name) => !PASSED_ON.includes(name))) {
    const text = `Server "${source}" needs a client that declares ${list}, which Toolgate cannot pass on.`;
    return new GatewayError('source_broken', text);
  }
  return new GatewayError('capability_missing', `Server "${source}" needs a client that declares ${list}.`, {
    details: { requiredCapabilities: Object.fromEntries(names.map((name) => [name, {}])) },
  });
}

/** Whether only the extension is missing that we pass on. */
function isTasks(required: unknown): boolean {
  const { extensions, ...others } = (required ?? {}) as { readonly extensions?: object | null };
  return Object.keys(others).length === 0 && Object.keys(extensions ?? {}).join() === TASKS;
}
