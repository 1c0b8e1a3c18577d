/** What is kept of a login: whom it is with, the tokens, and the client that they were given to. */
import { isObject } from '../base/objects.ts';

/** The client that an authorization server knows us as. */
export type RegisteredClient = {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method?: string;
};

export interface Login {
  /** Another one for every time that somebody logs in. */
  readonly id: string;
  /** The address of the server that it is for. The token is sent nowhere else. */
  readonly url: string;
  /** Credentials are never used with another authorization server. */
  readonly issuer: string;
  /** The server as it names itself to the authorization server; null if it does not. */
  readonly resource: string | null;
  /** The metadata of the authorization server. */
  readonly server: Readonly<Record<string, unknown>>;
  readonly client: RegisteredClient;
  /** The address that the browser returns to, which the client is registered with. */
  readonly redirect: string | null;
  /** Absent if a new login is needed. */
  readonly token?: string;
  readonly isDpop?: true;
  readonly refreshToken?: string;
  /** Milliseconds since 1970; absent if the authorization server does not say. */
  readonly expires?: number;
  /** When the token was obtained. */
  readonly at: number;
  readonly scopes: readonly string[];
  /** Scopes that a call needed in addition. The next login asks for them. */
  readonly wanted?: readonly string[];
  /** Who logged in, as the authorization server says. */
  readonly who?: string;
  /** The key that the token is bound to. */
  readonly key?: Readonly<Record<string, unknown>>;
}

/** The name of a login in the store: of a server, or of one agent at that server. */
export function loginName(server: string, agent: string | null = null): string {
  return JSON.stringify(agent === null ? [server] : [server, agent]);
}

/**
 * Whose login it is, if somebody logs in for themselves: the person in a JWT or a certificate, whichever client they use;
 * otherwise the agent. No agent's name begins with a bracket.
 */
export function personOf(agent: string, principal: string): string {
  if (!principal.startsWith('[')) return agent;
  const parts = JSON.parse(principal) as string[];
  // A JWT without a subject is of a client.
  return parts[1] === '' ? principal : JSON.stringify(parts.slice(0, 2));
}

/** Null if it is not for this address any more. */
export function readLogin(text: string | undefined, url: string): Login | null {
  if (text === undefined) return null;
  const value: unknown = JSON.parse(text);
  return isObject(value) && value.url === url && typeof value.issuer === 'string' ? (value as unknown as Login) : null;
}

/** What people are shown of a login. */
export interface ShownLogin {
  /** As the authorization server says; absent if it does not. */
  readonly who?: string;
  readonly issuer: string;
  /** When the token expires, as ISO 8601; null if nobody knows. */
  readonly expires: string | null;
  /** Whether it is renewed by itself. */
  readonly renews: boolean;
  readonly scopes: readonly string[];
}

export function shownLogin({ who, issuer, expires, refreshToken, scopes }: Login): ShownLogin {
  return {
    ...(who !== undefined && { who }),
    issuer,
    expires: expires === undefined ? null : new Date(expires).toISOString(),
    renews: refreshToken !== undefined,
    scopes,
  };
}

/** The login of one agent, or of one person who uses an agent. */
export interface AgentLogin extends ShownLogin {
  /** The agent; for a person in a JWT or a certificate, their name there. */
  readonly agent: string;
}

/** The logins of agents to this server that still have a token, by agent. */
export function agentLogins(logins: ReadonlyMap<string, string>, server: string, url: string): AgentLogin[] {
  const found: AgentLogin[] = [];
  for (const [name, text] of logins) {
    const [key, agent] = JSON.parse(name) as [string, string?];
    const login = key === server && agent !== undefined ? readLogin(text, url) : null;
    if (login?.token !== undefined) found.push({ agent: personName(agent!), ...shownLogin(login) });
  }
  return found.sort((a, b) => (a.agent < b.agent ? -1 : 1));
}

/** The other way around than `personOf`. */
function personName(agent: string): string {
  return agent.startsWith('[') ? ((JSON.parse(agent) as string[])[1] ?? agent) : agent;
}
