/** MCP within one process: a client of the official SDKs, v1 or v2, without a socket or a pipe. */
import { GatewayError } from '../base/errors.ts';
import { FULL_SCOPE } from '../calls/caller.ts';
import { programIdentity } from '../calls/identity.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { toBytes } from '../protocol/json.ts';
import { join } from '../protocol/parts.ts';
import type { Reply } from '../protocol/rpc.ts';
import type { Exchange } from './answer.ts';
import { type Channel, openChannel } from './channel.ts';

/** A transport for the `connect` of a client of SDK v1 or SDK v2. */
export interface MemoryTransport {
  start(): Promise<void>;
  send(message: unknown): Promise<void>;
  close(): Promise<void>;
  onmessage?(message: unknown): void;
  onclose?(): void;
  onerror?(error: Error): void;
  readonly sessionId?: undefined;
}

/** The identity and scope of a client in this process. */
export interface MemoryOptions {
  /** The agent whose policy and limits apply. Default: `default`. */
  readonly agent?: string;
  /** The owner of MCP tasks and parked calls, if several people use one agent. Default: the agent. */
  readonly principal?: string;
  /** The only namespace that the client sees. Default: all of them. */
  readonly namespace?: string;
  /**
   * Whether the client changes a selection of its own, or the default that all callers without their own selection
   * share. Default: its own.
   */
  readonly selection?: 'own' | 'default';
}

/**
 * Connects a client to a gateway in the same process, for tests and for programs that contain both. It uses the full
 * protocol, handshake included, but the bytes stay in the process.
 *
 * @example
 * const client = new Client({ name: 'test', version: '1.0.0' });
 * await client.connect(connectInMemory(gateway));
 * const { tools } = await client.listTools();
 */
export function connectInMemory(
  to: Gateway | { readonly gateway: Gateway },
  options: MemoryOptions = {},
): MemoryTransport {
  const gateway = 'gateway' in to ? to.gateway : to;
  const { agent = 'default', principal = agent, namespace = null, selection = 'own' } = options;
  let channel: Channel | null = null;
  let isOpen = false;

  /** Delivers asynchronously, as a socket would: a client does not expect an answer before its send has returned. */
  const deliver = (bytes: Buffer | string) => {
    const message: unknown = JSON.parse(bytes.toString());
    setImmediate(() => {
      if (isOpen) transport.onmessage?.(message);
    });
  };
  const exchange: Exchange = {
    send: deliver,
    finish: (reply) => deliver(textOf(reply)),
    abandon() {},
    keepAlive() {},
    isFull: false,
    whenDrained: (proceed) => proceed(),
  };
  const transport: MemoryTransport = {
    async start() {
      if (channel !== null)
        throw new GatewayError('usage', 'This transport has already been used: create one for each client.');
      isOpen = true;
      const identity = programIdentity(agent, principal);
      const scope = { ...FULL_SCOPE, namespace, selection };
      channel = openChannel(gateway, { identity, scope, door: 'local' }, { exchange, notify: deliver, end() {} });
    },
    async send(message) {
      if (!isOpen) throw new GatewayError('usage', 'The connection is not open.');
      channel!.receive(toBytes(message));
    },
    async close() {
      if (!isOpen) return;
      isOpen = false;
      channel!.close();
      transport.onclose?.();
    },
  };
  return transport;
}

function textOf({ head, body, tail }: Reply): string {
  return head + join(body).toString() + tail;
}
