/** Requests to the gateway that served this page. Addresses are relative to the document, because it may be mounted under a path. */
import { signal } from '@preact/signals';
import type { ApiError, ReplicaInfo } from '../../src/dashboard/api-types.ts';

/** Whether the session has ended. Nothing can be asked any more, until somebody comes in by a new link. */
export const isOver = signal(false);

/** The replica whose stream the page has; null if there is one only. All answers come from it. */
export const replica = signal<ReplicaInfo | null>(null);

export class RequestError extends Error {
  readonly code: string;
  readonly status: number;
  readonly detail: Readonly<Record<string, unknown>>;
  constructor(status: number, body: Partial<ApiError>) {
    super(body.message ?? `The gateway answered with status ${status}.`);
    this.status = status;
    this.code = body.code ?? 'unknown';
    this.detail = body;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const search = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return send<T>('GET', search ? `${path}?${search}` : path, undefined, signal);
}

/** `home` is the replica that it is for, if not that of the page. */
export const post = <T>(path: string, body: unknown = {}, home?: string | null): Promise<T> =>
  send<T>('POST', path, body, undefined, home);
export const put = <T>(path: string, body: unknown = {}): Promise<T> => send<T>('PUT', path, body);
export const remove = <T = void>(path: string, body?: unknown, home?: string | null): Promise<T> =>
  send<T>('DELETE', path, body, undefined, home);

/** A path below `admin/`, with each part encoded. */
export const at = (...parts: readonly string[]): string => parts.map(encodeURIComponent).join('/');

/** The answer as it comes, for streams. */
export async function open(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  home: string | null = replica.peek()?.id ?? null,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`admin/${path}`, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      headers: {
        accept: 'application/json, text/event-stream',
        ...(method !== 'GET' && { 'x-toolgate-page': '1' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(home !== null && { 'x-toolgate-replica': home }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RequestError(0, { code: 'unreachable', message: 'The gateway does not answer. Is it still running?' });
  }
  if (response.ok) return response;
  if (response.status === 401) isOver.value = true;
  throw new RequestError(response.status, await errorOf(response));
}

async function send<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  home?: string | null,
): Promise<T> {
  const response = await open(method, path, body, signal, home);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function errorOf(response: Response): Promise<Partial<ApiError>> {
  try {
    return (await response.json()) as ApiError;
  } catch {
    return {};
  }
}
