/**
 * The login that requests to one server are sent with. It is renewed before it expires, by one request for all calls. What
 * talks to authorization servers is loaded when that is needed: most servers never ask who we are.
 */
import { GatewayError } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import type { OAuthSettings } from '../config/oauth.ts';
import type { AskedLogin } from '../logins/asked-login.ts';
import { type LoginChallenge, readChallenge } from '../logins/challenge.ts';
import type { Prover } from '../logins/proof.ts';
import { type Login, loginName, personOf, readLogin, type ShownLogin, shownLogin } from '../logins/record.ts';
import type { GrantContext } from '../logins/token.ts';
import { type Clean, createClean } from '../secrets/clean.ts';
import { NoFault } from './tickets.ts';

/** Where logins are kept. */
export interface LoginStore {
  /** Resolves when the store has been read for the first time. */
  opened(): Promise<unknown>;
  read(name: string): string | undefined;
  /** Keeps it, for this process only or in the store. */
  write(name: string, login: Login | null, isKept: boolean): Promise<void>;
  /** Runs while no other process renews a login, with the store as it is now. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** The JWT that this principal came in with last; null if it came in with something else. */
  subject(principal: string): string | null;
  /** A one-time address on which this person can log in to the server; null if this gateway has no page. */
  page(server: string, agent: string, principal: string): string | null;
  readonly hasPage: boolean;
  /** Whether there is a key to keep a login with. */
  canKeep(): Promise<boolean>;
  /** Whether tokens are removed from the answers of the server. */
  readonly redactsResults: boolean;
}

type HttpTarget = Extract<Launch, { kind: 'http' }>;

/** A login that returns to an address of somebody else, who passes on what the browser brings. */
export interface OpenedLogin {
  /** What the person opens. */
  readonly address: string;
  /** What the browser has to bring back. */
  readonly state: string;
  finish(parameters: URLSearchParams): Promise<void>;
}

/** What a person is shown of their login to a server. */
export interface OwnLogin extends ShownLogin {
  /** False if it is that of the agent, which others use too. */
  readonly isOwn: boolean;
  /** Scopes that a call needed in addition. */
  readonly wanted: readonly string[];
}

/** How long a person may take who was sent to the page. */
const PATIENCE = 5 * 60_000;

/** A token is renewed this long before it expires, or a fifth of its life before if that is less. */
const AHEAD = 60_000;
const ANY_GRANT: OAuthSettings = { grant: 'login' };

/** Whether the JWT of each agent is exchanged for a token. */
function exchangesTokens({ oauth }: HttpTarget): boolean {
  return oauth !== undefined && oauth !== false && oauth.grant === 'token_exchange';
}

/** The names that a login can have, the best first. */
function namesOf(key: string, launch: HttpTarget, agent: string | null, principal: string | null): readonly string[] {
  if (agent === null) return [loginName(key)];
  // Several people may use one agent. A token that was given in exchange is of one of them.
  if (exchangesTokens(launch)) return [loginName(key, `${principal}`)];
  const person = personOf(agent, principal ?? agent);
  return person === agent ? [loginName(key, agent)] : [loginName(key, person), loginName(key, agent)];
}

/** Null for a server that gets its token in another way, or none. */
export function createServerLogin(
  key: string,
  launch: HttpTarget,
  agent: string | null,
  principal: string | null,
  store: LoginStore,
): ServerLogin | null {
  const hasHeader = Object.keys(launch.headers).some((name) => name.toLowerCase() === 'authorization');
  return launch.oauth === false || hasHeader ? null : new ServerLogin(key, launch, agent, principal, store);
}

export class ServerLogin {
  /** The name of the server. */
  readonly key: string;
  readonly #launch: HttpTarget;
  readonly #agent: string | null;
  /** Whose JWT is exchanged; null if Toolgate asks for itself. */
  readonly #principal: string | null;
  readonly #principalOrAgent: string;
  /** Calls that wait until the person has logged in on the page. */
  readonly #waiting = new Set<() => void>();
  /** A login of the person's own counts before that of the agent. */
  readonly #names: readonly string[];
  /** The one that is used. */
  #name: string;
  readonly #store: LoginStore;
  /** As it is in the store. What follows was made from it. */
  #text: string | undefined;
  #login: Login | null = null;
  #header: string | null = null;
  #clean: Clean | null = null;
  #renewing: Promise<void> | null = null;
  #asked: Promise<AskedLogin> | null = null;
  /** The last challenge: it says where the server describes itself. */
  #challenge: LoginChallenge | null = null;
  /** What proofs have to repeat, as the server said last. */
  nonce: string | null = null;
  #prove: Promise<Prover> | null = null;

