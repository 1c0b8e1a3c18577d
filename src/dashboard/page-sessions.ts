/**
 * Browsers that were let in. A one-time link, the operator key or an admin token is exchanged for a cookie. Sessions are
 * kept in memory only, that of all replicas, few of them and not for long. They end with a log-out, with another operator
 * key, and with the admin token that they were opened with.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { OPERATOR, openAdminStore } from '../store/agents.ts';
import { isOperatorKey, operatorKey, sign } from '../store/operator.ts';
import type { Replica } from '../store/shared/replica.ts';
import { openShelf } from './page-shelf.ts';

export interface PageSession {
  /** `operator`, or the name of an admin token. */
  readonly who: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

interface KeptSession extends PageSession {
  /** Stands for the operator key that was valid then. */
  readonly stamp: string;
  /** The hash of the admin token that it was opened with; null if that was the operator key, or a link. */
  readonly token: string | null;
  readonly lastUsed: number;
  /** What it is kept under. */
  readonly key: string;
}

/** Somebody who sends a key or a token with every request. What they opened lasts as long as that is valid. */
interface HolderSession extends PageSession {
  isStillGood(): Promise<boolean>;
}

export interface PageSessions {
  /** A new one-time code, and until when it can be used. */
  makeCode(): Promise<{ readonly code: string; readonly expires: number }>;
  /** The cookie for a code. Throws if it was used, is too old, or was never made. */
  enter(code: string, request: IncomingMessage): Promise<string>;
  /** The cookie for the operator key or an admin token, and who has entered. */
  enterWith(key: string, request: IncomingMessage): Promise<{ readonly cookie: string; readonly who: string }>;
  /** The session of a request; null if it has no cookie. Throws if the session is over or another page sent it. */
  find(request: IncomingMessage): Promise<PageSession | null>;
  /** The holder of the admin token that is the bearer of a request; null if it is none. */
  tokenHolder(request: IncomingMessage): Promise<PageSession | null>;
  /** The holder of the operator key, who was let in with it. */
  keyHolder(): Promise<PageSession>;
  /** Whether the session, or the holder of a key, may still look. False if that cannot be found out. Never rejects. */
  isValid(session: PageSession): Promise<boolean>;
  /** Ends the session of a request. Returns the cookie that removes its cookie. */
  leave(request: IncomingMessage): Promise<string>;
  readonly size: number;
}

const MINUTE = 60_000;
const CODE_LIFE = 5 * MINUTE;
const MOST_CODES = 20;
const MOST_SESSIONS = 32;
const LIFE = 12 * 60 * MINUTE;
const IDLE = 2 * 60 * MINUTE;
/** How exactly the last use is known. */
const NOTED = MINUTE;
/** Wrong keys in a minute, from one address: others must not keep the operator out. */
const MOST_WRONG = 20;
/** Addresses that are remembered for it. */
const MOST_ADDRESSES = 1_000;

/** Changes with a cookie need this header: a page of another origin would have to ask first, and is refused. */
export const PAGE_HEADER = 'x-toolgate-page';

