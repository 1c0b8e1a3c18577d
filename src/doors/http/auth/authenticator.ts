/**
 * Identifies the sender of a request: by an agent's token, by a JWT, or by a client certificate. A header alone names an agent only if the
 * operator declares the network trusted.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { looksAtClaims } from '../../../access/circumstances.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { GatewayError } from '../../../base/errors.ts';
import { isLoopback } from '../../../base/loopback.ts';
import { isSameValue } from '../../../base/objects.ts';
import { type Credential, type Identity, isInvalid, requireNotRevoked } from '../../../calls/identity.ts';
import { AGENT_NAME } from '../../../config/agents.ts';
import type { Config } from '../../../config/config.ts';
import type { ClientCertificates, JwtConfig } from '../../../config/http.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { AccessRefused, metadataUrl, scopesOf } from './challenge.ts';
import { agentOf, presentedBy } from './client-certificate.ts';
import { claimedIssuer, createJwtVerifier, isJwt, type JwtVerifier, TokenRefused } from './jwt.ts';
import { isFromSandbox } from './sandboxed-peer.ts';
import { openTokens, type Tokens } from './tokens.ts';

export interface Authenticator {
  /** Throws or rejects if the request is refused. Returns a promise only if a JWT has to be verified. */
  identify(request: IncomingMessage): Identity | Promise<Identity>;
  /** Throws unless the identity is an admin, who may see what concerns the whole gateway. */
  requireAdmin(identity: Identity, request: IncomingMessage): void;
  readonly hasCredentials: boolean;
  /**
   * Whether all clients are admitted: no credential is configured, and either only this machine can reach the door or
   * the network is trusted.
   */
  readonly isOpen: boolean;
  close(): void;
}

/**
 * Identifies the sender of a request, for programs that know their users. To refuse the request it throws or rejects.
 * Create identities with `createIdentity`, and return the same object for the same user: that saves work.
 */
export type Identify = (request: IncomingMessage) => Identity | Promise<Identity>;

/** Who can reach a door: only programs on this machine, the network, or, on a program's own server, unknown clients. */
export type Reach = 'machine' | 'network' | 'unknown';

export interface AuthenticatorOptions {
  /** The value of BEARER_TOKEN; null for none. */
  readonly commonToken: string | null;
  readonly reach: Reach;
  /** The resource URL that JWTs must be issued for. It is known once the door listens. */
  resource(): string;
  /** Called when credentials were revoked. */
  revoked(): void;
}

/** Rejects if the agents file is malformed. */
export async function openAuthenticator(gateway: Gateway, options: AuthenticatorOptions): Promise<Authenticator> {
  return new CredentialAuthenticator(gateway, options, await openTokens(gateway, options.commonToken));
}

/** A configured issuer of JWTs. */
interface JwtIssuer {
  readonly config: JwtConfig;
  readonly verify: JwtVerifier;
  readonly revocation: { isRevoked: boolean };
}

/** How many identities are cached by Authorization header. A cached one costs a map lookup. */
const MOST_KNOWN = 4_096;
/** Matches any token, because operators choose their own. Two headers joined into one value match no known token. */
const BEARER = /^bearer +(\S.*)$/i;

class CredentialAuthenticator implements Authenticator {
  readonly gateway: Gateway;
  readonly options: AuthenticatorOptions;
  readonly tokens: Tokens;
  readonly known = new BoundedMap<string, Identity>(MOST_KNOWN);
  /** Identities of clients that sent BEARER_TOKEN. A header may name their agent. */
  readonly nameless = new WeakSet<Identity>();
  readonly removeApplier: () => void;
  config: Config;
  issuers: readonly JwtIssuer[] = [];
  /** Stays true, as with tokens: once a door has required a credential, a configuration change does not open it. */
  hadIssuer: boolean;
  anonymous: Identity;
  /** Whose client certificates are accepted; null for nobody's. */
  clients: ClientCertificates | null;
  /** Stays true, like `hadIssuer`. */
  hadClients: boolean;
  /** The identities of connections that a client certificate opened. */
  certified = new WeakMap<Socket, Identity>();
  certificates = { isRevoked: false };

