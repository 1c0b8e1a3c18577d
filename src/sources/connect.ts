/** Opening a server: connect, find out how it speaks, list what it offers; if need be, in more ways than one. */

import { GatewayError, messageOf } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { type Handshake, performHandshake } from './handshake.ts';
import { NOT_HERE } from './http-failure.ts';
import { type Listed, listOffer } from './listing.ts';
import type { UpstreamRefusal } from './refusals.ts';
import type { ServerContext } from './source.ts';
import { openStdio } from './stdio.ts';
import type { Filled } from './vault.ts';

/** How a server is approached. */
interface Way {
  /** Asks first whether it is modern. */
  readonly probe: boolean;
  /** Over HTTP+SSE, the transport of the first revision. */
  readonly sse: boolean;
}

export interface Opened {
  readonly connection: Connection;
  readonly handshake: Handshake;
  readonly listed: Listed;
}

/** Who a connection is for, and what happens to it from its first moment on. */
export interface Keeper {
  /** Whose it is; null where it is everybody's. */
  readonly client: ClientChannel | null;
  /** Whether what it offers is wanted: one more of the same server offers nothing new. */
  readonly lists: boolean;
  /** It is there, though of no use yet. */
  connected(connection: Connection): void;
  /** It has been greeted and listed, and is in charge from here on; what follows comes only then. */
  entered(opened: Opened): void;
  lost(connection: Connection, reason: string): void;
  forgotten(connection: Connection, refused: SourceRequest | null): Ticket | null;
  refused(connection: Connection, request: SourceRequest, refusal: UpstreamRefusal): Ticket | null;
  missed(): void;
  asked(): void;
  notification(message: Message): void;
  note(text: string): void;
  stderr(chunk: Buffer): void;
  /** Whether it is no longer wanted. */
  isClosed(): boolean;
}

export class AttemptFailure extends Error {
  /** Whether the server broke off, and did not just answer badly. */
  readonly died: boolean;
  /** Whether it had not even been greeted. */
  readonly early: boolean;
  /** The HTTP status it answered with, or 0. */
  readonly status: number;

  constructor(reason: string, died: boolean, early: boolean, status: number) {
    super(reason);
    this.died = died;
    this.early = early;
    this.status = status;
  }
}

export const FORGOTTEN = 'has forgotten the session';

type Surroundings = Pick<ServerContext, 'limits' | 'eras' | 'redact' | 'vault' | 'guard' | 'dependenciesInstalled'>;

export async function openServer(
  config: ServerConfig,
  context: Surroundings,
  keeper: Keeper,
  mayProbe: boolean,
): Promise<Opened> {
  const { eras } = context;
  const { launch, launchHash } = config;
  // Before every start, with what is set now.
  const filled = await context.vault.fill(config);
  const believed = await eras.isLegacy(launchHash);
  const sse = launch.kind === 'http' && launch.transport === 'sse';
  let failure: unknown = null;
  for (let way: Way = { probe: mayProbe && !believed && !sse && launch.kind !== 'folder', sse }; ; ) {
    try {
      const opened = await attempt(config, filled, way, context, keeper);
      if (way.probe && !opened.handshake.isModernToo) void eras.setLegacy(launchHash);
      return opened;
    } catch (error) {
      // That there is no other way in says less than why the first was closed.
      if (failure === null || !way.sse) failure = error;
      if (!(error instanceof AttemptFailure)) throw failure;
      if (believed && error.early) void eras.forget(launchHash);
      const next = keeper.isClosed() ? null : nextWay(launch, way, error);
      if (next === null) throw failure;
      way = next;
    }
  }
}

async function attempt(
  config: ServerConfig,
  filled: Filled,
  way: Way,
  context: Surroundings,
  keeper: Keeper,
): Promise<Opened> {
  const { startTimeout } = config;
  let connection: Connection | null = null;
  let handshake: Handshake | null = null;
  let died: string | null = null;
  let entered = false;
  const events: ConnectionEvents = {
    closed(reason) {
      died = reason;
      if (entered) keeper.lost(connection!, reason);
    },
    forgotten(refused) {
      if (entered) return keeper.forgotten(connection!, refused);
      died = FORGOTTEN;
      return null;
    },
    refused(request, refusal) {
      if (entered) return keeper.refused(connection!, request, refusal);
      request.sink.error(refusal.error, 'modern');
      return null;
    },
    missed: keeper.missed,
    asked: keeper.asked,
    note: keeper.note,
    notification: keeper.notification,
  };
  const check = () => {
    if (died !== null) throw new GatewayError('source_unavailable', died);
    if (keeper.isClosed()) throw new GatewayError('source_unavailable', 'closed');
  };
  try {
    check();
    connection = await connect(config, filled, way, context, keeper, events);
    keeper.connected(connection);
    check();
    // Getting there may have taken a while: a folder may have to be given its dependencies first.
    const deadline = Date.now() + startTimeout;
    handshake = await performHandshake(connection, { timeout: startTimeout, probe: way.probe, client: keeper.client });
    const listed = await listOffer(connection, handshake, deadline, keeper.lists ? handshake.kinds : []);
    check();
    entered = true;
    const opened = { connection, handshake, listed };
    keeper.entered(opened);
    return opened;
  } catch (error) {
    await connection?.close();
    const status = error instanceof GatewayError ? Number(error.details.status ?? 0) : 0;
    const hasEnded = died !== null || (error instanceof GatewayError && error.details.ended === true);
    throw new AttemptFailure(died ?? reasonOf(error, startTimeout), hasEnded, handshake === null, status);
  }
}

async function connect(
  { key, startTimeout }: ServerConfig,
  { launch, clean }: Filled,
  { sse }: Way,
  { limits, redact, guard, dependenciesInstalled }: Surroundings,
  { stderr, client, isClosed }: Keeper,
  events: ConnectionEvents,
): Promise<Connection> {
  const options = { source: key, maxMessage: limits().message, client, redact, clean };
  if (launch.kind === 'stdio') return openStdio(launch, { ...options, stderr }, events);
  if (launch.kind === 'folder') {
    const { openFolder } = await import('./folder.ts');
    const installed = () => dependenciesInstalled(key);
    return openFolder(launch, { ...options, startTimeout, guard, stderr, isClosed, installed }, events);
  }
  if (launch.kind === 'inline') throw new GatewayError('internal', 'Functions are not connected to.');
  // Loaded here, because most gateways have only servers on pipes and should not wait for it at start.
  if (sse) return (await import('./sse.ts')).openSse(launch, options, events);
  return (await import('./http.ts')).openHttp(launch, options, events);
}

function reasonOf(error: unknown, startTimeout: number): string {
  if (!(error instanceof GatewayError) || error.code !== 'source_timeout') return messageOf(error);
  return `did not start and list its tools within ${startTimeout / 1000} s; raise start_timeout if it needs longer`;
}

/** What to try after a failure; null when there is nothing else. */
function nextWay(launch: Launch, way: Way, failure: AttemptFailure): Way | null {
  if (!failure.early || way.sse || launch.kind === 'folder') return null;
  // One that was taken for a server of the earlier revisions may have been replaced since.
  if (!way.probe) return failure.died ? null : { ...way, probe: true };
  const maySse = launch.kind === 'http' && launch.transport === undefined && NOT_HERE.includes(failure.status);
  return maySse ? { probe: false, sse: true } : null;
}