export function createPageSessions(config: () => Config, env: EnvVars, replica: Replica | null): PageSessions {
  /** By their hashes. */
  const codes = openShelf<{ readonly expires: number }>(replica, 'page links', MOST_CODES);
  const sessions = openShelf<KeptSession>(replica, 'page sessions', MOST_SESSIONS);
  const wrong = new BoundedMap<string, { count: number; readonly since: number }>(MOST_ADDRESSES);

  const stampNow = async () => sign(await operatorKey(env), ['page session']);

  async function open(who: string, token: string | null, request: IncomingMessage): Promise<string> {
    const cookie = randomBytes(32).toString('base64url');
    const now = Date.now();
    const key = sha256(cookie);
    await sessions.set(key, { who, expires: now + LIFE, stamp: await stampNow(), token, lastUsed: now, key });
    return `${cookieOf(cookie, request)}; Max-Age=${LIFE / 1_000}`;
  }

  /** The name has nothing of a port: cookies have none, and other gateways on this machine have other names. */
  function cookieName(request: IncomingMessage): string {
    const { file, dataDir } = config();
    const own = sha256(JSON.stringify([file, dataDir])).slice(0, 8);
    return `${isSecure(request) ? '__Host-' : ''}toolgate_${own}`;
  }

  function cookieOf(value: string, request: IncomingMessage): string {
    const secure = isSecure(request) ? '; Secure' : '';
    return `${cookieName(request)}=${value}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  }

  function isSecure({ socket, headers }: IncomingMessage): boolean {
    if ((socket as Partial<TLSSocket>).encrypted === true) return true;
    const { publicUrl } = config().http;
    return publicUrl?.startsWith('https:') === true && new URL(publicUrl).host === headers.host;
  }

  function keyOf(request: IncomingMessage): string | null {
    const wanted = `${cookieName(request)}=`;
    const given = (request.headers.cookie ?? '').split(/; */).find((one) => one.startsWith(wanted));
    return given === undefined ? null : sha256(given.slice(wanted.length));
  }

  async function isKept(session: KeptSession): Promise<boolean> {
    const now = Date.now();
    if (now >= session.expires || now - session.lastUsed > IDLE) return false;
    if (session.stamp !== (await stampNow())) return false;
    // By the token and not by its name: rotating a stolen token must also end the sessions of the thief.
    return session.token === null || (await adminWith(session.token)) === session.who;
  }

  /** Every use is not written down: other replicas are told of it. */
  async function use(session: KeptSession): Promise<void> {
    const now = Date.now();
    if (now - session.lastUsed <= NOTED) return;
    // While the store is away it is only not written down.
    await sessions.set(session.key, { ...session, lastUsed: now }).catch(() => {});
  }

  async function mayLook(session: PageSession): Promise<boolean> {
    if ('isStillGood' in session) return (session as HolderSession).isStillGood();
    if (!('stamp' in session)) return true;
    const kept = sessions.get((session as KeptSession).key);
    if (kept === undefined || !(await isKept(kept))) return false;
    await use(kept);
    return true;
  }

  async function adminOf(token: string): Promise<string | null> {
    return token.startsWith('tg_') ? adminWith(sha256(token)) : null;
  }

  async function adminWith(hash: string): Promise<string | null> {
    const now = new Date().toISOString();
    const known = (await openAdminStore(config().dataDir).read()) ?? [];
    const found = known.find(
      ({ name, tokens }) =>
        // Also if the file says otherwise.
        name !== OPERATOR && tokens.some((one) => one.sha256 === hash && (one.expires === null || one.expires > now)),
    );
    return found?.name ?? null;
  }

  /** Only our own page may use the cookie: not a page of another site, nor of another port of this machine. */
  function requireOwnPage({ method = 'GET', headers }: IncomingMessage): void {
    const { host, origin, 'sec-fetch-site': site } = headers;
    const { publicUrl } = config().http;
    const own = [`http://${host}`, `https://${host}`, ...(publicUrl === null ? [] : [new URL(publicUrl).origin])];
    const isChange = method !== 'GET' && method !== 'HEAD';
    const isForeign =
      (origin !== undefined && !own.includes(origin)) ||
      (site !== undefined && site !== 'same-origin' && site !== 'none');
    if (isForeign || (isChange && headers[PAGE_HEADER] === undefined))
      throw new GatewayError(
        'forbidden',
        `Only the dashboard may use its session. A change needs the header ${PAGE_HEADER}.`,
        {
          rule: 'page session',
        },
      );
  }

  return {
    async makeCode() {
      // Also makes the key if there is none yet.
      await stampNow();
      const code = randomBytes(24).toString('base64url');
      const expires = Date.now() + CODE_LIFE;
      await codes.set(sha256(code), { expires });
      return { code, expires };
    },
    async enter(code, request) {
      const hash = sha256(code);
      const { expires } = codes.get(hash) ?? { expires: 0 };
      const isFirst = await codes.take(hash);
      if (!isFirst || Date.now() >= expires)
        throw new GatewayError(
          'unauthorized',
          'This link was used already, or is older than 5 minutes. Run toolgate dashboard for another one.',
        );
      return open(OPERATOR, null, request);
    },
    async enterWith(key, request) {
      const now = Date.now();
      const address = request.socket.remoteAddress ?? '';
      const before = wrong.get(address);
      const tries = before === undefined || now - before.since > MINUTE ? { count: 0, since: now } : before;
      if (tries.count >= MOST_WRONG)
        throw new GatewayError('rate_limited', 'Too many wrong keys were entered. Try again in a minute.', {
          details: { retryAfter: 60 },
        });
      // Counted before it is compared, because many may come at the same time.
      tries.count++;
      wrong.set(address, tries);
      const isOperator = isOperatorKey(key, await operatorKey(env));
      const who = isOperator ? OPERATOR : await adminOf(key);
      if (who !== null) {
        tries.count--;
        return { cookie: await open(who, isOperator ? null : sha256(key), request), who };
      }
      throw new GatewayError('unauthorized', 'That is neither the operator key nor an admin token.');
    },
    async find(request) {
      const key = keyOf(request);
      const session = key === null ? undefined : sessions.get(key);
      if (key === null || session === undefined) {
        // Our page, without a session: it has to hear why, not what agents hear.
        if (key !== null || request.headers[PAGE_HEADER] !== undefined) throw over();
        return null;
      }
      requireOwnPage(request);
      if (!(await isKept(session))) {
        await sessions.take(key);
        throw over();
      }
      await use(session);
      return session;
    },
    async tokenHolder({ headers }) {
      const token = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
      const who = token === undefined ? null : await adminOf(token);
      return who === null ? null : holder(who, async () => (await adminOf(token!)) === who);
    },
    async keyHolder() {
      const stamp = await stampNow();
      return holder(OPERATOR, async () => stamp === (await stampNow()));
    },
    // A stream asks while nobody waits for an answer: a file of tokens with a mistake must not end the gateway.
    isValid: (session) => mayLook(session).catch(() => false),
    async leave(request) {
      const key = keyOf(request);
      if (key !== null) await sessions.take(key);
      return `${cookieOf('', request)}; Max-Age=0`;
    },
    get size() {
      return sessions.size;
    },
  };
}

/** For the audit: whose admin token it was. */
export function byOf({ who }: Pick<PageSession, 'who'>): { readonly by?: string } {
  return who === OPERATOR ? {} : { by: who };
}

function holder(who: string, isStillGood: () => Promise<boolean>): HolderSession {
  return { who, expires: Number.POSITIVE_INFINITY, isStillGood };
}

function over(): GatewayError {
  return new GatewayError(
    'unauthorized',
    'Nobody is logged in here, or the session is over. Run toolgate dashboard for a link that lets you in.',
  );
}
