/** Connections that are no longer in charge: each finishes what it has under way, and is then closed. */
import type { Connection } from './connection.ts';

export interface Draining {
  /** Requests under way on all of them. */
  readonly inFlight: number;
  add(connection: Connection): void;
  /** Closes them now. */
  close(): Promise<void>;
}

const PAUSE = 50;

export function createDraining(): Draining {
  const connections = new Set<Connection>();

  async function fade(connection: Connection): Promise<void> {
    connections.add(connection);
    // Every request has a time-out, so this has an end.
    while (connection.inFlight > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    await connection.close();
    connections.delete(connection);
  }

  return {
    get inFlight() {
      let sum = 0;
      for (const connection of connections) sum += connection.inFlight;
      return sum;
    },
    add: (connection) => void fade(connection),
    async close() {
      await Promise.allSettled([...connections].map((connection) => connection.close()));
    },
  };
}
