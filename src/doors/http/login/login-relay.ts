/**
 * One page of logins on several replicas. What a link opens stays with the replica that made it, because a login that is
 * under way cannot be passed on. Requests that reach another replica are answered by that one.
 */
import { randomUUID } from 'node:crypto';
import { GatewayError, messageOf } from '../../../base/errors.ts';
import type { Replica } from '../../../store/shared/replica.ts';

/** What a browser asks for, without the connection that it came by. */
export interface PageRequest {
  readonly what: 'show' | 'act' | 'finish';
  /** The link that it follows; null if none. */
  readonly ticket: string | null;
  /** The session of the browser; empty if it has none. */
  readonly session: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface PageReply {
  readonly status: number;
  readonly text: string;
  readonly headers: readonly string[];
}

type Answering = (request: PageRequest) => Promise<PageReply>;

/** How long another replica may take. It may have to ask an authorization server. */
const LONGEST = 60_000;

/** The replica that made a ticket or a session. Its id is in front. */
function makerOf(id: string): string | null {
  const dot = id.indexOf('.');
  return dot < 0 ? null : id.slice(0, dot);
}

/** An id that says which replica made it. */
export function madeHere(replica: Replica | null, id: string): string {
  return replica === null ? id : `${replica.id}.${id}`;
}

/** Answers here, or where the link or session was made. */
export function relayed(replica: Replica | null, answer: Answering): Answering {
  if (replica === null) return answer;
  const waiting = new Map<string, (reply: PageReply | string) => void>();
  replica.hear('login-page', async ({ token, request }, from) => {
    const reply = await answer(request as PageRequest).catch(messageOf);
    await replica.send(from, 'login-reply', { token, reply }).catch(() => {});
  });
  replica.hear('login-reply', ({ token, reply }) => waiting.get(String(token))?.(reply as PageReply | string));

  return async (request) => {
    const maker = makerOf(request.ticket ?? request.session);
    // One that has ended has taken its links with it.
    if (maker === null || maker === replica.id || !replica.isAlive(maker)) return answer(request);
    const token = randomUUID();
    let timer: NodeJS.Timeout | undefined;
    try {
      const reply = await new Promise<PageReply | string>((resolve, reject) => {
        waiting.set(token, resolve);
        timer = setTimeout(resolve, LONGEST, 'The replica that made this link does not answer. Try it again.');
        replica.send(maker, 'login-page', { token, request: { ...request } }).catch(reject);
      });
      if (typeof reply !== 'string') return reply;
      throw new GatewayError('source_unavailable', reply);
    } finally {
      clearTimeout(timer);
      waiting.delete(token);
    }
  };
}
