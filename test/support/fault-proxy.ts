/** A proxy for TCP that breaks connections as networks do: it goes silent, or cuts them. */
import type { AddressInfo } from 'node:net';
import { connect as connectTo, createServer, type Socket } from 'node:net';
import { atEnd } from './cleanup.ts';

export interface FaultProxy {
  readonly port: number;
  /** From now on nothing passes and nobody is told: connections are half open, and new ones get no answer. */
  silence(): void;
  /** Cuts what was silent, and lets everything pass again. */
  heal(): void;
  /** Cuts all connections. */
  cut(): void;
  /** From now on what the server answers does not pass. */
  mute(): void;
  /** Sees each part of what clients send before it passes; a promise holds it back. */
  watch(split: (data: Buffer) => readonly Buffer[], seen: (part: Buffer) => Promise<void> | null): void;
}

/** In front of a port of this machine. */
export async function startFaultProxy(to: number): Promise<FaultProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isSilent = false;
  let isMute = false;
  let split: (data: Buffer) => readonly Buffer[] = (data) => [data];
  let seen: ((part: Buffer) => Promise<void> | null) | null = null;
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
      if (seen === null) target.write(data);
      else
        for (const part of split(data))
          order = order.then(() => seen?.(part)).then(() => void (isSilent || target.write(part)));
    });
    target.on('data', (data: Buffer) => {
      if (!isSilent && !isMute) client.write(data);
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
      isMute = false;
      cut();
    },
    cut,
    mute() {
      isMute = true;
    },
    watch(parts, given) {
      split = parts;
      seen = given;
    },
  };
}