  constructor(gateway: Gateway, options: AuthenticatorOptions, tokens: Tokens) {
    this.gateway = gateway;
    this.options = options;
    this.tokens = tokens;
    this.config = gateway.config;
    this.issuers = this.#openIssuers();
    this.hadIssuer = hasIssuer(this.config);
    this.anonymous = this.#anonymousIdentity();
    this.clients = clientsOf(this.config);
    this.hadClients = hasClients(this.config);
    this.removeApplier = gateway.addApplier({
      name: 'credentials',
      readTokens: tokens.read,
      apply: (config) => this.apply(config),
      settled: tokens.settled,
    });
  }

  get hasCredentials(): boolean {
    return this.tokens.areRequired || this.hadIssuer || this.hadClients;
  }

  get isOpen(): boolean {
    // The operator may stop trusting the network while the gateway runs.
    return !this.hasCredentials && (this.options.reach !== 'network' || this.config.http.trustAgentHeader);
  }

  identify(request: IncomingMessage): Identity | Promise<Identity> {
    const { authorization } = request.headers;
    const identity =
      authorization !== undefined
        ? this.known.get(authorization)
        : this.clients === null
          ? undefined
          : this.certified.get(request.socket);
    if (identity !== undefined && (identity.credential.expires === null || !isInvalid(identity.credential, Date.now())))
      return this.config.http.trustAgentHeader ? this.#named(request, identity) : identity;
    return this.#check(request, authorization);
  }

