/** A proxy for TCP that breaks connections as networks do: it goes silent, or cuts them. */
import { createServer, connect as connectTo, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { atEnd } from './cleanup.ts';

export interface FaultProxy {
  readonly port: number;
  /** From now on nothing passes and nobody is told: connections are half open, and new ones get no answer. */
  silence(): void;
  /** Cuts what was silent, and lets everything pass again. */
  heal(): void;
  /** Cuts all connections. */
  cut(): void;
  /**
   * Sees what a client sends before it passes; a promise holds it back. What the server answers meanwhile passes.
   */
  watch(seen: ((data: Buffer) => Promise<void> | null) | null): void;
}

/** In front of a port of this machine. */
export async function startFaultProxy(to: number): Promise<FaultProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isSilent = false;
  let seen: ((data: Buffer) => Promise<void> | null) | null = null;
  const server = createServer({ noDelay: true }, (client) => {
    const target = connectTo({ port: to, host: '127.0.0.1', noDelay: true });
    const pair = [client, target] as const;
    pairs.add(pair);
    let order: Promise<unknown> = Promise.resolve();
    const end = () => {
      if (isSilent) return;
      pairs.delete(pair);
      client.destroy();
      target.destroy();
    };
    for (const socket of pair) socket.on('error', () => {}).on('close', end);
    client.on('data', (data: Buffer) => {
      if (isSilent) return;
      const held = seen?.(data) ?? null;
      if (seen === null && held === null) target.write(data);
      else order = order.then(() => held).then(() => void target.write(data));
    });
    target.on('data', (data: Buffer) => {
      if (!isSilent) client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    pairs.clear();
  };
  atEnd(() => {
    cut();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      isSilent = true;
    },
    heal() {
      isSilent = false;
      cut();
    },
    cut,
    watch(given) {
      seen = given;
    },
  };
}
