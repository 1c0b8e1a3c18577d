/** The core as the manager reaches it: over HTTP, with a token that the core knows and the token of the manager. */
import type { Dispatcher } from 'undici';
import { readAuthorities } from '../base/certificates.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { isObject, toObject } from '../base/objects.ts';
import { ownServerOptions } from '../sources/pool-options.ts';

export interface CoreOptions {
  /** Without a path. */
  readonly url: string;
  /** CORE_TOKEN or BEARER_TOKEN, or the operator's key for the core that started this manager; null if there is none. */
  readonly token: string | null;
  /** A PEM file with the authorities of its certificate; null for those of the system. */
  readonly ca: string | null;
  /** The PEM file with the certificate of this configuration, which may be that of the core; null if it has none. */
  readonly cert: string | null;
  /** MANAGER_INTERNAL_TOKEN; null if it is not set. */
  readonly managerToken: string | null;
}

/** A namespace as the core sees it. */
export interface CoreNamespace {
  readonly name: string;
  readonly tool_count: number;
  readonly state: string;
  readonly reason?: string;
  readonly problems?: readonly string[];
  readonly tools: readonly CoreTool[];
}

/** A tool that the core serves. */
export interface CoreTool {
  readonly name: string;
  readonly description: string;
  /** Empty if it is not known. */
  readonly filename: string;
}

export interface Core {
  readonly url: string;
  /**
   * Reads everything again. Waits until the changed workers have been tried, which may take minutes; meanwhile `progress`
   * is told what it waits for.
   */
  reload(signal: AbortSignal | null, progress: (message: string) => void): Promise<Readonly<Record<string, unknown>>>;
  namespaces(): Promise<readonly CoreNamespace[]>;
  close(): Promise<void>;
}

/** Milliseconds for an answer to anything but a reload. */
const SHORT = 10_000;
const MOST_BYTES = 64 * 1024 * 1024;

export async function openCore({ url, token, ca, cert, managerToken }: CoreOptions): Promise<Core> {
  const { Agent } = await import('undici');
  // A reload waits for installations.
  const connect = { timeout: SHORT, ...(ca !== null && { ca: readAuthorities(ca, 'manager.core_ca') }) };
  const isOwn = ca === null && cert !== null;
  const agent = new Agent(isOwn ? await ownServerOptions(cert, null) : { headersTimeout: 0, bodyTimeout: 0, connect });

  async function ask(method: 'GET' | 'POST', signal: AbortSignal | null): Promise<Dispatcher.ResponseData['body']> {
    const { request } = await import('undici');
    const headers = {
      accept: method === 'GET' ? 'application/json' : 'text/event-stream',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(managerToken !== null && { 'x-manager-token': managerToken }),
    };
    let response: Dispatcher.ResponseData;
    try {
      response = await request(`${url}/reload`, { method, headers, dispatcher: agent, signal });
    } catch (error) {
      if (signal?.reason instanceof GatewayError) throw signal.reason;
      const { code = messageOf(error) } = error as NodeJS.ErrnoException;
      throw away(code);
    }
    const { statusCode, body } = response;
    if (statusCode === 200) return body;
    throw refusal(statusCode, await readText(body));
  }

  const away = (why: string) =>
    new GatewayError(
      'source_unavailable',
      `The core at ${url} cannot be reached (${why}). Start it with toolgate serve, or set CORE_URL to its address.`,
    );

  const soon = () => AbortSignal.timeout(SHORT) as AbortSignal;

  function refusal(status: number, text: string): GatewayError {
    if (status === 401)
      return new GatewayError(
        'unauthorized',
        `The core at ${url} does not accept the token. Give core and manager the same BEARER_TOKEN, or the manager the token of an agent in CORE_TOKEN.`,
      );
    if (status === 404)
      return new GatewayError(
        'forbidden',
        `The core at ${url} has no /reload. Give core and manager the same MANAGER_INTERNAL_TOKEN.`,
      );
    return new GatewayError(
      'source_unavailable',
      `The core at ${url} answered ${status} to /reload: ${messageIn(text)}`,
    );
  }

  return {
    url,
    async reload(signal, progress) {
      let report: unknown = null;
      const body = await ask('POST', signal);
      try {
        for await (const { event, data } of eventsIn(body)) {
          if (event === 'progress') progress(String(data.message));
          else if (event === 'error') throw new GatewayError('internal', `The core could not reload: ${data.message}`);
          else report = data;
        }
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        if (signal?.reason instanceof GatewayError) throw signal.reason;
        throw away(messageOf(error));
      }
      if (!isObject(report)) throw away('it ended while it reloaded');
      return report;
    },
    async namespaces() {
      const text = await readText(await ask('GET', soon()));
      const { namespaces } = JSON.parse(text) as { namespaces?: unknown };
      return Array.isArray(namespaces) ? (namespaces as CoreNamespace[]) : [];
    },
    close: () => agent.close(),
  };
}

/** The events of a stream, as the core writes them: one line each for name and data. */
async function* eventsIn(
  body: AsyncIterable<Buffer>,
): AsyncGenerator<{ readonly event: string; readonly data: Readonly<Record<string, unknown>> }> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > MOST_BYTES) throw tooLarge();
    const blocks = rest.split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) ?? [];
      if (event !== undefined) yield { event, data: toObject(JSON.parse(data!)) };
    }
  }
}

function tooLarge(): GatewayError {
  return new GatewayError('too_large', 'The answer of the core is too large.');
}

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The message of an error in any of our forms. */
function messageIn(text: string): string {
  try {
    const body = JSON.parse(text) as { message?: unknown; error?: { message?: unknown } };
    return String(body.message ?? body.error?.message ?? text).slice(0, 500);
  } catch {
    return text.slice(0, 200);
  }
}
