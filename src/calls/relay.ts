/**
 * Passes a request on to the replica that has what it is about, and its answer back: the call that waits for a client, or
 * the server process in which an MCP task lives.
 */
import { randomBytes } from 'node:crypto';
import { type ErrorCode, GatewayError, toGatewayError } from '../base/errors.ts';
import { READS_AT_ONCE } from '../protocol/contract.ts';
import { NO_ABILITIES, readAbilities } from '../protocol/envelope.ts';
import { claimsRevision, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { type Question, unanswerable } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Replica, ReplicaMessage } from '../store/shared/replica.ts';
import type { Holder } from './holder.ts';

/** Carries a request out for another replica; returns what cancels it. */
export type Serve = (principal: string, era: Era, message: Message, holder: Holder) => (reason: string) => void;

export interface ReplicaRelay {
  /** `holder` gets the answer. Returns what cancels the request. */
  forward(
    to: string,
    kind: string,
    principal: string,
    era: Era,
    message: Message,
    holder: Holder,
  ): (reason: string) => void;
  /** Asks all others, and resolves to the results of those that answer. */
  askAll(kind: string, principal: string, era: Era, message: Message): Promise<readonly Buffer[]>;
  serve(kind: string, serve: Serve): void;
}

/** Milliseconds between looks whether the other replica is still there. */
const LOOK = 1_000;

export function createRelay(replica: Replica): ReplicaRelay {
  const away = new Map<string, { readonly holder: Holder; readonly to: string }>();
  const here = new Map<string, (reason: string) => void>();
  const kinds = new Map<string, Serve>();
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    for (const [token, { holder, to }] of away) {
      if (replica.isAlive(to)) continue;
      away.delete(token);
      holder.fail(left());
    }
    if (away.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  replica.hear('relay', ({ token, request, principal, era, message }, from) => {
    const answer = (body: ReplicaMessage) => void replica.send(from, 'relayed', { token, ...body }).catch(() => {});
    let holder = remoteHolder(answer, () => here.delete(String(token)));
    try {
      const serve = kinds.get(String(request));
      if (serve === undefined) throw left();
      const read = readMessage(Buffer.from(String(message), 'base64'));
      // What the client can do is in each of its requests.
      if (claimsRevision(read)) holder = { ...holder, ...readAbilities(read) };
      here.set(String(token), serve(String(principal), era as Era, read, holder));
    } catch (error) {
      holder.fail(toGatewayError(error));
    }
  });
  replica.hear('unrelay', ({ token, reason }) => {
    here.get(String(token))?.(String(reason));
    here.delete(String(token));
  });
  replica.hear('relayed', (body) => {
    const token = String(body.token);
    const waiting = away.get(token);
    if (waiting === undefined) return;
    const { holder } = waiting;
    const bytes = (key: string) => Buffer.from(String(body[key]), 'base64');
    if (body.notify !== undefined) {
      holder.notify(bytes('notify'));
      return;
    }
    away.delete(token);
    if (body.result !== undefined) holder.result(bytes('result'), body.era as Era);
    else if (body.error !== undefined) holder.error(bytes('error'), body.era as Era);
    else if (body.state !== undefined) holder.park(questionsIn(body.questions), String(body.state));
    else {
      const { code, message, details } = body.fail as { code: ErrorCode; message: string; details: object };
      holder.fail(new GatewayError(code, message, { details: { ...details } }));
    }
  });

  function forward(
    to: string,
    kind: string,
    principal: string,
    era: Era,
    { bytes }: Message,
    holder: Holder,
  ): (reason: string) => void {
    if (!replica.isAlive(to)) throw left();
    const token = randomBytes(9).toString('base64url');
    away.set(token, { holder, to });
    timer ??= setInterval(look, LOOK).unref();
    const body = { token, request: kind, principal, era, message: bytes.toString('base64') };
    replica.send(to, 'relay', body).catch(() => {
      if (away.delete(token)) holder.fail(unreachable());
    });
    return (reason) => {
      if (away.delete(token)) void replica.send(to, 'unrelay', { token, reason }).catch(() => {});
    };
  }

  return {
    forward,
    async askAll(kind, principal, era, message) {
      const asked = replica.others.map(
        (to) =>
          new Promise<Buffer | null>((resolve) => {
            const nothing = () => resolve(null);
            const holder: Holder = {
              ...NO_ABILITIES,
              ...READS_AT_ONCE,
              owner: {},
              awaySince: null,
              result: (result) => resolve(join(result)),
              error: nothing,
              fail: nothing,
              notify() {},
              park: nothing,
              ask() {},
            };
            try {
              forward(to, kind, principal, era, message, holder);
            } catch {
              // It has just gone.
              nothing();
            }
          }),
      );
      return (await Promise.all(asked)).filter((one) => one !== null);
    },
    serve(kind, serve) {
      kinds.set(kind, serve);
    },
  };
}

function questionsIn(value: unknown): ReadonlyMap<string, Question> {
  const all = value as [string, string, string | null][];
  return new Map(
    all.map(([key, method, params]) => [
      key,
      { method, params: params === null ? null : Buffer.from(params, 'base64') } as Question,
    ]),
  );
}

/** Stands for the client that another replica has. */
function remoteHolder(answer: (body: ReplicaMessage) => void, over: () => void): Holder {
  const end = (body: ReplicaMessage) => {
    over();
    answer(body);
  };
  return {
    ...NO_ABILITIES,
    ...READS_AT_ONCE,
    owner: {},
    awaySince: null,
    result: (result, era) => end({ result: join(result).toString('base64'), era }),
    error: (error, era) => end({ error: error.toString('base64'), era }),
    fail: ({ code, message, details }) => end({ fail: { code, message, details } }),
    notify: (message) => answer({ notify: message.toString('base64') }),
    park: (questions, state) =>
      end({
        state,
        questions: [...questions].map(([key, { method, params }]) => [key, method, params?.toString('base64') ?? null]),
      }),
    ask: ({ method, refuse }) => refuse(unanswerable(method, 'the client is at another replica')),
  };
}

/** What the request is about is still there. */
function unreachable(): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The replica that has this call cannot be reached, because the store cannot. Try again in 1 s.',
    { details: { retryAfter: 1 } },
  );
}

function left(): GatewayError {
  return new GatewayError(
    'outcome_unknown',
    'The outcome of this call is unknown: the replica that made it has ended. It may have had its effect, and was not made again. Find out before you call again.',
  );
}
