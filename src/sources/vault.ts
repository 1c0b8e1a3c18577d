/**
 * The current secrets of servers. A server that refers to secrets gets their values when it is started, and not before;
 * nothing keeps the filled launch. Only such servers wait until the store has been read for the first time.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { withLock } from '../base/lock.ts';
import { withoutStop } from '../base/text.ts';
import type { Launch } from '../config/launch.ts';
import { fillLaunch, secretsIn } from '../config/launch-secrets.ts';
import type { VaultConfig } from '../config/secrets-key.ts';
import type { ServerConfig } from '../config/servers.ts';
import {
  type AgentLogin,
  agentLogins,
  type Login,
  loginName,
  readLogin,
  type ShownLogin,
  shownLogin,
} from '../logins/record.ts';
import { type Clean, createClean } from '../secrets/clean.ts';
import { loginValues, NO_SECRETS, type Secrets, secretsFor, valuesOf, withLogin } from '../secrets/payload.ts';
import { findKey } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import { createServerLogin, type LoginStore, type ServerLogin } from './server-login.ts';

/** JWTs can name any number of principals. Beyond this many, the oldest have to be exchanged again. */
const MOST_LOGINS = 4_096;

/** A server cannot start because a secret is not set. */
export class SecretMissing extends GatewayError {
  constructor(names: readonly string[], problem: string | null) {
    const waits = names.length === 1 ? 'waits for the secret' : 'waits for the secrets';
    const help =
      problem === null ? names.map((name) => `toolgate secrets set ${name}`).join('; ') : withoutStop(problem);
    super('source_unavailable', `${waits} ${names.join(', ')}: ${help}`);
  }
}

export interface FilledLaunch {
  readonly launch: Launch;
  /** Removes the secrets that the server was given from its messages; null if there are none to remove. */
  readonly clean: Clean | null;
}

/** Makes a one-time address on which this person can log in to the server. */
export type LoginPage = (server: string, agent: string, principal: string) => string;

/** The secrets that a gateway gives to its servers. */
export interface Vault {
  /**
   * Rejects with SecretMissing if a secret that the server needs is not set.
   * @internal
   */
  fill(config: ServerConfig): Promise<FilledLaunch>;
  /**
   * Changes if the server would get other values, or if the setting to redact them changes. Reveals nothing about the
   * values. Null while the secrets are not known yet.
   * @internal
   */
  stampOf(config: ServerConfig): string | null;
  /**
   * The login of a server over HTTP, of all callers or of one agent; null if it never has one.
   * @internal
   */
  loginFor(
    key: string,
    launch: Extract<Launch, { kind: 'http' }>,
    agent: string | null,
    principal?: string | null,
  ): ServerLogin | null;
  /**
   * A principal came in with this JWT. It is exchanged for tokens of servers, if some want that. In memory only.
   * @internal
   */
  present(principal: string, jwt: string): void;
  /**
   * From now on there is a page on which people log in; null: no longer.
   * @internal
   */
  offerPage(page: LoginPage | null): void;
  /**
   * Who is logged in to a server; null if nobody is.
   * @internal
   */
  shownLogin(config: ServerConfig): ShownLogin | null;
  /**
   * Who is logged in to a server with `credentials = "agent"`, besides that; null for any other server.
   * @internal
   */
  agentLogins(config: ServerConfig): readonly AgentLogin[] | null;
  /** Reads the store again. Resolves to null, or to what is wrong with it; then the secrets stay as they are. */
  reload(): Promise<string | null>;
  /** What was wrong with the store when it was last read; null if nothing. */
  readonly problem: string | null;
}

/** The vault as the gateway uses it. The gateway decides when servers get new secrets. */
export interface OpenVault extends Omit<Vault, 'reload'> {
  /** Resolves when the store has been read for the first time. */
  readonly opened: Promise<unknown>;
  /** Reads the store again, with these settings or the current ones. */
  reload(settings?: VaultConfig): Promise<string | null>;
}

export interface VaultOptions {
  readonly dataDir: string;
  /** The current settings. */
  vault(): VaultConfig;
  /** From now on these values must be redacted. */
  learn(values: readonly string[]): void;
}

