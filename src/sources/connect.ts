/** Opens a connection to a server: connects, finds out its era, lists its offer. Tries several ways if necessary. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { serverEnvironment } from './environment.ts';
import { type Handshake, type LiveConnection, performHandshake } from './handshake.ts';
import { NOT_HERE } from './http-failure.ts';
import { type Listed, listOffer } from './lists.ts';
import { resolvePackage } from './package-program.ts';
import type { UpstreamRefusal } from './refusals.ts';
import { inSandbox } from './sandbox.ts';
import { loginReason } from './server-login.ts';
import type { ServerContext } from './source.ts';

import { openStdio } from './stdio.ts';
import type { FilledLaunch } from './vault.ts';

export interface OpenedConnection extends LiveConnection {
  readonly listed: Listed;
}

/** The part that a connection is opened for. It is told what happens to the connection. */
export interface ConnectionOwner {
  /** The client that it belongs to; null for one that is shared. */
  readonly client: ClientChannel | null;
  /** The agent of that client; null if it is shared, or nobody knows yet. */
  readonly agent: string | null;
  /** The owner of its sessions; null as the agent is. */
  readonly principal: string | null;
  /** Whether the server's offer is listed. */
  readonly lists: boolean;
  /** Whether the connection is no longer wanted. */
  readonly isClosed: boolean;
  /** Whether the server has ever asked something outside the replies to requests, on any of its connections. */
  readonly asksAnywhere: boolean;
  /** The connection exists, but cannot be used yet. */
  connected(connection: Connection): void;
  /** The handshake is done and the offer listed. The events below come only after this one. */
  entered(opened: OpenedConnection): void;
  lost(connection: Connection, reason: string): void;
  forgotten(connection: Connection, refused: SourceRequest | null): Ticket | null;
  refused(connection: Connection, request: SourceRequest, refusal: UpstreamRefusal): Ticket | null;
  unsent(request: SourceRequest): Ticket | null;
  // These may come at any time.
  missed(): void;
  asked(isStray: boolean): void;
  idle(): void;
  notification(message: Message): void;
  note(text: string): void;
  /** What keeps it from being started, such as an install; null when it is done. */
  preparing(text: string | null): void;
  stderr(chunk: Buffer): void;
}

/** One way to connect to a server. */
interface Approach {
  /** Whether the server is first asked if it is modern. */
  readonly probe: boolean;
  /** Whether HTTP+SSE is used, the transport of the first revision. */
  readonly sse: boolean;
}

class AttemptFailure extends Error {
  /** Whether the server ended or broke the connection, and did not just answer badly. */
  readonly hasEnded: boolean;
  /** Whether that happened before the handshake was done. */
  readonly isEarly: boolean;
  /** The HTTP status that it answered with, or 0. */
  readonly status: number;
  /** Whether the dependencies of a folder could not be installed. */
  readonly lacksDependencies: boolean;
  /** Whether somebody has to log in first. */
  readonly needsLogin: boolean;

  constructor(
    reason: string,
    hasEnded: boolean,
    isEarly: boolean,
    status: number,
    { lacksDependencies, needsLogin }: Pick<AttemptFailure, 'lacksDependencies' | 'needsLogin'>,
  ) {
    super(reason);
    this.lacksDependencies = lacksDependencies;
    this.needsLogin = needsLogin;
    this.hasEnded = hasEnded;
    this.isEarly = isEarly;
    this.status = status;
  }
}

/** Whether the server ended before it could be used. */
export function hasEnded(error: unknown): boolean {
  return error instanceof AttemptFailure && error.hasEnded;
}

/** Whether the folder could not be served because its dependencies could not be installed. */
export function lacksDependencies(error: unknown): boolean {
  return error instanceof AttemptFailure && error.lacksDependencies;
}

/** Whether somebody has to log in before the server can be used. */
export function needsLogin(error: unknown): boolean {
  return error instanceof AttemptFailure && error.needsLogin;
}

