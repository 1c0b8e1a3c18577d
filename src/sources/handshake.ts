/**
 * Finding out how a server speaks, and what it can do. Servers of the modern era answer `server/discover`; anything else,
 * or nothing, means that it is one of the earlier revisions, which want `initialize`.
 */

import { GatewayError } from '../base/errors.ts';
import { IDENTITY, INSTANCE, INSTANCE_KEY } from '../base/version.ts';
import type { Kind } from '../catalog/item.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import { SERVER_INFO, TASKS } from '../protocol/meta.ts';
import { ALL_REVISIONS, type Era, isRevision, LATEST_REVISION, MODERN_REVISION } from '../protocol/revisions.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { ask, startAsking, UpstreamError } from './ask.ts';
import type { Connection } from './connection.ts';
import { listenRequest } from './listening.ts';
import { HEADER_MISMATCH, REVISION_UNSUPPORTED } from './refusals.ts';

export interface Handshake {
  readonly era: Era;
  /** Whether it would have been modern, had it been asked less in a hurry. */
  readonly isModernToo: boolean;
  readonly revision: string;
  /** What the server calls itself. */
  readonly server: string;
  readonly kinds: readonly Kind[];
  /** The kinds whose changes it does not tell of, though its lists may change: they say how long they hold. */
  readonly silent: readonly Kind[];
  readonly completes: boolean;
  /** Whether it tells of changes inside resources. */
  readonly subscribes: boolean;
  /** What else a modern one is asked to tell of. */
  readonly filter: Readonly<Record<string, true>>;
  /** What it tells models about its use; empty for nothing. */
  readonly instructions: string;
  /** Whether it takes a level for its log messages; modern servers are told with each request. */
  readonly levels: boolean;
  readonly tasks: TaskAbilities;
}

/** A connection whose handshake is done. */
export interface LiveConnection {
  readonly connection: Connection;
  readonly handshake: Handshake;
}

/** What a server does with tasks. */
export interface TaskAbilities {
  /** May answer a call with one, as a modern server. */
  readonly starts: boolean;
  /** Runs a call as one where it is asked to, as a server of the revision before. */
  readonly runs: boolean;
  readonly lists: boolean;
}

export const NO_TASKS: TaskAbilities = { starts: false, runs: false, lists: false };

export interface HandshakeOptions {
  readonly timeout: number;
  /** False for a server that is known not to be modern. */
  readonly probe: boolean;
  /** Whose connection it is; null where it is everybody's. */
  readonly client: ClientChannel | null;
}

/** How long a server may leave the first question unanswered before it is taken for one that never will answer it. */
const PROBE_WAIT = 3_000;

const _meta = { [INSTANCE_KEY]: INSTANCE };
/** What we pass on to callers. A server of the earlier revisions is told once for all of them, and some offer tools only then. */
const ASKED = { elicitation: { form: {}, url: {} }, sampling: {} };

function helloFor(client: ClientChannel | null): object {
  return { protocolVersion: LATEST_REVISION, capabilities: capabilitiesOf(client), clientInfo: IDENTITY, _meta };
}

function capabilitiesOf(client: ClientChannel | null): unknown {
  if (client === null) return ASKED;
  // One without a session may be able to do more in its next request.
  if (client.abilities === null) return { ...ASKED, roots: {} };
  return JSON.parse(Buffer.from(client.abilities.capabilities, 'latin1').toString());
}

export async function performHandshake(
  connection: Connection,
  { timeout, probe, client }: HandshakeOptions,
): Promise<Handshake> {
  const words = helloFor(client);
  if (!probe) return enterLegacy(connection, await ask(connection, 'initialize', words, timeout));
  const deadline = Date.now() + timeout;
  connection.speak?.('modern', MODERN_REVISION);
  const discovery = startAsking(connection, 'server/discover', { _meta }, timeout);
  const discovered = discovery.answer.then(readDiscovery, judge);
  const first = await Promise.race([discovered, pause(Math.min(PROBE_WAIT, timeout / 2))]);
  if (first !== null && first !== 'silent') return enterModern(connection, first);
  connection.speak?.('legacy', null);
  const hello = startAsking(connection, 'initialize', words, Math.max(1, deadline - Date.now()));
  if (first === null) return enterLegacy(connection, await hello.answer);
  const winner = await judgeBoth(discovered, hello.answer);
  if (Buffer.isBuffer(winner)) {
    const other = await Promise.race([discovered.catch(() => null), pause(OTHER_ANSWER.late)]);
    discovery.ticket.cancel('answered by initialize');
    return { ...enterLegacy(connection, winner), isModernToo: other !== null && other !== 'silent' };
  }
  const handshake = enterModern(connection, winner);
  hello.ticket.cancel('answered by server/discover');
  return handshake;
}

/** How long after the one answer the other may come: that to `initialize`, and a late one to the question before it. */
const OTHER_ANSWER = { hello: 1_000, late: 100 };

/**
 * Both questions are open, as with a server that is slow to start; it may answer them in any order. One that takes
 * `initialize` has opened a session by that, and speaks accordingly even where it could do better.
 */
function judgeBoth(discovered: Promise<Discovery | null>, hello: Promise<Buffer>): Promise<Discovery | Buffer> {
  const refused = async (error: unknown) => {
    const discovery = await discovered;
    if (discovery === null) throw error;
    return discovery;
  };
  const late = async (discovery: Discovery | null) => {
    if (discovery === null) return hello;
    await pause(OTHER_ANSWER.hello);
    return discovery;
  };
  return Promise.race([hello.catch(refused), discovered.then(late)]);
}

function pause(ms: number): Promise<'silent'> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms, 'silent').unref();
  });
}

