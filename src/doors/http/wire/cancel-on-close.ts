/** A client without a session cancels its request by closing the connection. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Cancellable {
  /** Its index among the running requests; -1 once it is over. */
  readonly place: number;
  cancel(reason: string): void;
}

/** The last request is stored on its connection, so that one listener serves all requests on it. */
const REQUEST = Symbol('request');
type WithRequest = (Socket | ServerResponse) & { [REQUEST]?: Cancellable };

function onClose(this: WithRequest): void {
  this[REQUEST]?.cancel('the client is gone');
}

export function cancelOnClose(response: ServerResponse, request: Cancellable): void {
  const socket: WithRequest | null = response.socket;
  // Requests normally follow one another on a connection. Pipelined ones are stored on their response instead.
  const isFree = socket !== null && !(socket[REQUEST] !== undefined && socket[REQUEST].place >= 0);
  const carrier: WithRequest = isFree ? socket : response;
  if (carrier[REQUEST] === undefined) carrier.on('close', onClose);
  carrier[REQUEST] = request;
}