/** Whether it ended even before its handshake was done. */
export function hasEndedEarly(error: unknown): boolean {
  return error instanceof AttemptFailure && error.hasEnded && error.isEarly;
}

/** What happened to a connection whose server no longer knows the session. */
export const FORGOTTEN = 'has forgotten the session';

type ConnectContext = Pick<
  ServerContext,
  | 'instance'
  | 'limits'
  | 'eras'
  | 'asksLogins'
  | 'redact'
  | 'vault'
  | 'env'
  | 'spawn'
  | 'lastGood'
  | 'dependenciesInstalled'
>;

export async function openServer(
  config: ServerConfig,
  context: ConnectContext,
  owner: ConnectionOwner,
  mayProbe: boolean,
): Promise<OpenedConnection> {
  const { eras } = context;
  const { launch, launchHash } = config;
  // Filled before every start, so that the server gets the secrets that are set now.
  const filled = await withProgram(launch, await context.vault.fill(config), context, owner);
  const believedLegacy = await eras.isLegacy(launchHash);
  const sse = launch.kind === 'http' && launch.transport === 'sse';
  let approach: Approach = { probe: mayProbe && !believedLegacy && !sse && launch.kind !== 'folder', sse };
  let failure: unknown = null;
  for (;;) {
    try {
      const opened = await attempt(config, filled, approach, context, owner);
      if (approach.probe && !opened.handshake.isModernToo) void eras.setLegacy(launchHash);
      return opened;
    } catch (error) {
      // Reports why the first approach failed: that HTTP+SSE failed too says less.
      if (failure === null || !approach.sse) failure = error;
      if (!(error instanceof AttemptFailure)) throw failure;
      if (believedLegacy && error.isEarly) void eras.forget(launchHash);
      const next = owner.isClosed ? null : nextApproach(launch, approach, error);
      if (next === null) throw failure;
      approach = next;
    }
  }
}

/**
 * The launch with the complete environment of a program, and with what `npx` or `uvx` would start in its place. An
 * install happens here, before `start_timeout` begins.
 */
async function withProgram(
  { kind, env: declared }: Launch & { readonly env?: Readonly<Record<string, string>> },
  filled: FilledLaunch,
  { env }: ConnectContext,
  owner: ConnectionOwner,
): Promise<FilledLaunch> {
  const { launch } = filled;
  if (launch.kind !== 'stdio' || kind !== 'stdio') return filled;
  const complete = { ...launch, env: serverEnvironment(launch, env) };
  const resolved = await resolvePackage(complete, {
    declared: declared ?? {},
    ours: env,
    isClosed: () => owner.isClosed,
    progress: (text) => owner.preparing(text),
    stderr: (chunk) => owner.stderr(chunk),
  });
  return { ...filled, launch: await inSandbox(resolved, { inherited: complete.env, declared: declared ?? {} }) };
}

/** The next way to try after a failure; null if there is none. */
function nextApproach(launch: Launch, approach: Approach, failure: AttemptFailure): Approach | null {
  if (!failure.isEarly || failure.needsLogin || approach.sse || launch.kind === 'folder') return null;
  // A server that was believed to be legacy may have been replaced.
  if (!approach.probe) return failure.hasEnded ? null : { ...approach, probe: true };
  const maySse = launch.kind === 'http' && launch.transport === undefined && NOT_HERE.includes(failure.status);
  return maySse ? { probe: false, sse: true } : null;
}

