/** A client without a session cancels what it asked for by closing its end. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface UnderWay {
  /** -1 when it is over. */
  readonly place: number;
  cancel(reason: string): void;
}

/** What hangs on a connection, so that one listener serves all the requests that come over it. */
const ASKED = Symbol('asked');
type Carrier = (Socket | ServerResponse) & { [ASKED]?: UnderWay };

function onClose(this: Carrier): void {
  this[ASKED]?.cancel('the client is gone');
}

export function cancelOnClose(response: ServerResponse, asked: UnderWay): void {
  const socket: Carrier | null = response.socket;
  // One request follows another on a connection, unless a client does not wait for answers.
  const carrier: Carrier =
    socket !== null && !(socket[ASKED] !== undefined && socket[ASKED].place >= 0) ? socket : response;
  if (carrier[ASKED] === undefined) carrier.on('close', onClose);
  carrier[ASKED] = asked;
}
