/** What a request says about what its client is to see, by its address or by headers: which toolset, which namespace, which task. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../base/errors.ts';
import type { Scope } from '../../calls/caller.ts';
import { type Task, taskFromText } from '../../config/task.ts';
import type { Gateway } from '../../gateway/types.ts';

export interface Address {
  /** For clients that do not hear of changed lists; null where the address leaves that open. */
  readonly toolset: string | null;
  /** Null for all of them. */
  readonly namespace: string | null;
  /** Null where it is not said. */
  readonly task: Task | null;
}

const TOOLSET = '/mcp/t/';
const NAMESPACE = /^\/ns\/([^/]*)\//;
const SHORT = /^\/([^/]*)\//;

/** `isShort` says that the namespace stands first in the path. */
export function readAddress({ url = '/', headers }: IncomingMessage, isShort = false): Address {
  const at = url.indexOf('?');
  // Nearly all of them.
  if (at < 0 && !isShort && headers['x-toolset'] === undefined && headers['x-namespace'] === undefined)
    if (headers['x-task'] === undefined && !url.startsWith('/ns/') && !url.startsWith(TOOLSET)) return PLAIN;
  const path = pathOf(url);
  const query = at < 0 ? null : new URLSearchParams(url.slice(at + 1));
  return {
    toolset: toolsetOf(path, query, headers),
    namespace: namespaceOf(path, headers, isShort ? SHORT : NAMESPACE),
    task: taskOf(query, headers),
  };
}

const PLAIN: Address = { toolset: null, namespace: null, task: null };

function toolsetOf(path: string, query: URLSearchParams | null, headers: IncomingMessage['headers']): string | null {
  if (path.startsWith(TOOLSET)) return decode(path.slice(TOOLSET.length), 'toolset');
  return query?.get('toolset') ?? said(headers['x-toolset']);
}

/** Both at once would leave open which of them holds. */
function taskOf(query: URLSearchParams | null, headers: IncomingMessage['headers']): Task | null {
  const asked = query?.getAll('task') ?? [];
  const header = said(headers['x-task']);
  if (asked.length + (header === null ? 0 : 1) > 1)
    throw new GatewayError('request_invalid', 'The request names more than one task. Leave all but one out.');
  if (asked[0] !== undefined) return taskFromText(asked[0], 'The task of the address');
  // Node reads headers as Latin-1, and clients mostly write UTF-8.
  return header === null ? null : taskFromText(Buffer.from(header, 'latin1').toString(), 'The header X-Task');
}

function namespaceOf(path: string, headers: IncomingMessage['headers'], place: RegExp): string | null {
  const named = said(headers['x-namespace']) || null;
  const below = place.exec(path)?.[1];
  if (below === undefined) return named;
  const namespace = decode(below, 'namespace');
  if (named !== null && named !== namespace)
    throw new GatewayError(
      'request_invalid',
      'The address names one namespace and the header X-Namespace another. Leave one of the two out.',
    );
  return namespace;
}

function said(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null;
}

/** A part of a path. */
export function decode(text: string, what: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new GatewayError('path_unknown', `The address names no ${what}: it cannot be read.`);
  }
}

export function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** Throws where there is none for this agent; while servers are starting, that is known later. */
export function findNamespace(gateway: Gateway, agent: string, namespace: string): Promise<void> | null {
  if (gateway.knows(agent, namespace)) return null;
  const { opening } = gateway;
  if (opening === null) throw unknown(namespace);
  return opening.then(() => {
    if (!gateway.knows(agent, namespace)) throw unknown(namespace);
  });
}

// One that is hidden from an agent and one that does not exist answer alike.
function unknown(namespace: string): GatewayError {
  const name = JSON.stringify(namespace.slice(0, 100));
  return new GatewayError(
    'path_unknown',
    `There is no namespace ${name}. Name another in X-Namespace, or leave it out.`,
  );
}

/** For whoever comes for the first time, or comes anew with every request. */
export function requireNamespace({ config }: Gateway, { namespace }: Scope): void {
  if (!config.http.requireNamespace || namespace !== null) return;
  throw new GatewayError(
    'request_invalid',
    'A namespace is needed here: name it in the header X-Namespace, or use the same address below /ns/NAMESPACE.',
  );
}

/** For whoever comes again: a session stays where it was opened. */
export function requireSame(opened: string | null, { namespace }: Scope): void {
  if (namespace === null || namespace === opened) return;
  throw new GatewayError(
    'request_invalid',
    'The session was opened for another namespace. Leave X-Namespace as it was, or start a new session.',
  );
}
