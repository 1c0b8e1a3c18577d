/**
 * A page looks at one of several replicas: the one that has its stream of events. What the page asks may reach another
 * one, which passes it on. So calls, servers and logs that a page shows are always those of one process.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { GatewayError, messageOf } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import type { Replica } from '../store/shared/replica.ts';
import type { Endpoint } from './endpoints.ts';

/** The page sends the id of its replica with this header. */
export const REPLICA_HEADER = 'x-toolgate-replica';

/** A request that was let in at one replica, for another one. */
export interface PassedRequest {
  readonly method: string;
  readonly url: string;
  readonly type: string;
  readonly body: string;
  readonly who: string;
  readonly expires: number | null;
}

export interface Passing {
  /** The replica that a request is for; null if this one answers it. */
  homeOf(request: IncomingMessage, endpoint: Endpoint): string | null;
  /** What the other one answers. Throws what it throws. */
  pass(to: string, request: PassedRequest): Promise<unknown>;
  close(): void;
}

const PATIENCE = 20_000;
/** Answered by any replica: what is about the browser itself, and what changes files. Secrets and tokens are never passed on. */
const ANYWHERE = new Set([
  ...['leave', 'makeLink', 'openApi', 'setSecret', 'removeSecret', 'addAgent', 'rotateAgent', 'revokeAgent', 'install'],
]);

export function createPassing(replica: Replica, answer: (request: PassedRequest) => Promise<unknown>): Passing {
  const waiting = new Map<number, { done(value: unknown): void; fail(error: Error): void }>();
  let last = 0;

  const stopAsking = replica.hear('page-ask', async (message, from) => {
    const { ask, request } = message as unknown as { readonly ask: number; readonly request: PassedRequest };
    let reply: Readonly<Record<string, unknown>>;
    try {
      reply = { value: (await answer(request)) ?? null };
    } catch (error) {
      const { code, details } = error instanceof GatewayError ? error : { code: 'internal', details: {} };
      reply = { code, message: messageOf(error), details };
    }
    await replica.send(from, 'page-answer', { ask, ...reply }).catch(() => {});
  });
  const stopHearing = replica.hear('page-answer', ({ ask, value, code, message, details }) => {
    const one = waiting.get(Number(ask));
    if (code === undefined) one?.done(value);
    else
      one?.fail(
        new GatewayError(code as GatewayError['code'], String(message), {
          details: toObject(details) as NonNullable<GatewayError['details']>,
        }),
      );
  });

  return {
    homeOf({ headers }, { isStream, does }) {
      const home = headers[REPLICA_HEADER];
      if (typeof home !== 'string' || home === replica.id || isStream === true || ANYWHERE.has(does)) return null;
      // Of one that is gone nothing is left. The stream of the page finds another one.
      return replica.isAlive(home) ? home : null;
    },
    pass(to, request) {
      const ask = ++last;
      return new Promise((resolve, reject) => {
        const end = () => {
          clearTimeout(timer);
          waiting.delete(ask);
        };
        const fail = (error: Error) => {
          end();
          reject(error);
        };
        const timer = setTimeout(
          () => fail(new GatewayError('source_unavailable', 'The replica that this page looks at did not answer.')),
          PATIENCE,
        );
        waiting.set(ask, {
          done(value) {
            end();
            resolve(value);
          },
          fail,
        });
        replica.send(to, 'page-ask', { ask, request }).catch(fail);
      });
    },
    close() {
      stopAsking();
      stopHearing();
      for (const { fail } of waiting.values())
        fail(new GatewayError('source_unavailable', 'The gateway is being stopped.'));
    },
  };
}

/** A passed request as the handlers read it. */
export function asRequest({ method, url, type, body }: PassedRequest): IncomingMessage {
  const request = Readable.from(body === '' ? [] : [Buffer.from(body)]);
  const headers = { 'content-type': type, ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }) };
  return Object.assign(request, { method, url, headers }) as unknown as IncomingMessage;
}
