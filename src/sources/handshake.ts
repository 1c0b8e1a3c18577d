/**
 * Finds out the era of a server and what it can do. Modern servers answer `server/discover`. Any other answer, or none,
 * means that the server speaks an earlier revision and expects `initialize`.
 */
import { GatewayError } from '../base/errors.ts';
import { IDENTITY, INSTANCE_KEY } from '../base/version.ts';
import type { Kind } from '../catalog/item.ts';
import type { ClientChannel } from '../protocol/contract.ts';
import { SERVER_INFO, SKILLS, TASKS } from '../protocol/meta.ts';
import {
  ALL_REVISIONS,
  type Era,
  isRevision,
  LATEST_REVISION,
  MODERN_REVISION,
  REVISIONS,
} from '../protocol/revisions.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { ask, type OwnRequest, startAsking, UpstreamError } from './ask.ts';
import type { Connection } from './connection.ts';
import { listenRequest } from './listening.ts';
import { HEADER_MISMATCH, REVISION_UNSUPPORTED } from './refusals.ts';

export interface Handshake {
  readonly era: Era;
  /** Whether it is modern, even if it was entered as legacy because it answered too late. */
  readonly isModernToo: boolean;
  readonly revision: string;
  /** The name and version that the server gives itself. */
  readonly server: string;
  readonly kinds: readonly Kind[];
  /** The kinds whose changes it does not report. Their lists say how long they are valid. */
  readonly silent: readonly Kind[];
  readonly completes: boolean;
  /** Whether it reports changes inside resources. */
  readonly subscribes: boolean;
  /** The list changes that a modern server is asked to report. */
  readonly filter: Readonly<Record<string, true>>;
  /** What it tells models about its use; may be empty. */
  readonly instructions: string;
  /** What it says that it is: its description, or else its title; may be empty. */
  readonly about: string;
  /** Whether it accepts `logging/setLevel`. Modern servers get the level with each request. */
  readonly levels: boolean;
  readonly tasks: TaskAbilities;
  /** Whether it lists skills, which are served as resources. */
  readonly skills: boolean;
}

/** A connection whose handshake is done. */
export interface LiveConnection {
  readonly connection: Connection;
  readonly handshake: Handshake;
}

/** What a server does with MCP tasks. */
export interface TaskAbilities {
  /** A modern server: it may answer a call with a task. */
  readonly starts: boolean;
  /** A legacy server: it runs a call as a task if asked to. */
  readonly runs: boolean;
  readonly lists: boolean;
}

export const NO_TASKS: TaskAbilities = { starts: false, runs: false, lists: false };

export interface HandshakeOptions {
  readonly timeout: number;
  /** False for a server that is known not to be modern. */
  readonly probe: boolean;
  /** The client that the connection belongs to; null for a shared one. */
  readonly client: ClientChannel | null;
  /** The id of the gateway. */
  readonly instance: string;
}

/** How long we wait for the answer to `server/discover` before we also send `initialize`. */
const PROBE_WAIT = 3_000;
/** If both questions are open and one is answered: how long we wait for the answer to the other one. */
const OTHER_ANSWER = { initialize: 1_000, discover: 100 };

/**
 * The questions that we pass on to callers. A legacy server is told once, for all callers. Some servers offer certain
 * tools only to clients that declare these.
 */
const PASSED_ON = { elicitation: { form: {}, url: {} }, sampling: {} };

