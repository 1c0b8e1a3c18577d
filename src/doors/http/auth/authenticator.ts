/**
 * Who sends a request. The answer comes from its credential: a token that stands for an agent, or a JWT. A header alone
 * names an agent only where the operator says that the network is trusted.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { isLoopback } from '../../../base/loopback.ts';
import { type Credential, type Identity, isInvalid, requireNotRevoked } from '../../../calls/identity.ts';
import { AGENT_NAME } from '../../../config/agents.ts';
import type { Config } from '../../../config/config.ts';
import type { JwtConfig } from '../../../config/http.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { AccessRefused, metadataUrl } from './challenge.ts';
import { createJwtVerifier, isJwt, type JwtVerifier, TokenRefused } from './jwt.ts';
import { openTokens } from './tokens.ts';

export interface Authenticator {
  /** Throws, or rejects, where the request is not let in. A promise only where a token has to be checked for the first time. */
  identify(request: IncomingMessage): Identity | Promise<Identity>;
  /** Throws unless the identity may see what is about the whole gateway. */
  requireAdmin(identity: Identity, request: IncomingMessage): void;
  /** Whether there is any credential to ask for. */
  readonly hasCredentials: boolean;
  /** Whether anybody is let in: there is none, and nobody else can reach us or the network is trusted. */
  readonly isOpen: boolean;
  close(): void;
}

/**
 * Says who sends a request: for a program that knows its users. Throws, or rejects, where it is nobody. Make it with
 * `createIdentity`, and return the same object for the same user: that saves work.
 */
export type Identify = (request: IncomingMessage) => Identity | Promise<Identity>;

/** Who reaches a door: this machine only, others too, or whoever the server of another program lets in. */
export type Reach = 'machine' | 'network' | 'unknown';

/** Headers of clients that were let in, so that the next request with one costs a look into a map. */
const MOST_KNOWN = 4_096;
/** Whatever an operator has chosen for a token; two headers in one are none that is known. */
const BEARER = /^bearer +(\S.*)$/i;

/**
 * `common` is BEARER_TOKEN. `resource` is the address that tokens are made out to, known when the door listens. `turnOut` is called when some that were let in no longer are.
 */
