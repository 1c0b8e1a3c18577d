/** Connections that accept no more calls: each finishes its running ones and is then closed. */
import type { Connection } from './connection.ts';

const LOOK = 50;

export class Draining {
  readonly #connections = new Set<Connection>();

  /** Pending requests on all of them. */
  get inFlight(): number {
    let sum = 0;
    for (const connection of this.#connections) sum += connection.inFlight;
    return sum;
  }

  add(connection: Connection): void {
    void this.#drain(connection);
  }

  async #drain(connection: Connection): Promise<void> {
    this.#connections.add(connection);
    // Every request has a timeout, so this ends.
    while (connection.inFlight > 0) await new Promise((resolve) => setTimeout(resolve, LOOK));
    await connection.close();
    this.#connections.delete(connection);
  }

  /** Closes them now. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#connections].map((connection) => connection.close()));
  }
}