  #check(request: IncomingMessage, authorization: string | undefined): Identity | Promise<Identity> {
    const { trustAgentHeader } = this.config.http;
    if (this.isOpen) {
      const identity = trustAgentHeader ? this.#named(request, this.anonymous) : this.anonymous;
      if (!trustAgentHeader && this.options.reach === 'unknown' && !isLocal(request))
        throw this.#refuse(request, REMOTE_CLIENT);
      const isSandboxed = isFromSandbox(request.socket);
      return isSandboxed === false ? identity : this.#outside(request, identity, isSandboxed);
    }
    // A token decides alone if there is one: a wrong token is refused, whatever the certificate says.
    if (authorization === undefined && this.clients !== null) {
      const identity = this.#checkCertificate(request, this.clients);
      if (identity !== null) return identity;
    }
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined) {
      const isBearer = /^bearer\b/i.test(authorization ?? '');
      throw this.#refuse(request, TOKEN_NEEDED, isBearer ? 'The Authorization header contains no token' : undefined);
    }
    const found = this.tokens.find(token);
    if (found !== undefined) {
      if (isInvalid(found.credential, Date.now()))
        throw this.#refuse(request, 'The token has expired.', 'The token has expired');
      const { agent, credential, tasks } = found;
      const identity = { ...this.#identity(agent, agent, 'token', credential), tasks };
      this.known.set(authorization!, identity);
      if (found.isCommon) this.nameless.add(identity);
      return trustAgentHeader ? this.#named(request, identity) : identity;
    }
    if (this.issuers.length === 0 || !isJwt(token)) throw this.#refuse(request, TOKEN_UNKNOWN, 'The token is unknown');
    return this.#checkJwt(request, authorization!, token);
  }

  /** Null if the client has shown no certificate. */
  #checkCertificate(request: IncomingMessage, clients: ClientCertificates): Identity | null {
    const presented = presentedBy(request);
    if (presented.kind === 'none') return null;
    if (presented.kind === 'refused') {
      const reason = `The client certificate is not accepted (${presented.reason})`;
      throw this.#refuse(request, `${reason}.`, reason);
    }
    const { names, expires } = presented;
    const found = agentOf(names, clients);
    if (found === null) {
      const reason = 'The client certificate stands for no agent that is allowed here';
      this.#report(request, reason);
      throw new AccessRefused('forbidden', `${reason}.`, reason, this.#challenge());
    }
    if (expires <= Date.now())
      throw this.#refuse(request, 'The client certificate has expired.', 'The client certificate has expired');
    const principal = JSON.stringify(['certificate', found.name]);
    const credential = { expires, revocation: this.certificates };
    const identity = this.#identity(found.agent, principal, 'certificate', credential);
    this.certified.set(request.socket, identity);
    return identity;
  }

  async #outside(request: IncomingMessage, identity: Identity, isSandboxed: Promise<boolean>): Promise<Identity> {
    if (await isSandboxed) throw this.#refuse(request, SANDBOXED_CLIENT, 'The client is a sandboxed tool');
    return identity;
  }

  async #checkJwt(request: IncomingMessage, authorization: string, token: string): Promise<Identity> {
    let issuer: JwtIssuer | undefined;
    try {
      const claimed = claimedIssuer(token);
      issuer = this.issuers.find(({ config }) => config.issuer === claimed);
      if (issuer === undefined) throw new TokenRefused('invalid', 'The token is from another issuer');
      const { verify, revocation } = issuer;
      const { agent, principal, expires, claims, tasks } = await verify(token);
      if (revocation.isRevoked) throw new TokenRefused('invalid', 'The token is no longer valid here');
      const known = { ...this.#identity(agent, principal, 'jwt', { expires, revocation }), tasks };
      // Left out if no rule looks at them: tokens of one client then count as the same, whatever they say.
      const identity = looksAtClaims(this.config) ? { ...known, claims } : known;
      this.known.set(authorization, identity);
      if (this.config.servers.some(exchangesJwt)) this.gateway.vault.present(principal, token);
      return identity;
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      const { kind, description } = error;
      if (kind === 'invalid') throw this.#refuse(request, `${description}.`, description);
      this.#report(request, description);
      throw new AccessRefused('forbidden', `${description}.`, description, {
        ...this.#challenge(issuer === undefined ? this.issuers : [issuer]),
        ...(kind === 'scope' && { error: 'insufficient_scope', description }),
      });
    }
  }

  /** The identity of the agent that X-Agent-Id names, if the header may name one. Otherwise the given identity. */
  #named(request: IncomingMessage, identity: Identity): Identity {
    const name = request.headers['x-agent-id'];
    if (name === undefined || !(identity === this.anonymous || this.nameless.has(identity))) return identity;
    if (typeof name !== 'string' || !AGENT_NAME.test(name)) {
      this.#report(request, 'X-Agent-Id is malformed');
      throw new GatewayError(
        'request_invalid',
        'Send the header X-Agent-Id once, with at most 64 letters, digits and "_", ".", "@", ":", "-". The first must be a letter or digit.',
      );
    }
    // No agent name begins with "~", so a client with a token for that agent is a different principal.
    return name === identity.agent ? identity : this.#identity(name, `~${name}`, 'header', identity.credential);
  }

  requireAdmin(identity: Identity, request: IncomingMessage): void {
    if (identity.isAdmin || this.isOpen) return;
    this.#report(request, notAdmin(identity));
    throw new AccessRefused('forbidden', 'This is for admins only: http.admins names them.', 'not an admin', {
      metadata: this.#challenge().metadata,
    });
  }

  /** Applies a configuration, and the tokens that were last read. */
  apply(config: Config): void {
    this.config = config;
    this.issuers = this.#openIssuers();
    this.hadIssuer ||= hasIssuer(config);
    this.hadClients ||= hasClients(config);
    const clients = clientsOf(config);
    if (!isSameValue(clients, this.clients)) {
      this.certificates.isRevoked = true;
      this.certificates = { isRevoked: false };
      this.clients = clients;
    }
    this.certified = new WeakMap();
    this.tokens.rebuild();
    this.known.clear();
    const { revocation } = this.anonymous.credential;
    if (!this.isOpen) revocation.isRevoked = true;
    else if (revocation.isRevoked) this.anonymous = this.#anonymousIdentity();
    this.options.revoked();
  }

  close(): void {
    this.removeApplier();
    this.tokens.close();
  }

  /** Those of the configuration. An issuer that did not change keeps its keys; the tokens of the others are revoked. */
  #openIssuers(): JwtIssuer[] {
    const note = (message: string) => this.gateway.events.emit('note', { source: 'jwt', message });
    const opened = this.config.http.jwt.map((config): JwtIssuer => {
      const known = this.issuers.find((one) => isSameValue(one.config, config));
      if (known !== undefined) return known;
      const verify = createJwtVerifier(config, this.options.resource, note);
      return { config, verify, revocation: { isRevoked: false } };
    });
    for (const issuer of this.issuers) if (!opened.includes(issuer)) issuer.revocation.isRevoked = true;
    return opened;
  }

  #anonymousIdentity(): Identity {
    const credential = { expires: null, revocation: { isRevoked: false } };
    return this.#identity('anonymous', 'anonymous', 'nothing', credential);
  }

  #identity(agent: string, principal: string, via: Identity['via'], credential: Credential): Identity {
    const isAdmin = via !== 'header' && via !== 'nothing' && this.config.http.admins.includes(agent);
    return { agent, principal, via, isAdmin, isOperator: false, claims: null, tasks: null, credential };
  }

  #refuse(request: IncomingMessage, message: string, description?: string): AccessRefused {
    const reason = description ?? 'no token';
    this.#report(request, reason);
    return new AccessRefused('unauthorized', message, reason, {
      ...(description !== undefined && { error: 'invalid_token', description }),
      ...this.#challenge(),
    });
  }

  #challenge(issuers: readonly JwtIssuer[] = this.issuers) {
    if (this.issuers.length === 0) return { metadata: null };
    return { metadata: metadataUrl(this.options.resource()), scopes: scopesOf(issuers.map(({ config }) => config)) };
  }

  #report(request: IncomingMessage, reason: string): void {
    report(this.gateway, request, reason);
  }
}

