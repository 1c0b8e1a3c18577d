/** The core as the manager reaches it: over HTTP, with the token of clients and the token of the manager. */
import type { Dispatcher } from 'undici';
import { readAuthorities } from '../base/certificates.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';

export interface CoreOptions {
  /** Without a path. */
  readonly url: string;
  /** BEARER_TOKEN; null if it is not set. */
  readonly token: string | null;
  /** A PEM file with the authorities of its certificate; null for those of the system. */
  readonly ca: string | null;
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
}

/** A tool that the core serves. */
export interface CoreTool {
  readonly name: string;
  readonly description?: string;
  readonly _meta?: { readonly 'toolgate/file'?: string };
}

export interface Core {
  readonly url: string;
  /** Reads everything again. Waits until the changed workers have been tried, which may take minutes. */
  reload(signal: AbortSignal | null): Promise<Readonly<Record<string, unknown>>>;
  namespaces(): Promise<readonly CoreNamespace[]>;
  tools(namespace: string): Promise<readonly CoreTool[]>;
  close(): Promise<void>;
}

/** Milliseconds for an answer to anything but a reload. */
const SHORT = 10_000;
const MOST_BYTES = 64 * 1024 * 1024;

export async function openCore({ url, token, ca, managerToken }: CoreOptions): Promise<Core> {
  const { Agent } = await import('undici');
  // A reload waits for installations.
  const connect = { timeout: SHORT, ...(ca !== null && { ca: readAuthorities(ca, 'manager.core_ca') }) };
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect });

  async function ask(method: 'GET' | 'POST', path: string, signal: AbortSignal | null): Promise<unknown> {
    const { request } = await import('undici');
    const headers = {
      accept: 'application/json',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(method === 'POST' && managerToken !== null && { 'x-manager-token': managerToken }),
    };
    let response: Dispatcher.ResponseData;
    try {
      response = await request(`${url}${path}`, { method, headers, dispatcher: agent, signal });
    } catch (error) {
      if (signal?.reason instanceof GatewayError) throw signal.reason;
      const { code = messageOf(error) } = error as NodeJS.ErrnoException;
      throw new GatewayError(
        'source_unavailable',
        `The core at ${url} cannot be reached (${code}). Start it with toolgate serve, or set CORE_URL to its address.`,
      );
    }
    const { statusCode, body } = response;
    const text = await readText(body);
    if (statusCode === 200)
      try {
        return JSON.parse(text) as unknown;
      } catch {}
    throw refusal(path, statusCode, text);
  }

  const soon = () => AbortSignal.timeout(SHORT) as AbortSignal;

  function refusal(path: string, status: number, text: string): GatewayError {
    if (status === 401)
      return new GatewayError(
        'unauthorized',
        `The core at ${url} does not accept the token. Give core and manager the same BEARER_TOKEN.`,
      );
    if (path === '/reload' && status === 404)
      return new GatewayError(
        'forbidden',
        `The core at ${url} has no /reload. Give core and manager the same MANAGER_INTERNAL_TOKEN.`,
      );
    return new GatewayError(
      'source_unavailable',
      `The core at ${url} answered ${status} to ${path}: ${messageIn(text)}`,
    );
  }

  return {
    url,
    async reload(signal) {
      const report = await ask('POST', '/reload', signal);
      return isObject(report) ? report : {};
    },
    async namespaces() {
      const all = await ask('GET', '/namespaces', soon());
      return Array.isArray(all) ? (all as CoreNamespace[]) : [];
    },
    async tools(namespace) {
      const listed = await ask('GET', `/ns/${encodeURIComponent(namespace)}/tools`, soon());
      const tools = isObject(listed) ? listed.tools : listed;
      return Array.isArray(tools) ? (tools as CoreTool[]) : [];
    },
    close: () => agent.close(),
  };
}

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new GatewayError('too_large', 'The answer of the core is too large.');
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
