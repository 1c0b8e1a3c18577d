/**
 * The operator's door: the whole HTTP interface on a Unix socket that only this user can reach. Commands such as `toolgate
 * status` find it there. Every request needs the operator's key. With `X-Agent-Id` a request acts as that agent.
 */
import { chmod } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { makePrivateFolder } from '../base/socket-folder.ts';
import { createIdentity, type Identity, operatorIdentity } from '../calls/identity.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { newOperatorSocket, operatorSocketFolder } from '../store/operator-sockets.ts';
import type { StartedAs } from './http/admin/status.ts';
import type { DashboardPort } from './http/dashboard-port.ts';
import type { HttpDoor } from './http/door.ts';

export interface OperatorDoor {
  /** Takes no more commands, and lets those that run finish for at most this many milliseconds. */
  close(patience?: number): Promise<void>;
}

/** What a connection of a command means to the gateway. Returns what to do when it has ended. */
export type CommandCame = () => () => void;

/** Never rejects: a gateway that cannot have this door serves its clients all the same, and says so in its log. */
export async function openOperatorDoor(
  gateway: Gateway,
  startedAs: StartedAs,
  came?: CommandCame,
  dashboard?: DashboardPort,
): Promise<OperatorDoor> {
  try {
    return await listen(gateway, startedAs, came, dashboard);
  } catch (error) {
    const message = `toolgate status and other commands cannot reach this gateway: ${messageOf(error)}`;
    gateway.events.emit('note', { source: 'toolgate', message });
    return { async close() {} };
  }
}

async function listen(
  gateway: Gateway,
  startedAs: StartedAs,
  came?: CommandCame,
  dashboard?: DashboardPort,
): Promise<OperatorDoor> {
  const path = newOperatorSocket(gateway.config);
  const isFile = process.platform !== 'win32';
  if (isFile) await makePrivateFolder(operatorSocketFolder(gateway.config));
  const { createServer } = await import('node:http');
  let opening: Promise<HttpDoor> | null = null;
  let inFlight = 0;
  // A command may hold a connection for as long as a person thinks.
  const server = createServer({ joinDuplicateHeaders: true, headersTimeout: 0 }, (request, response) => {
    inFlight++;
    response.once('close', () => inFlight--);
    // Loaded with the first request, because most gateways on stdio never get one.
    opening ??= openDoor(gateway, startedAs, dashboard);
    opening.then(
      (door) => door.handle(request, response),
      () => response.destroy(),
    );
  });
  if (came !== undefined) server.on('connection', (socket: Socket) => socket.once('close', came()));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  // A connection that cannot be accepted must not end the gateway.
  server.on('error', () => {});
  // A gateway must not run on for this door.
  server.unref();
  if (isFile) await chmod(path, 0o600);
  return {
    async close(patience = 0) {
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      const until = Date.now() + patience;
      while (inFlight > 0 && Date.now() < until) await sleep(10);
      await (await opening)?.close();
      server.closeAllConnections();
      await done;
    },
  };
}

async function openDoor(gateway: Gateway, startedAs: StartedAs, dashboard?: DashboardPort): Promise<HttpDoor> {
  const [{ makeDoor }, { doorRoutes }] = await Promise.all([import('./http/door.ts'), import('./http/routes.ts')]);
  const { identify } = createOperatorAccess(gateway);
  const server = { host: null, origin: () => 'http://localhost', refusal: () => null, isCounted: false };
  const options = { identify, ...(dashboard !== undefined && { dashboard }) };
  return makeDoor(gateway, options, server, (handlers) => doorRoutes({ ...handlers, startedAs }));
}

function createOperatorAccess({ env }: Gateway) {
  const operator: Identity = { ...operatorIdentity(), isAdmin: true };
  const agents = new Map<string, Identity>();
  return {
    async identify(request: IncomingMessage): Promise<Identity> {
      const { hasOperatorKey } = await import('./http/front.ts');
      if (!(await hasOperatorKey(request, env)))
        throw new GatewayError('unauthorized', "Send the gateway's operator key as the bearer token.");
      const agent = request.headers['x-agent-id'];
      if (typeof agent !== 'string') return operator;
      const known = agents.get(agent) ?? createIdentity(agent);
      agents.set(agent, known);
      return known;
    },
  };
}