  constructor(key: string, launch: HttpTarget, agent: string | null, principal: string | null, store: LoginStore) {
    this.key = key;
    this.#launch = launch;
    this.#agent = agent;
    this.#principal = exchangesTokens(launch) && agent !== null ? principal : null;
    this.#principalOrAgent = principal ?? agent ?? '';
    this.#names = namesOf(key, launch, agent, principal);
    this.#name = this.#names[0]!;
    this.#store = store;
  }

  get #settings(): OAuthSettings {
    return this.#launch.oauth || ANY_GRANT;
  }

  #look(): Login | null {
    let name = this.#names[0]!;
    let text = this.#store.read(name);
    if (text === undefined && this.#names.length > 1) {
      name = this.#names[1]!;
      text = this.#store.read(name);
    }
    if (text === this.#text) return this.#login;
    this.#name = name;
    this.#text = text;
    this.#login = readLogin(text, this.#launch.url);
    const { token, isDpop, refreshToken } = this.#login ?? {};
    this.#header = token === undefined ? null : `${isDpop ? 'DPoP' : 'Bearer'} ${token}`;
    const values = [token, refreshToken].filter((value) => value !== undefined);
    this.#clean = this.#store.redactsResults ? createClean(values) : null;
    this.#prove = null;
    return this.#login;
  }

  /** The header `Authorization`; null while there is no token. */
  get header(): string | null {
    this.#look();
    return this.#header;
  }

  /** Removes the tokens from a message of the server; null if there is none. */
  get clean(): Clean | null {
    return this.#clean;
  }

  /** Whether each request needs a proof of its own. */
  get isBound(): boolean {
    return this.#login?.isDpop === true;
  }

  /** Null if requests can be sent. Otherwise resolves when they can; if the token could not be renewed, they are refused. */
  settle(): Promise<void> | null {
    const login = this.#look();
    if (login?.expires === undefined) return null;
    if (login.refreshToken === undefined && this.#settings.grant === 'login') return null;
    const left = login.expires - Date.now();
    if (left > Math.min(AHEAD, (login.expires - login.at) / 5)) return null;
    const renewed = this.#renew(login, null).catch(() => {});
    return left > 0 ? null : renewed;
  }

  /** Whether a refusal is about the login. */
  concerns(status: number, header: string): boolean {
    if (status === 403) return readChallenge(header)?.error === 'insufficient_scope';
    return this.#header !== null || this.#launch.oauth !== undefined || readChallenge(header) !== null;
  }

  /**
   * The server refused a request that was sent with this header. Resolves if the request can be sent again, and rejects
   * with what a person has to do.
   */
  async refused(used: string | null, status: number, header: string, nonce: string | null): Promise<void> {
    const challenge = readChallenge(header);
    this.#challenge = challenge ?? this.#challenge;
    if (nonce !== null) this.nonce = nonce;
    if (challenge?.error === 'use_dpop_nonce' && nonce !== null) return;
    await this.#store.opened();
    // Somebody has logged in meanwhile, or another call has renewed the token.
    if (this.header !== null && this.header !== used) return;
    const login = this.#login;
    if (this.#settings.grant !== 'login') return this.#renew(login, status === 403 ? (challenge?.scopes ?? []) : null);
    if (status === 403) throw await this.#stepUp(login, challenge?.scopes ?? []);
    if (login?.refreshToken === undefined) throw this.#missing();
    await this.#renew(login, null);
  }

  /** The call needs more than the login may do. */
  async #stepUp(login: Login | null, scopes: readonly string[]): Promise<GatewayError> {
    const missing = scopes.filter((scope) => login?.scopes.includes(scope) !== true);
    if (login === null || missing.length === 0)
      return this.#error(
        `refuses this: the login is not allowed to do it${scopes.length === 0 ? '' : ` (${scopes.join(' ')})`}. Log in as somebody who is: ${this.command}`,
      );
    const wanted = [...new Set([...(login.wanted ?? []), ...missing])];
    if (wanted.length !== (login.wanted ?? []).length) await this.#store.write(this.#name, { ...login, wanted }, true);
    return this.#error(
      `needs a login with more rights for this (${missing.join(' ')}). Run ${this.command}, then try again`,
      true,
    );
  }

  /** A login in a browser, for callers that can be sent there; the same one for all of them. */
  begin(): Promise<AskedLogin> {
    this.#asked ??= this.#begin().catch((error: unknown) => {
      this.#asked = null;
      throw error;
    });
    return this.#asked;
  }

  async #begin(): Promise<AskedLogin> {
    // Nobody should log in for nothing. The command makes a key.
    if (!(await this.#store.canKeep())) throw this.#missing();
    const page = this.#agent === null ? null : this.#store.page(this.key, this.#agent, this.#principalOrAgent);
    if (page !== null) return { address: page, done: this.#whenLoggedIn() };
    const [{ beginLogin }, { createGuard }, { grantProblem }] = await Promise.all([
      import('../logins/asked-login.ts'),
      import('../logins/guarded-fetch.ts'),
      import('../logins/grants.ts'),
    ]);
    const guard = await createGuard(this.#launch.url, await this.#authorities());
    const context: GrantContext = { url: this.#launch.url, settings: this.#settings, guard };
    // The one who is asked logs in for nobody else.
    const save = (login: Login) => this.#store.write(this.#names[0]!, login, true);
    const failed = (error: unknown) => {
      void guard.close();
      return error instanceof GatewayError && error.code !== 'source_broken'
        ? error
        : this.#failed(grantProblem(error));
    };
    try {
      const { address, done } = await beginLogin(this.key, context, this.#challenge, this.#look(), save);
      const over = done.then(
        () => {
          this.#asked = null;
          void guard.close();
        },
        (error: unknown) => {
          this.#asked = null;
          throw failed(error);
        },
      );
      over.catch(() => {});
      return { address, done: over };
    } catch (error) {
      throw failed(error);
    }
  }

  /** On a gateway for many, the browser is on another machine and cannot return to a port here. */
  #whenLoggedIn(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const over = () => {
        this.#asked = null;
        this.#waiting.delete(done);
        clearTimeout(timer);
      };
      const done = () => {
        over();
        resolve();
      };
      const timer = setTimeout(() => {
        over();
        reject(this.#missing());
      }, PATIENCE);
      timer.unref();
      this.#waiting.add(done);
    });
  }

  /** Who is logged in; null if nobody is. */
  async shown(): Promise<OwnLogin | null> {
    await this.#store.opened();
    const login = this.#look();
    if (login?.token === undefined) return null;
    return { ...shownLogin(login), isOwn: this.#name === this.#names[0], wanted: login.wanted ?? [] };
  }

  /** Whether somebody can log in, rather than a token being obtained without a person. */
  get isForPeople(): boolean {
    return this.#settings.grant === 'login';
  }

  /** Whether people can log in on a page of this gateway. */
  get hasPage(): boolean {
    return this.#agent !== null && this.#store.hasPage;
  }

  /** Begins a login whose browser returns to `redirect`. */
  async open(redirect: string): Promise<OpenedLogin> {
    const [{ certificatesOf, probe }, { createGuard }, { startLogin, grantProblem }] = await Promise.all([
      import('../logins/probe.ts'),
      import('../logins/guarded-fetch.ts'),
      import('../logins/grants.ts'),
    ]);
    if (!(await this.#store.canKeep())) throw this.#failed('cannot be logged in to, because this gateway has no key');
    const guard = await createGuard(this.#launch.url, await this.#authorities());
    const fail = (error: unknown): never => {
      void guard.close();
      throw error instanceof GatewayError && error.code !== 'source_broken' ? error : this.#failed(grantProblem(error));
    };
    try {
      this.#challenge ??= (await probe(this.#launch, certificatesOf(this.#launch))).challenge;
      const context: GrantContext = { url: this.#launch.url, settings: this.#settings, guard };
      const known = readLogin(this.#store.read(this.#names[0]!), this.#launch.url);
      const { address, state, finish } = await startLogin(context, this.#challenge, known, redirect);
      return {
        address,
        state,
        finish: async (parameters) => {
          const login = await finish(parameters).catch(fail);
          await this.#store.write(this.#names[0]!, login, true);
          void guard.close();
          for (const done of [...this.#waiting]) done();
        },
      };
    } catch (error) {
      return fail(error);
    }
  }

  /** Ends the person's own login, here and at the authorization server. False if there was none. */
  async end(): Promise<boolean> {
    await this.#store.opened();
    const name = this.#names[0]!;
    const login = readLogin(this.#store.read(name), this.#launch.url);
    if (login === null) return false;
    const [{ revoke }, { createGuard }] = await Promise.all([
      import('../logins/grants.ts'),
      import('../logins/guarded-fetch.ts'),
    ]);
    const guard = await createGuard(this.#launch.url, await this.#authorities());
    await revoke(login, { settings: this.#settings, guard }).finally(() => guard.close());
    await this.#store.write(name, null, true);
    return true;
  }

  /** What a person types to log in. */
  get command(): string {
    const name = /^[\w.-]+$/.test(this.key) ? this.key : `'${this.key}'`;
    return `toolgate login ${name}${this.#agent === null ? '' : ` --agent ${this.#agent}`}`;
  }

  #missing(): GatewayError {
    return new LoginMissing(this.key, this.command);
  }

  #error(text: string, isStepUp = false): GatewayError {
    const details = { status: 403, ...(isStepUp && { helps: 'login' }) };
    return new NoFault('source_unavailable', `Server "${this.key}" ${text}.`, { details });
  }

  /** One renewal at a time; all calls wait for the same one. `wanted`: scopes that the token lacks. */
  #renew(login: Login | null, wanted: readonly string[] | null): Promise<void> {
    this.#renewing ??= this.#renewNow(login, wanted).finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #renewNow(login: Login | null, wanted: readonly string[] | null): Promise<void> {
    const [grants, { createGuard }] = await Promise.all([
      import('../logins/grants.ts'),
      import('../logins/guarded-fetch.ts'),
    ]);
    const guard = await createGuard(this.#launch.url, await this.#authorities());
    const context: GrantContext = { url: this.#launch.url, settings: this.#settings, guard };
    const { isOver, grantProblem } = grants;
    try {
      if (this.#settings.grant !== 'login') {
        const known = login === null || wanted === null ? login : { ...login, wanted };
        const { obtain } = await import('../logins/unattended.ts');
        const made = await obtain(context, this.#challenge, known, this.#subject());
        await this.#store.write(this.#name, made, false);
      } else await this.#store.alone(() => this.#refresh(login, context, grants));
    } catch (error) {
      if (error instanceof GatewayError && error.code !== 'source_broken') throw error;
      if (login !== null && isOver(error) && this.#settings.grant === 'login') {
        const { token: _, refreshToken: _old, ...over } = login;
        await this.#store.write(this.#name, over, true);
        throw this.#missing();
      }
      throw this.#failed(grantProblem(error));
    } finally {
      void guard.close();
    }
  }

  /** The JWT to exchange; null if the token is for Toolgate itself. */
  #subject(): string | null {
    if (!exchangesTokens(this.#launch) || this.#agent === null) return null;
    const token = this.#principal === null ? null : this.#store.subject(this.#principal);
    if (token !== null) return token;
    throw new NoFault(
      'source_unavailable',
      `Server "${this.key}" is used with the JWT of each agent (oauth.grant is "token_exchange"), and "${this.#agent}" did not come in with one. Connect with a token of the identity provider.`,
      { details: { status: 401 } },
    );
  }

  async #refresh(
    login: Login | null,
    context: GrantContext,
    { refresh }: typeof import('../logins/grants.ts'),
  ): Promise<void> {
    const now = this.#look();
    // Another process was first.
    if (now?.token !== login?.token && now?.token !== undefined) return;
    if (now?.refreshToken === undefined) throw this.#missing();
    await this.#store.write(this.#name, await refresh(now, context), true);
  }

  #failed(problem: string): GatewayError {
    return new NoFault('source_unavailable', `Server "${this.key}" ${problem}.`, { details: { status: 401 } });
  }

  async #authorities(): Promise<string[] | undefined> {
    const ca = this.#launch.tls?.ca;
    if (ca == null) return undefined;
    const { readAuthorities } = await import('../base/certificates.ts');
    return [readAuthorities(ca, 'tls.ca')];
  }

  /** The headers that prove that the token is ours, for one request. */
  async proof(method: string, url: string = this.#launch.url): Promise<readonly string[]> {
    const login = this.#look();
    this.#prove ??= import('../logins/proof.ts').then(({ createProver }) => createProver(login!));
    return ['dpop', await (await this.#prove)(method, url, this.nonce)];
  }
}

/** Nobody is logged in, and somebody has to be. */
export class LoginMissing extends NoFault {
  constructor(key: string, command: string) {
    super('source_unavailable', `Server "${key}" needs a login. Run ${command}, then try again.`, {
      details: { status: 401, login: command },
    });
  }
}

/** Whether another login would help. */
export function helpsLogin(error: unknown): boolean {
  return loginReason(error) !== null || (error instanceof GatewayError && error.details.helps === 'login');
}

/** What is said about a server that needs a login; null for any other failure. */
export function loginReason(error: unknown): string | null {
  const login = error instanceof GatewayError ? error.details.login : undefined;
  return typeof login === 'string' ? `waits for a login: ${login}` : null;
}
