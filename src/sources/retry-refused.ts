/** Requests that a server did not take as we sent them: our knowledge of it may be old. Each is sent once more at most. */

import { GatewayError } from '../base/errors.ts';
import type { Offer } from '../catalog/item.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Connection, Refusal } from './connection.ts';
import { deferRequest } from './deferred-request.ts';
import {
  CAPABILITY_MISSING,
  capabilityMissing,
  HEADER_MISMATCH,
  REVISION_UNSUPPORTED,
  refusalText,
} from './refusal.ts';

export interface RefusedRetries {
  /** Sends it again; null where that has been done, or makes no sense. */
  again(request: SourceRequest): Ticket | null;
  /** The server's word about a request, as `ConnectionEvents` has it. */
  refused(which: Connection, request: SourceRequest, refusal: Refusal): Ticket | null;
}

export interface RefusedRetryOptions {
  /** What the server is called. */
  key(): string;
  isClosed(): boolean;
  call(request: SourceRequest): Ticket;
  /** Lists the tools anew, and gives all there is. */
  relist(): Promise<Offer>;
  /** The server wants to be greeted anew. */
  forgotten(which: Connection, refused: SourceRequest): Ticket | null;
}

export function createRefusedRetries({ key, isClosed, call, relist, forgotten }: RefusedRetryOptions): RefusedRetries {
  const repeated = new WeakSet<SourceRequest>();

  function again(request: SourceRequest): Ticket | null {
    if (repeated.has(request) || isClosed()) return null;
    repeated.add(request);
    return call(request);
  }

  function giveUp(request: SourceRequest, code: number): null {
    request.sink.fail(new GatewayError('source_broken', refusalText(key(), code)));
    return null;
  }

  return {
    again,
    refused(which, request, { code, data }) {
      if (code === CAPABILITY_MISSING) {
        request.sink.fail(capabilityMissing(key(), data));
        return null;
      }
      const first = !repeated.has(request);
      if (first && code === HEADER_MISMATCH && request.method === 'tools/call') {
        const retry = (offer: Offer) => {
          request.renew?.(offer.items);
          return again(request) ?? giveUp(request, code);
        };
        return deferRequest(relist(), retry, (error) => request.sink.fail(error));
      }
      const isOld = first && code === REVISION_UNSUPPORTED;
      return (isOld ? forgotten(which, request) : null) ?? giveUp(request, code);
    },
  };
}