interface Capabilities {
  readonly tools?: { readonly listChanged?: unknown };
  readonly resources?: { readonly listChanged?: unknown; readonly subscribe?: unknown };
  readonly prompts?: { readonly listChanged?: unknown };
  readonly completions?: unknown;
  readonly logging?: unknown;
  readonly tasks?: { readonly list?: unknown; readonly requests?: { readonly tools?: { readonly call?: unknown } } };
  readonly extensions?: Readonly<Record<string, unknown>>;
}

interface ServerImplementation {
  readonly name?: unknown;
  readonly version?: unknown;
}

interface Discovery {
  readonly capabilities: Capabilities;
  readonly server: string;
  readonly instructions: string;
}

/** Null for an answer that only a server of the earlier revisions would give. */
function readDiscovery(result: Buffer): Discovery | null {
  const { supportedVersions, capabilities, instructions, _meta } = JSON.parse(result.toString()) as {
    supportedVersions?: unknown;
    instructions?: unknown;
    capabilities?: Capabilities;
    _meta?: Record<string, ServerImplementation>;
  };
  if (!Array.isArray(supportedVersions)) return null;
  if (!supportedVersions.includes(MODERN_REVISION)) return otherwise(supportedVersions);
  const server = nameOf(_meta?.[SERVER_INFO]);
  return { capabilities: capabilities ?? {}, server, instructions: textOf(instructions) };
}

/** For a server that does not speak our modern revision: null where we have an earlier one in common. */
function otherwise(supported: readonly unknown[]): null {
  if (supported.some(isRevision)) return null;
  const text = `speaks protocol revisions ${JSON.stringify(supported)}, Toolgate speaks ${ALL_REVISIONS.join(', ')}`;
  throw new GatewayError('source_broken', text);
}

/** Statuses that say nothing about how a server speaks. */
const NO_EVIDENCE = [401, 403, 407, 408, 429];

/** What a failed `server/discover` means: null for an earlier revision, and otherwise the failure itself. */
function judge(error: unknown): null {
  if (error instanceof UpstreamError) {
    const supported = (error.data as { supported?: unknown } | null)?.supported;
    if (error.code === REVISION_UNSUPPORTED && Array.isArray(supported)) return otherwise(supported);
    if (error.code === HEADER_MISMATCH) throw error;
    return null;
  }
  if (!(error instanceof GatewayError) || error.code === 'source_unavailable') throw error;
  const status = Number(error.details.status ?? 0);
  if (status >= 500 || (status >= 300 && status < 400) || NO_EVIDENCE.includes(status)) throw error;
  return null;
}

function enterModern(connection: Connection, { capabilities, server, instructions }: Discovery): Handshake {
  connection.speak?.('modern', MODERN_REVISION);
  const { kinds, completes, subscribes } = features(capabilities);
  const silent = kinds.filter((kind) => capabilities[CAPABILITY[kind]]?.listChanged !== true);
  const filter = listFilter(capabilities);
  const tasks = { ...NO_TASKS, starts: capabilities.extensions?.[TASKS] !== undefined };
  const told = { server, instructions, filter, tasks };
  const handshake = { ...MODERN, ...told, kinds, silent, completes, subscribes, levels: false };
  connection.listen?.(listenRequest(filter, []));
  return handshake;
}

const MODERN = { era: 'modern', isModernToo: true, revision: MODERN_REVISION } as const;

const CAPABILITY = { tool: 'tools', resource: 'resources', template: 'resources', prompt: 'prompts' } as const;

/** What a modern server is asked to tell of; null where it tells of nothing. */
function listFilter({ tools, resources, prompts }: Capabilities): Readonly<Record<string, true>> {
  return {
    ...(tools?.listChanged === true && { toolsListChanged: true as const }),
    ...(resources?.listChanged === true && { resourcesListChanged: true as const }),
    ...(prompts?.listChanged === true && { promptsListChanged: true as const }),
  };
}

function enterLegacy(connection: Connection, result: Buffer): Handshake {
  const { protocolVersion, serverInfo, ...answer } = JSON.parse(result.toString()) as {
    protocolVersion?: unknown;
    capabilities?: Capabilities;
    serverInfo?: ServerImplementation;
    instructions?: unknown;
  };
  if (!isRevision(protocolVersion)) {
    const text = `speaks protocol revision ${JSON.stringify(protocolVersion)}, Toolgate speaks ${ALL_REVISIONS.join(', ')}`;
    throw new GatewayError('source_broken', text);
  }
  connection.speak?.('legacy', protocolVersion);
  connection.notify?.(notificationMessage('notifications/initialized'));
  connection.listen?.(null);
  const capabilities = answer.capabilities ?? {};
  const levels = capabilities.logging !== undefined;
  const server = nameOf(serverInfo);
  const runs = capabilities.tasks?.requests?.tools?.call !== undefined;
  const tasks = { starts: false, runs, lists: capabilities.tasks?.list !== undefined };
  return {
    era: 'legacy',
    isModernToo: false,
    revision: protocolVersion,
    server,
    instructions: textOf(answer.instructions),
    ...features(capabilities),
    silent: [],
    filter: {},
    levels,
    tasks,
  };
}

function features(capabilities: Capabilities): { kinds: Kind[]; completes: boolean; subscribes: boolean } {
  const kinds: Kind[] = [];
  if (capabilities.tools !== undefined) kinds.push('tool');
  if (capabilities.resources !== undefined) kinds.push('resource', 'template');
  if (capabilities.prompts !== undefined) kinds.push('prompt');
  const subscribes = capabilities.resources?.subscribe === true;
  return { kinds, completes: capabilities.completions !== undefined, subscribes };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function nameOf(identity: ServerImplementation | undefined): string {
  return [identity?.name, identity?.version].filter(Boolean).join(' ');
}
