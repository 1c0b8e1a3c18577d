/** The scope that a request asks for by its URL or headers: a toolset, a namespace, a task. */
import type { IncomingMessage } from 'node:http';
import type { Subject } from '../../access/circumstances.ts';
import { goneToolset, type Toolset } from '../../access/toolset.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import { type Task, taskFromText } from '../../config/task.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { taskKey } from '../../plans/narrow-to-task.ts';
import { requireProfile } from '../../plans/plan.ts';
import { decodePart, pathOf } from './path.ts';

/** The scope as the request names it. */
export interface RequestedScope {
  /** The name of a toolset; null if the client keeps its own selection. */
  readonly toolset: string | null;
  /** Null for all of them. */
  readonly namespace: string | null;
  /** Null if the request names none. */
  readonly task: Task | null;
}

const TOOLSET = '/mcp/t/';
const NAMESPACE = /^\/ns\/([^/]*)\//;
const MCPO_NAMESPACE = /^\/([^/]*)\//;

/**
 * Null if the request names no scope. `isMcpo` says that the path starts with the namespace, `readsQuery` that the
 * query may name a scope.
 */
export function readScope(
  { url = '/', headers }: IncomingMessage,
  isMcpo: boolean,
  readsQuery: boolean,
): RequestedScope | null {
  const at = readsQuery ? url.indexOf('?') : -1;
  // Fast path for nearly all requests.
  if (at < 0 && !isMcpo && headers['x-toolset'] === undefined && headers['x-namespace'] === undefined)
    if (headers['x-task'] === undefined && !url.startsWith('/ns/') && !url.startsWith(TOOLSET)) return null;
  const path = pathOf(url);
  const query = at < 0 ? null : new URLSearchParams(url.slice(at + 1));
  const toolset = toolsetOf(path, query, headers);
  const namespace = namespaceOf(path, headers, isMcpo ? MCPO_NAMESPACE : NAMESPACE);
  const task = taskOf(query, headers);
  return toolset === null && namespace === null && task === null ? null : { toolset, namespace, task };
}

function toolsetOf(path: string, query: URLSearchParams | null, headers: IncomingMessage['headers']): string | null {
  if (path.startsWith(TOOLSET)) return decodePart(path.slice(TOOLSET.length), 'toolset');
  return query?.get('toolset') ?? textOf(headers['x-toolset']);
}

/** Throws if the request names two tasks, because it is unclear which one applies. */
function taskOf(query: URLSearchParams | null, headers: IncomingMessage['headers']): Task | null {
  const asked = query?.getAll('task') ?? [];
  const header = textOf(headers['x-task']);
  if (asked.length + (header === null ? 0 : 1) > 1)
    throw new GatewayError('request_invalid', 'The request names more than one task. Name only one.');
  if (asked[0] !== undefined) return taskFromText(asked[0], 'The task in the address');
  // Node reads headers as Latin-1, and clients mostly write UTF-8.
  return header === null ? null : taskFromText(Buffer.from(header, 'latin1').toString(), 'The header X-Task');
}

function namespaceOf(path: string, headers: IncomingMessage['headers'], pattern: RegExp): string | null {
  const named = textOf(headers['x-namespace']) || null;
  const part = pattern.exec(path)?.[1];
  if (part === undefined) return named;
  const namespace = decodePart(part, 'namespace');
  if (named !== null && named !== namespace)
    throw new GatewayError(
      'request_invalid',
      'The address names one namespace and the header X-Namespace another. Leave one of the two out.',
    );
  return namespace;
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' ? header : null;
}

/**
 * What a request asks for, with the task that its credential is bound to: the one that the request names, or else the
 * first. Throws if the request names another one.
 */
export function boundScope(requested: RequestedScope | null, bound: readonly Task[]): RequestedScope {
  const named = requested?.task ?? null;
  const task = named === null ? bound[0] : bound.find((one) => isSameTask(one, named));
  if (task === undefined)
    throw new GatewayError('forbidden', 'Your token is bound to another task. Leave out X-Task, or name that task.', {
      rule: 'task',
    });
  return { toolset: null, namespace: null, ...requested, task };
}

/** A task that has only a description is also meant by any part of it. */
function isSameTask(bound: Task, named: Task): boolean {
  if (taskKey(bound) === taskKey(named)) return true;
  const { description, ...others } = named;
  if (Object.values(others).some((part) => part !== '')) return false;
  return [bound.service, bound.type, bound.profile, bound.description].includes(description);
}

/** Narrows a scope to what a request names. Rejects if the agent has no such toolset, namespace or task. */
export async function narrowScope(
  gateway: Gateway,
  scope: Scope,
  { toolset: name, namespace, task }: RequestedScope,
  request: IncomingMessage,
  subject: Subject,
): Promise<Scope> {
  // What a session was opened with was checked then. It goes on if its toolset is removed, with an empty list.
  const isOpened = isInSession(request);
  if (namespace !== null && !isOpened) await findNamespace(gateway, subject, namespace);
  const toolset = name === null ? null : await findToolset(gateway, subject, name, isOpened);
  if (task !== null) requireProfile(task, gateway.config.tasks.rules());
  return { ...scope, toolset, namespace, task };
}

async function findToolset(gateway: Gateway, subject: Subject, name: string, isOpened: boolean): Promise<Toolset> {
  const toolset = await gateway.findToolset(subject, name);
  if (toolset !== null) return toolset;
  if (isOpened) return goneToolset(name);
  throw new GatewayError('path_unknown', `There is no toolset "${name}". Build it, or use /mcp.`);
}

function isInSession({ headers, url = '/' }: IncomingMessage): boolean {
  return headers['mcp-session-id'] !== undefined || pathOf(url).endsWith('/messages');
}

/** Throws if the agent has no such namespace. While servers are starting, it waits for them first. */
function findNamespace(gateway: Gateway, subject: Subject, namespace: string): Promise<void> | null {
  if (gateway.knows(subject, namespace)) return null;
  const { opening } = gateway;
  if (opening === null) throw namespaceUnknown(namespace);
  return opening.then(() => {
    if (!gateway.knows(subject, namespace)) throw namespaceUnknown(namespace);
  });
}

// A hidden namespace and one that does not exist get the same answer, so that an agent cannot tell them apart.
function namespaceUnknown(namespace: string): GatewayError {
  const name = JSON.stringify(namespace.slice(0, 100));
  return new GatewayError(
    'path_unknown',
    `There is no namespace ${name}. Name another in X-Namespace, or leave it out.`,
  );
}

/** Applies to requests outside of a session, and to the request that opens one. */
export function requireNamespace({ config }: Gateway, { namespace }: Scope): void {
  if (!config.http.requireNamespace || namespace !== null) return;
  throw new GatewayError(
    'request_invalid',
    'A namespace is needed here: name it in the header X-Namespace, or use the same address below /ns/NAMESPACE.',
  );
}

/** Whether a client with this identity may use a session that was opened for the task. */
export function mayWorkOn({ tasks }: Identity, task: Task | null): boolean {
  return tasks === null || (task !== null && tasks.some((one) => taskKey(one) === taskKey(task)));
}

/** A session keeps the namespace that it was opened with. */
export function requireSame(opened: string | null, { namespace }: Scope): void {
  if (namespace === null || namespace === opened) return;
  throw new GatewayError(
    'request_invalid',
    'The session was opened for another namespace. Leave X-Namespace as it was, or start a new session.',
  );
}
