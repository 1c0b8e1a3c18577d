/** Who was sent to which address: the server's word that the user is done there goes to that client, and to no other. */

import type { ClientChannel } from '../protocol/contract.ts';
import { elicitationId } from '../protocol/elicitation.ts';
import type { Message } from '../protocol/message.ts';

export interface Elicitations {
  /** Whether a user may still be at one of the addresses. */
  readonly open: boolean;
  /** The client was sent to the address in these parameters. */
  note(params: Buffer | null, client: ClientChannel | null): void;
  /** Passes on that the user is done. */
  complete(message: Message): void;
}

const MOST = 1_000;
/** How long users are waited for, with a process that would otherwise be stopped. */
const PATIENCE = 10 * 60_000;

export function createElicitations(): Elicitations {
  const guests = new Map<string, ClientChannel>();
  let last = Number.NEGATIVE_INFINITY;
  return {
    get open() {
      return guests.size > 0 && performance.now() - last < PATIENCE;
    },
    note(params, client) {
      const id = elicitationId(params);
      // Those without a session are not told: in their revision nobody is.
      if (id === null || client === null || client.abilities === null) return;
      if (guests.size >= MOST) guests.delete(guests.keys().next().value!);
      guests.set(id, client);
      last = performance.now();
    },
    complete({ bytes, paramsStart, paramsEnd }) {
      const id = paramsStart < 0 ? null : elicitationId(bytes.subarray(paramsStart, paramsEnd));
      if (id === null) return;
      guests.get(id)?.tell(bytes);
      guests.delete(id);
    },
  };
}
