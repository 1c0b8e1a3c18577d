/** Helpers for tests of limits: servers, running calls, and refusals. */
import { GatewayError } from '../../src/base/errors.ts';
import type { Caller } from '../../src/calls/caller.ts';
import type { LocalDoor } from '../../src/calls/local.ts';
import { RelayedError } from '../../src/calls/relayed-error.ts';
import { openLocalDoor } from '../../src/doors/local.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { READS_AT_ONCE } from '../../src/protocol/contract.ts';
import { NO_ABILITIES } from '../../src/protocol/envelope.ts';
import { join } from '../../src/protocol/parts.ts';
import { readMessage } from '../../src/protocol/read.ts';
import { serverEntry, startListening } from '../support/server.ts';

export const hanging = (limits: object = {}) => ({ ...serverEntry('hang'), timeout: 30_000, ...limits });
export const basic = (limits: object = {}, ...args: (string | number)[]) => ({
  ...serverEntry('basic', ...args),
  ...limits,
});

/** A call that may end in any way, and can be cancelled. */
export interface Pending {
  readonly done: Promise<Buffer | GatewayError | RelayedError>;
  cancel(): void;
  isOver: boolean;
}

export function begin(door: LocalDoor, name: string, args: object = {}): Pending {
  const aborting = new AbortController();
  const pending: Pending = {
    done: door.callTool(name, args, { signal: aborting.signal }).catch((error: unknown) => {
      if (error instanceof GatewayError || error instanceof RelayedError) return error;
      throw error;
    }),
    cancel: () => aborting.abort(),
    isOver: false,
  };
  void pending.done.then(() => {
    pending.isOver = true;
  });
  return pending;
}

export function beginMany(door: LocalDoor, count: number, name: string, args: object = {}): Pending[] {
  return Array.from({ length: count }, () => begin(door, name, args));
}

/** The text of a call that must succeed. */
export async function textOf(pending: Pending): Promise<string> {
  const result = await pending.done;
  if (result instanceof Error) throw result;
  const { content } = JSON.parse(result.toString()) as { content: { text: string }[] };
  return content[0]!.text;
}

/** Why a call was refused. */
export async function refusalOf(pending: Pending): Promise<GatewayError> {
  const result = await pending.done;
  if (!(result instanceof GatewayError)) throw new Error(`it went well: ${result}`);
  return result;
}

export function doorOf(gateway: Gateway, agent: string | null = null): LocalDoor {
  return openLocalDoor(gateway, 'all', agent);
}

/** What the reader of a resource gets: the bytes of the result, or the message of the error. */
export function readBy({ pipeline }: Gateway, caller: Caller, uri: string): Promise<string> {
  const params = JSON.stringify({ uri });
  const message = readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":${params}}`));
  return new Promise((resolve) => {
    const call = pipeline.create(caller, message, {
      ...NO_ABILITIES,
      ...READS_AT_ONCE,
      owner: caller,
      awaySince: null,
      result: (result) => resolve(join(result).toString()),
      error: (error) => resolve(error.toString()),
      fail: (error) => resolve(error.message),
      notify() {},
      ask() {},
    });
    call.start();
  });
}

/** How a server of `moody.mjs` answers calls. */
export type Mood = 'fine' | 'broken' | 'silent' | 'wrong' | 'unhappy';

/** An HTTP server whose behaviour can be changed. `calls()` is the number of calls it has received. */
export async function startMoody() {
  const { origin, stop } = await startListening('../limits/moody');
  return {
    url: `${origin}/mcp`,
    be: async (mood: Mood) => void (await fetch(`${origin}/be/${mood}`)),
    calls: async () => Number(await (await fetch(`${origin}/calls`)).text()),
    stop,
  };
}