export function createVault({ dataDir, vault, learn }: VaultOptions): OpenVault {
  let secrets: Secrets = NO_SECRETS;
  let problem: string | null = null;
  let isKnown = false;
  // Known to this process only, so that values cannot be guessed from a stamp.
  const stampKey = randomBytes(32);
  let store = openSecretStore(dataDir, vault());
  let openedWith = vault();

  async function read(settings: VaultConfig): Promise<string | null> {
    // The store is reused if possible, because it remembers its key.
    if (!isSame(settings, openedWith)) store = openSecretStore(dataDir, settings);
    openedWith = settings;
    try {
      const key = await findKey(settings).catch(() => null);
      if (key !== null && !key.isInsecure) learn([key.passphrase]);
      const found = await store.read();
      learn(valuesOf(found));
      secrets = found;
      problem = null;
    } catch (error) {
      problem = messageOf(error);
    }
    isKnown = true;
    return problem;
  }

  // Reads run one after another, so that the last one counts.
  const opened = read(vault());
  let last: Promise<string | null> = opened;

  /** A folder gets all secrets of its namespace, any other server those that it refers to. */
  function namesOf({ launch, namespace }: ServerConfig): readonly string[] {
    const names = secretsIn(launch);
    return launch.kind === 'folder' ? [...new Set([...names, ...secretsFor(secrets, namespace).keys()])] : names;
  }

  /** The redactor forgets what it learned first. New tokens must not push out the secrets in the store. */
  function learnMore(values: readonly string[]): void {
    learn([...valuesOf(secrets), ...values]);
  }

  /** Logins of this process only, which need no person. */
  const own = new BoundedMap<string, string>(MOST_LOGINS);
  let page: LoginPage | null = null;
  /** The last JWT of each principal. */
  const subjects = new BoundedMap<string, string>(MOST_LOGINS);
  const logins: LoginStore = {
    opened: () => last,
    read: (name) => own.get(name) ?? secrets.logins.get(name),
    async write(name, login, isKept) {
      const text = login === null ? null : JSON.stringify(login);
      if (text !== null) learnMore(loginValues(text));
      if (isKept) await store.setLogin(name, text);
      else if (text === null) own.delete(name);
      else own.set(name, text);
      if (isKept) secrets = withLogin(secrets, name, text);
    },
    alone: (work) =>
      withLock(join(dataDir, 'logins'), async () => {
        last = last.then(() => read(openedWith));
        await last;
        return work();
      }),
    page: (server, agent, principal) => page?.(server, agent, principal) ?? null,
    get hasPage() {
      return page !== null;
    },
    subject: (principal) => subjects.get(principal) ?? null,
    canKeep: async () => (await findKey(openedWith).catch(() => null)) !== null,
    get redactsResults() {
      return vault().redactResults;
    },
  };
  /** One for all connections of a server, so that one renewal serves all of them. */
  const byName = new BoundedMap<string, { readonly made: string; readonly login: ServerLogin | null }>(MOST_LOGINS);

  /** Read once for each state of the store: there may be thousands. */
  const shownAgents = new WeakMap<Secrets, Map<string, readonly AgentLogin[]>>();

  return {
    present(principal, jwt) {
      learnMore([jwt]);
      subjects.set(principal, jwt);
    },
    offerPage(next) {
      page = next;
    },
    loginFor(key, launch, agent, principal = null) {
      const name = JSON.stringify([key, agent, principal]);
      const made = JSON.stringify([launch, vault().redactResults]);
      const known = byName.get(name);
      if (known?.made === made) return known.login;
      const login = createServerLogin(key, launch, agent, principal, logins);
      byName.set(name, { made, login });
      return login;
    },
    shownLogin({ key, launch }) {
      if (launch.kind !== 'http') return null;
      const login = readLogin(logins.read(loginName(key)), launch.url);
      return login?.token === undefined ? null : shownLogin(login);
    },
    agentLogins({ key, launch, credentials }) {
      if (launch.kind !== 'http' || credentials !== 'agent') return null;
      const known = shownAgents.get(secrets) ?? new Map<string, readonly AgentLogin[]>();
      shownAgents.set(secrets, known);
      const name = JSON.stringify([key, launch.url]);
      const found = known.get(name) ?? agentLogins(secrets.logins, key, launch.url);
      known.set(name, found);
      return found;
    },
    async fill(config) {
      const { launch, namespace } = config;
      const needed = secretsIn(launch);
      if (launch.kind !== 'folder' && needed.length === 0) return { launch, clean: null };
      if (!isKnown) await last;
      const given = secretsFor(secrets, namespace);
      const missing = needed.filter((name) => !given.has(name));
      if (missing.length > 0) throw new SecretMissing(missing, problem);
      const filled = fillLaunch(launch, (name) => given.get(name));
      const values = namesOf(config).flatMap((name) => given.get(name) ?? []);
      return {
        launch: filled.kind === 'folder' ? withSecrets(filled, given) : filled,
        clean: vault().redactResults ? createClean(values) : null,
      };
    },
    stampOf(config) {
      const { launch } = config;
      const names = namesOf(config);
      if (names.length === 0 && launch.kind !== 'folder' && launch.kind !== 'http') return '';
      if (!isKnown) return null;
      // A renewed token is the same login.
      const text = launch.kind === 'http' ? secrets.logins.get(loginName(config.key)) : undefined;
      const login = text === undefined ? null : (JSON.parse(text) as Login).id;
      if (names.length === 0 && launch.kind !== 'folder' && login === null) return '';
      const given = secretsFor(secrets, config.namespace);
      const values = names.map((name) => [name, given.get(name) ?? null]);
      return createHmac('sha256', stampKey)
        .update(JSON.stringify([vault().redactResults, values, login]))
        .digest('hex');
    },
    opened,
    reload(settings = vault()) {
      last = last.then(() => read(settings));
      return last;
    },
    get problem() {
      return problem;
    },
  };
}

/** The configuration takes precedence over secrets, and secrets over what the folder itself declares. */
function withSecrets(launch: Extract<Launch, { kind: 'folder' }>, given: ReadonlyMap<string, string>): Launch {
  return { ...launch, defaults: {}, env: { ...launch.defaults, ...Object.fromEntries(given), ...launch.env } };
}

function isSame(a: VaultConfig, b: VaultConfig): boolean {
  return a.key() === b.key() && a.keyFile === b.keyFile && a.allowInsecure === b.allowInsecure;
}