export async function openAuthenticator(
  gateway: Gateway,
  common: string | null,
  resource: () => string,
  reach: Reach,
  turnOut: () => void,
): Promise<Authenticator> {
  const tokens = await openTokens(gateway, common);
  const known = new Map<string, Identity>();
  let seen = gateway.config;
  let jwt = seen.http.jwt === null ? null : openJwt(seen.http.jwt);
  /** As with tokens: what was closed stays closed. */
  let wasJwt = jwt !== null;
  /** Which of those that are known came with BEARER_TOKEN: they may be given a name by the header. */
  const nameless = new WeakSet<Identity>();
  let anonymous = makeAnonymous();

  const removeApplier = gateway.addApplier({
    name: 'credentials',
    readTokens: tokens.read,
    apply: refresh,
  });

  function openJwt(config: JwtConfig) {
    const note = (message: string) => gateway.events.emit('note', { source: 'jwt', message });
    const verify: JwtVerifier = createJwtVerifier(config, resource, note);
    return { config, verify, revocation: { isRevoked: false } };
  }

  function makeAnonymous(): Identity {
    return identityOf('anonymous', 'anonymous', 'nothing', { expires: null, revocation: { isRevoked: false } });
  }

  const hasCredentials = () => tokens.areWanted || wasJwt;

  // Trust may be withdrawn while the gateway runs.
  const isOpen = () => !hasCredentials() && (reach !== 'network' || seen.http.trustAgentHeader);

  function refresh(config: Config): void {
    seen = config;
    const next = seen.http.jwt;
    if (JSON.stringify(next) !== JSON.stringify(jwt?.config ?? null)) {
      if (jwt !== null) jwt.revocation.isRevoked = true;
      jwt = next === null ? null : openJwt(next);
      wasJwt ||= jwt !== null;
    }
    tokens.rebuild();
    forget();
  }

  function forget(): void {
    known.clear();
    if (!isOpen()) anonymous.credential.revocation.isRevoked = true;
    else if (anonymous.credential.revocation.isRevoked) anonymous = makeAnonymous();
    turnOut();
  }

  function identityOf(agent: string, principal: string, via: Identity['via'], credential: Credential): Identity {
    const isAdmin = via !== 'header' && via !== 'nothing' && seen.http.admins.includes(agent);
    return { agent, principal, via, isAdmin, isOperator: false, credential };
  }

  function refuse(request: IncomingMessage, message: string, description?: string): AccessRefused {
    const reason = description ?? 'no token';
    tellOf(request, reason);
    return new AccessRefused('unauthorized', message, reason, {
      ...(description !== undefined && { error: 'invalid_token', description }),
      ...challenged(),
    });
  }

  function challenged() {
    return jwt === null ? { metadata: null } : { metadata: metadataUrl(resource()), scopes: jwt.config.requiredScopes };
  }

  function tellOf({ socket }: IncomingMessage, reason: string): void {
    gateway.events.emit('unauthorized', { reason, remote: socket.remoteAddress ?? 'unknown' });
  }

  function identify(request: IncomingMessage): Identity | Promise<Identity> {
    const { authorization } = request.headers;
    const identity = authorization === undefined ? undefined : known.get(authorization);
    if (identity !== undefined && (identity.credential.expires === null || !isInvalid(identity.credential, Date.now())))
      return seen.http.trustAgentHeader ? labelled(request, identity) : identity;
    return look(request, authorization);
  }

  function look(request: IncomingMessage, authorization: string | undefined): Identity | Promise<Identity> {
    if (isOpen()) {
      if (seen.http.trustAgentHeader) return labelled(request, anonymous);
      if (reach === 'unknown' && !isLocal(request)) throw refuse(request, ELSEWHERE);
      return anonymous;
    }
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) {
      const isBearer = /^bearer\b/i.test(authorization ?? '');
      throw refuse(request, NEEDED, isBearer ? 'The header Authorization holds no token' : undefined);
    }
    const found = tokens.find(token);
    if (found !== undefined) {
      if (isInvalid(found.credential, Date.now()))
        throw refuse(request, 'The token has expired.', 'The token has expired');
      const identity = identityOf(found.agent, found.agent, 'token', found.credential);
      keep(authorization!, identity, found.isCommon);
      return seen.http.trustAgentHeader ? labelled(request, identity) : identity;
    }
    if (jwt === null || !isJwt(token)) throw refuse(request, UNKNOWN, 'The token is unknown');
    return check(request, authorization!, token, jwt);
  }

  function keep(authorization: string, identity: Identity, isNameless: boolean): void {
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value!);
    known.set(authorization, identity);
    if (isNameless) nameless.add(identity);
  }

  async function check(
    request: IncomingMessage,
    authorization: string,
    token: string,
    { verify, revocation }: NonNullable<typeof jwt>,
  ): Promise<Identity> {
    try {
      const { agent, principal, expires } = await verify(token);
      if (revocation.isRevoked) throw new TokenRefused('invalid', 'The token is no longer good here');
      const identity = identityOf(agent, principal, 'jwt', { expires, revocation: revocation });
      keep(authorization, identity, false);
      return identity;
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      const { kind, description } = error;
      if (kind === 'invalid') throw refuse(request, `${description}.`, description);
      tellOf(request, description);
      throw new AccessRefused('forbidden', `${description}.`, description, {
        ...challenged(),
        ...(kind === 'scope' && { error: 'insufficient_scope', description }),
      });
    }
  }

  /** The identity under the name that the header gives it. */
  function labelled(request: IncomingMessage, identity: Identity): Identity {
    const name = request.headers['x-agent-id'];
    if (name === undefined || !(identity === anonymous || nameless.has(identity))) return identity;
    if (typeof name !== 'string' || !AGENT_NAME.test(name)) {
      tellOf(request, 'X-Agent-Id is malformed');
      throw new GatewayError(
        'request_invalid',
        'The header X-Agent-Id must be there once, with at most 64 letters, digits and "_", ".", "@", ":", "-", of which the first is a letter or digit.',
      );
    }
    // With a sign in front that no name has: who has a token of that name is somebody else.
    return name === identity.agent ? identity : identityOf(name, `~${name}`, 'header', identity.credential);
  }

  return {
    identify,
    requireAdmin(identity, request) {
      if (identity.isAdmin || isOpen()) return;
      tellOf(request, `the agent ${JSON.stringify(identity.agent)} is no admin`);
      throw new AccessRefused('forbidden', 'This is for admins only: http.admins says which agents are.', 'no admin', {
        metadata: challenged().metadata,
      });
    },
    get hasCredentials() {
      return hasCredentials();
    },
    get isOpen() {
      return isOpen();
    },
    close() {
      removeApplier();
      tokens.close();
    },
  };
}

/** For those whom a program knows by itself. */
export function programAuthenticator(gateway: Gateway, identify: Identify): Authenticator {
  return {
    identify(request) {
      const identity = identify(request);
      return identity instanceof Promise ? identity.then(requireValid) : requireValid(identity);
    },
    requireAdmin({ isAdmin, agent }, { socket }) {
      if (isAdmin) return;
      const reason = `the agent ${JSON.stringify(agent)} is no admin`;
      gateway.events.emit('unauthorized', { reason, remote: socket.remoteAddress ?? 'unknown' });
      throw new GatewayError('forbidden', 'This is for admins only.');
    },
    hasCredentials: true,
    isOpen: false,
    close() {},
  };
}

function requireValid(identity: Identity): Identity {
  requireNotRevoked(identity.credential);
  if (isInvalid(identity.credential, Date.now()))
    throw new GatewayError(
      'unauthorized',
      'The identity has expired: the program that serves this door let it in only until now.',
    );
  return identity;
}

/** Whether it came to an address that only this machine has, and not by a proxy there. A socket in the file system has none. */
function isLocal({ headers, socket }: IncomingMessage): boolean {
  if (PROXIED.some((name) => headers[name] !== undefined)) return false;
  const address = socket.localAddress ?? socket.remoteAddress;
  return address === undefined || isLoopback(address);
}

const PROXIED = ['forwarded', 'x-forwarded-for', 'x-real-ip'];

const NEEDED =
  'A bearer token is needed: send "Authorization: Bearer TOKEN" with the value of BEARER_TOKEN, or a token of toolgate agents.';
const ELSEWHERE =
  'Without a credential only programs on the machine of the gateway are let in. Configure one, or say by identify who comes.';
const UNKNOWN = 'The token is unknown: it was mistyped, revoked, or is for another gateway.';
