/** HTTP requests to a gateway that is already running. */
import { GatewayError, messageOf } from '../base/errors.ts';

const TIMEOUT_MS = 10_000;

/** A GET, or a POST of a JSON body. */
export async function ask(url: URL, headers: Record<string, string>, body?: object): Promise<Response> {
  try {
    return await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    throw new GatewayError(
      'source_unavailable',
      `No gateway answers at ${url.origin} (${reasonOf(error)}). Start one with toolgate serve, or name its address with --url.`,
    );
  }
}

/** Why a fetch failed. The error itself only says "fetch failed". */
export function reasonOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? messageOf(error.cause) : messageOf(error);
}