async function attempt(
  config: ServerConfig,
  filled: FilledLaunch,
  approach: Approach,
  context: ConnectContext,
  owner: ConnectionOwner,
): Promise<OpenedConnection> {
  const { startTimeout } = config;
  let connection: Connection | null = null;
  let handshake: Handshake | null = null;
  let endReason: string | null = null;
  let hasEntered = false;
  const events: ConnectionEvents = {
    closed(reason) {
      endReason = reason;
      if (hasEntered) owner.lost(connection!, reason);
    },
    forgotten(refused) {
      if (hasEntered) return owner.forgotten(connection!, refused);
      endReason = FORGOTTEN;
      return null;
    },
    refused(request, refusal) {
      if (hasEntered) return owner.refused(connection!, request, refusal);
      request.sink.error(refusal.error, 'modern');
      return null;
    },
    unsent: (request) => (hasEntered ? owner.unsent(request) : null),
    missed: () => owner.missed(),
    asked: (isStray) => owner.asked(isStray),
    idle: () => owner.idle(),
    note: (text) => owner.note(text),
    notification: (message) => owner.notification(message),
  };
  const check = () => {
    if (endReason !== null) throw new GatewayError('source_unavailable', endReason);
    if (owner.isClosed) throw new GatewayError('source_unavailable', 'closed');
  };
  try {
    check();
    connection = await connect(config, filled, approach, context, owner, events);
    owner.connected(connection);
    check();
    // Counted from here, because connecting to a folder may take long: its dependencies are installed first.
    const deadline = Date.now() + startTimeout;
    const { client } = owner;
    handshake = await performHandshake(connection, {
      timeout: startTimeout,
      probe: approach.probe,
      client,
      instance: context.instance,
    });
    const listed = await listOffer(connection, handshake, deadline, owner.lists ? handshake.kinds : []);
    check();
    hasEntered = true;
    const opened = { connection, handshake, listed };
    owner.entered(opened);
    return opened;
  } catch (error) {
    await connection?.close();
    const details = error instanceof GatewayError ? error.details : {};
    const hasEnded = endReason !== null || details.ended === true;
    const login = loginReason(error);
    const reason = login ?? endReason ?? reasonOf(error, startTimeout);
    const lacksDependencies = error instanceof GatewayError && error.code === 'dependency_error';
    const kind = { lacksDependencies, needsLogin: login !== null };
    throw new AttemptFailure(reason, hasEnded, handshake === null, Number(details.status ?? 0), kind);
  }
}

async function connect(
  { key, startTimeout, credentials }: ServerConfig,
  { launch, clean }: FilledLaunch,
  { sse }: Approach,
  { limits, redact, env, spawn, lastGood, dependenciesInstalled, vault, asksLogins }: ConnectContext,
  owner: ConnectionOwner,
  events: ConnectionEvents,
): Promise<Connection> {
  const { client } = owner;
  const options = { source: key, maxMessage: limits().message, client, redact, clean, asksLogins };
  const stderr = (chunk: Buffer) => owner.stderr(chunk);
  if (launch.kind === 'stdio') {
    return openStdio(spawn(launch), { ...options, stderr }, events);
  }
  if (launch.kind === 'folder') {
    const { openFolder } = await import('./folder.ts');
    const isClosed = () => owner.isClosed;
    const installed = () => dependenciesInstalled(key);
    const preparing = (text: string) => owner.preparing(text);
    const folder = { ...options, startTimeout, lastGood, env, spawn, stderr, isClosed, installed, preparing };
    return openFolder(launch, folder, events);
  }
  if (launch.kind === 'inline') throw new GatewayError('internal', 'Functions have no connection to open.');
  // Loaded here: most gateways have only servers on pipes, and should not wait for it at start.
  // The shared connection of agents with logins of their own is only for lists.
  const isOwn = credentials === 'agent' && client !== null;
  const agent = isOwn ? (owner.agent ?? '') : null;
  const login = vault.loginFor(key, launch, agent, isOwn ? owner.principal : null);
  if (sse) return (await import('./sse.ts')).openSse(launch, login, options, events);
  const asksAnywhere = () => owner.asksAnywhere;
  return (await import('./http.ts')).openHttp(launch, login, { ...options, asksAnywhere }, events);
}

function reasonOf(error: unknown, startTimeout: number): string {
  if (!(error instanceof GatewayError) || error.code !== 'source_timeout') return messageOf(error);
  return `did not start and list its tools within ${startTimeout / 1000} s; raise start_timeout if it needs longer`;
}
