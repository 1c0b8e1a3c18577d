/** Asks an MCP registry (version 0.1 of its interface) for servers. */
import * as z from 'zod';
import { GatewayError, messageOf } from '../../base/errors.ts';
import type { RegistryConfig } from '../../config/registry.ts';
import { type RegistryEntry, registryEntrySchema } from './server-json.ts';

const MAX_ANSWER = 4 * 1024 * 1024;
const MAX_NAME = 200;

const pageSchema = z.object({
  servers: z.array(z.unknown()).max(1_000),
  metadata: z.object({ nextCursor: z.string().optional() }).optional(),
});

export interface RegistryAsk {
  readonly registry: RegistryConfig;
  readonly signal: AbortSignal | null;
}

/** The latest versions of servers whose name or description has this text. Entries that are not well-formed are left out. */
export async function searchEntries(query: string, limit: number, ask: RegistryAsk): Promise<RegistryEntry[]> {
  const found = new URLSearchParams({ search: query.slice(0, MAX_NAME), version: 'latest', limit: String(limit) });
  const answer = pageSchema.safeParse(await get(`/v0.1/servers?${found}`, ask));
  if (!answer.success) throw unexpected(ask);
  return answer.data.servers.slice(0, limit).flatMap((one) => {
    const { data } = registryEntrySchema.safeParse(one);
    return data === undefined ? [] : [data];
  });
}

/** The entry with this name; null if there is none. */
export async function findEntry(name: string, version: string, ask: RegistryAsk): Promise<RegistryEntry | null> {
  if (name.length > MAX_NAME) return null;
  const path = `/v0.1/servers/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
  const answer = await get(path, ask);
  if (answer === null) return null;
  const { data, error } = registryEntrySchema.safeParse(answer);
  if (data !== undefined) return data;
  const [issue] = error!.issues;
  throw new GatewayError(
    'usage',
    `The entry "${name}" of ${ask.registry.url} is not a server.json of 2025-09-16 or later: ${issue!.path.join('.')}: ${issue!.message}.`,
  );
}

function unexpected({ registry }: RegistryAsk): GatewayError {
  return new GatewayError('source_broken', `${registry.url} did not answer like an MCP registry. Check registry.url.`);
}

/** The parsed answer; null for 404. */
async function get(path: string, ask: RegistryAsk): Promise<unknown> {
  const { registry, signal } = ask;
  const timeout = AbortSignal.timeout(registry.timeout);
  try {
    const response = await fetch(registry.url + path, {
      headers: { accept: 'application/json' },
      // An address elsewhere was not chosen by the operator.
      redirect: 'error',
      signal: signal === null ? timeout : AbortSignal.any([timeout, signal]),
    });
    if (response.status === 404) {
      await response.body?.cancel();
      return null;
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw new GatewayError(
        'source_unavailable',
        `${registry.url} answered with status ${response.status}. Try again later.`,
      );
    }
    return JSON.parse(await bounded(response, registry.url)) as unknown;
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    if (error instanceof SyntaxError) throw unexpected(ask);
    const cause = (error as Error).cause;
    const why = timeout.aborted ? `no answer within ${registry.timeout / 1_000} s` : messageOf(cause ?? error);
    throw new GatewayError(
      'source_unavailable',
      `The registry ${registry.url} cannot be reached (${why}). Check the network, or set registry.url to another one.`,
    );
  }
}

async function bounded(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER)
      throw new GatewayError('too_large', `${url} sent more than 4 MiB. Ask for something narrower.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