/** Whether the server gets a token for each caller in exchange for the caller's JWT. Nobody keeps a JWT otherwise. */
function exchangesJwt({ launch }: Config['servers'][number]): boolean {
  return (
    launch.kind === 'http' &&
    launch.oauth !== undefined &&
    launch.oauth !== false &&
    launch.oauth.grant === 'token_exchange'
  );
}

/** Also one that nobody has trusted yet: then the door stays closed. */
function hasIssuer({ http, held }: Config): boolean {
  return http.jwt.length > 0 || (held?.issuers.length ?? 0) > 0;
}

function hasClients({ http }: Config): boolean {
  return (http.tls?.clients ?? null) !== null;
}

/** Whose client certificates are accepted. */
function clientsOf({ http, held }: Config): ClientCertificates | null {
  return held?.certificates === true ? null : (http.tls?.clients ?? null);
}

/** For a program that knows its users. */
export function programAuthenticator(gateway: Gateway, identify: Identify): Authenticator {
  return {
    identify(request) {
      const identity = identify(request);
      return identity instanceof Promise ? identity.then(requireValid) : requireValid(identity);
    },
    requireAdmin(identity, request) {
      if (identity.isAdmin) return;
      report(gateway, request, notAdmin(identity));
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
      'The identity has expired: the program that serves this door admitted it for a limited time.',
    );
  return identity;
}

function report({ events }: Gateway, { socket }: IncomingMessage, reason: string): void {
  events.emit('unauthorized', { reason, remote: socket.remoteAddress ?? 'unknown' });
}

function notAdmin({ agent }: Identity): string {
  return `the agent ${JSON.stringify(agent)} is not an admin`;
}

/** Whether a request came to a loopback address without passing a proxy. A Unix socket has no address. */
function isLocal({ headers, socket }: IncomingMessage): boolean {
  if (PROXY_HEADERS.some((name) => headers[name] !== undefined)) return false;
  const address = socket.localAddress ?? socket.remoteAddress;
  return address === undefined || isLoopback(address);
}

const PROXY_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip'];

const TOKEN_NEEDED =
  'A bearer token is needed: send "Authorization: Bearer TOKEN" with the value of BEARER_TOKEN, or with a token from toolgate agents.';
const REMOTE_CLIENT =
  "Without a configured credential, only programs on the gateway's own machine are admitted. Configure a credential, or pass identify to createHttpDoor.";
const SANDBOXED_CLIENT =
  'Tools in a sandbox are not admitted without a credential. Configure a token (toolgate agents add) for programs that may use this gateway.';
const TOKEN_UNKNOWN = 'The token is unknown: it was mistyped, revoked, or is for another gateway.';