export async function performHandshake(
  connection: Connection,
  { timeout, probe, client, instance }: HandshakeOptions,
): Promise<Handshake> {
  const _meta = { [INSTANCE_KEY]: instance };
  const introduction = { ...introductionFor(client), _meta };
  const deadline = Date.now() + timeout;
  const introduce = (): OwnRequest => {
    const asked = startAsking(connection, 'initialize', introduction, Math.max(1, deadline - Date.now()));
    const withEarlier = (error: unknown) => {
      const protocolVersion = namedEarlier(error);
      if (protocolVersion === null) throw error;
      return ask(connection, 'initialize', { ...introduction, protocolVersion }, Math.max(1, deadline - Date.now()));
    };
    return { ...asked, answer: asked.answer.catch(withEarlier) };
  };
  if (!probe) return enterLegacy(connection, await introduce().answer);
  connection.speak?.('modern', MODERN_REVISION);
  let discover = startAsking(connection, 'server/discover', { _meta }, timeout);
  const again = (error: unknown) => {
    if (!namesModern(error)) throw error;
    discover = startAsking(connection, 'server/discover', { _meta }, Math.max(1, deadline - Date.now()));
    return discover.answer;
  };
  const discovered = discover.answer.catch(again).then(readDiscovery, judgeFailure);
  const first = await Promise.race([discovered, silence(Math.min(PROBE_WAIT, timeout / 2))]);
  if (first !== null && first !== 'silent') return enterModern(connection, first);
  connection.speak?.('legacy', null);
  const initialize = introduce();
  if (first === null) return enterLegacy(connection, await initialize.answer);
  const winner = await firstOf(discovered, initialize.answer);
  if (Buffer.isBuffer(winner)) {
    const other = await Promise.race([discovered.catch(() => null), silence(OTHER_ANSWER.discover)]);
    discover.ticket.cancel('answered by initialize');
    return { ...enterLegacy(connection, winner), isModernToo: other !== null && other !== 'silent' };
  }
  const handshake = enterModern(connection, winner);
  initialize.ticket.cancel('answered by server/discover');
  return handshake;
}

function introductionFor(client: ClientChannel | null): object {
  return { protocolVersion: LATEST_REVISION, capabilities: capabilitiesOf(client), clientInfo: IDENTITY };
}

function capabilitiesOf(client: ClientChannel | null): unknown {
  if (client === null) return PASSED_ON;
  // A client without a session may be able to do more in its next request.
  if (client.abilities === null) return { ...PASSED_ON, roots: {} };
  return JSON.parse(Buffer.from(client.abilities.capabilities, 'latin1').toString());
}

/**
 * Both questions are open, because the server starts slowly, and it may answer them in any order. A server that accepts
 * `initialize` has opened a session, and is legacy for this connection even if it could be modern.
 */
function firstOf(discovered: Promise<Discovery | null>, initialized: Promise<Buffer>): Promise<Discovery | Buffer> {
  const refused = async (error: unknown) => {
    const discovery = await discovered;
    if (discovery === null) throw error;
    return discovery;
  };
  const found = async (discovery: Discovery | null) => {
    if (discovery === null) return initialized;
    await silence(OTHER_ANSWER.initialize);
    return discovery;
  };
  return Promise.race([initialized.catch(refused), discovered.then(found)]);
}

function silence(ms: number): Promise<'silent'> {
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
  readonly title?: unknown;
  readonly description?: unknown;
}

interface Discovery {
  readonly capabilities: Capabilities;
  readonly server: string;
  readonly about: string;
  readonly instructions: string;
}

/** Null for an answer that only a legacy server would give. */
function readDiscovery(result: Buffer): Discovery | null {
  const { supportedVersions, capabilities, instructions, _meta } = JSON.parse(result.toString()) as {
    supportedVersions?: unknown;
    instructions?: unknown;
    capabilities?: Capabilities;
    _meta?: Record<string, ServerImplementation>;
  };
  if (!Array.isArray(supportedVersions)) return null;
  if (!supportedVersions.includes(MODERN_REVISION)) return requireEarlier(supportedVersions);
  const info = _meta?.[SERVER_INFO];
  return {
    capabilities: capabilities ?? {},
    server: nameOf(info),
    about: aboutOf(info),
    instructions: textOf(instructions),
  };
}

/** For a server that does not speak our modern revision: throws unless we share an earlier one. */
function requireEarlier(supported: readonly unknown[]): null {
  if (supported.some(isRevision)) return null;
  const text = `speaks protocol revisions ${JSON.stringify(supported)}, Toolgate speaks ${ALL_REVISIONS.join(', ')}`;
  throw new GatewayError('source_broken', text);
}

/** Statuses that say nothing about the era of a server. */
const NO_EVIDENCE: readonly number[] = [401, 403, 407, 408, 429];

/** Whether a server refused our revision and named it among those that it speaks. It is asked once more then. */
function namesModern(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error.code !== REVISION_UNSUPPORTED) return false;
  const supported = (error.data as { supported?: unknown } | null)?.supported;
  return Array.isArray(supported) && supported.includes(MODERN_REVISION);
}

/** The newest revision of ours that a server names while it refuses `initialize`, other than the one it was asked with. */
function namedEarlier(error: unknown): string | null {
  if (!(error instanceof UpstreamError)) return null;
  const supported = (error.data as { supported?: unknown } | null)?.supported;
  if (!Array.isArray(supported)) return null;
  return REVISIONS.find((revision) => revision !== LATEST_REVISION && supported.includes(revision)) ?? null;
}

/** Null if the failure of `server/discover` shows that the server is legacy. Throws any other failure. */
function judgeFailure(error: unknown): null {
  if (error instanceof UpstreamError) {
    const supported = (error.data as { supported?: unknown } | null)?.supported;
    if (error.code === REVISION_UNSUPPORTED && Array.isArray(supported)) return requireEarlier(supported);
    if (error.code === HEADER_MISMATCH) throw error;
    return null;
  }
  if (!(error instanceof GatewayError) || error.code === 'source_unavailable') throw error;
  const status = Number(error.details.status ?? 0);
  if (status >= 500 || (status >= 300 && status < 400) || NO_EVIDENCE.includes(status)) throw error;
  return null;
}

const CAPABILITY = { tool: 'tools', resource: 'resources', template: 'resources', prompt: 'prompts' } as const;

function enterModern(connection: Connection, { capabilities, server, about, instructions }: Discovery): Handshake {
  connection.speak?.('modern', MODERN_REVISION);
  const features = readFeatures(capabilities);
  const filter = listFilter(capabilities);
  connection.listen?.(listenRequest(filter, []));
  return {
    era: 'modern',
    isModernToo: true,
    revision: MODERN_REVISION,
    server,
    about,
    instructions,
    ...features,
    silent: features.kinds.filter((kind) => capabilities[CAPABILITY[kind]]?.listChanged !== true),
    filter,
    levels: false,
    tasks: { ...NO_TASKS, starts: capabilities.extensions?.[TASKS] !== undefined },
  };
}

/** The list changes that a modern server can report. */
function listFilter({ tools, resources, prompts }: Capabilities): Readonly<Record<string, true>> {
  return {
    ...(tools?.listChanged === true && { toolsListChanged: true as const }),
    ...(resources?.listChanged === true && { resourcesListChanged: true as const }),
    ...(prompts?.listChanged === true && { promptsListChanged: true as const }),
  };
}

function enterLegacy(connection: Connection, result: Buffer): Handshake {
  const { protocolVersion, serverInfo, instructions, ...answer } = JSON.parse(result.toString()) as {
    protocolVersion?: unknown;
    capabilities?: Capabilities | null;
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
  const { tasks } = capabilities;
  return {
    era: 'legacy',
    isModernToo: false,
    revision: protocolVersion,
    server: nameOf(serverInfo),
    about: aboutOf(serverInfo),
    instructions: textOf(instructions),
    ...readFeatures(capabilities),
    silent: [],
    filter: {},
    levels: capabilities.logging !== undefined,
    tasks: { starts: false, runs: tasks?.requests?.tools?.call !== undefined, lists: tasks?.list !== undefined },
  };
}

function readFeatures(
  capabilities: Capabilities,
): Pick<Handshake, 'completes' | 'subscribes' | 'skills'> & { readonly kinds: Kind[] } {
  const kinds: Kind[] = [];
  if (capabilities.tools !== undefined) kinds.push('tool');
  if (capabilities.resources !== undefined) kinds.push('resource', 'template');
  if (capabilities.prompts !== undefined) kinds.push('prompt');
  const subscribes = capabilities.resources?.subscribe === true;
  const skills = kinds.includes('template') && capabilities.extensions?.[SKILLS] !== undefined;
  return { kinds, completes: capabilities.completions !== undefined, subscribes, skills };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function nameOf(server: ServerImplementation | undefined): string {
  return [server?.name, server?.version].filter(Boolean).join(' ');
}

function aboutOf(server: ServerImplementation | undefined): string {
  return textOf(server?.description) || textOf(server?.title);
}
