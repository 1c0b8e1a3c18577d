/** Logins to servers, begun in the page. The browser of the page is sent to the authorization server and returns to this machine. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { OAuthSettings } from '../config/oauth.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type Login, loginName, readLogin } from '../logins/record.ts';
import type { HttpLaunch } from '../sources/http.ts';
import { findKey, keyMissing } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import type { LoginRow, LoginsReport, StartedLoginReport } from './api-types.ts';
import { byOf, type PageSession } from './page-sessions.ts';

export interface PageLogins {
  list(): Promise<LoginsReport>;
  start(server: string, session: PageSession): Promise<StartedLoginReport>;
  end(server: string, session: PageSession): Promise<null>;
}

/** How long a person may take; `asked-login.ts` ends it. */
const PATIENCE = 5 * 60_000;

export function createLogins(gateway: Gateway, changed: () => void): PageLogins {
  const pending = new Map<string, StartedLoginReport>();
  const failures = new Map<string, string>();
  const store = () => openSecretStore(gateway.config.dataDir, gateway.config.vault);

  function remote(): ServerConfig[] {
    return gateway.config.servers.filter(({ launch, enabled }) => enabled && launch.kind === 'http');
  }

  function canLogIn({ launch, credentials }: ServerConfig): boolean {
    const { oauth, headers } = launch as HttpLaunch;
    const isFixed = Object.keys(headers).some((header) => header.toLowerCase() === 'authorization');
    return oauth !== false && !isFixed && (oauth?.grant ?? 'login') === 'login' && credentials !== 'agent';
  }

  function find(key: string): ServerConfig {
    const found = remote().find((one) => one.key === key);
    if (found === undefined)
      throw new GatewayError('path_unknown', `There is no server ${JSON.stringify(key.slice(0, 80))} with an address.`);
    return found;
  }

  async function start(key: string, session: PageSession): Promise<StartedLoginReport> {
    const config = find(key);
    if (!canLogIn(config))
      throw new GatewayError('usage', `Nobody logs in to "${key}": its configuration says how it gets its token.`);
    if ((await findKey(gateway.config.vault)) === null) throw keyMissing();
    const begun = pending.get(key);
    if (begun !== undefined) return begun;
    const launch = (await gateway.vault.fill(config)).launch as HttpLaunch;
    const settings: OAuthSettings = launch.oauth || { grant: 'login' };
    const [{ certificatesOf, probe }, { createGuard }, { beginLogin }] = await Promise.all([
      import('../logins/probe.ts'),
      import('../logins/guarded-fetch.ts'),
      import('../logins/asked-login.ts'),
    ]);
    const certificates = certificatesOf(launch);
    const { challenge } = await probe(launch, certificates).catch((error: unknown) => {
      throw new GatewayError(
        'source_unavailable',
        `Server "${key}" cannot be reached (${gateway.redact(messageOf(error))}).`,
      );
    });
    const guard = await createGuard(launch.url, certificates.ca === undefined ? undefined : [certificates.ca]);
    const name = loginName(key);
    const known = readLogin((await store().read()).logins.get(name), launch.url);
    const save = async (login: Login) => {
      await store().setLogin(name, JSON.stringify(login));
      await gateway.change({ secrets: true });
    };
    try {
      const { address, done } = await beginLogin(key, { url: launch.url, settings, guard }, challenge, known, save);
      const report = { url: address, expires: new Date(Date.now() + PATIENCE).toISOString() };
      pending.set(key, report);
      failures.delete(key);
      done
        .then(
          () => gateway.events.emit('admin', { act: 'logged_in', agent: '', detail: key, ...byOf(session) }),
          (error: unknown) => failures.set(key, gateway.redact(messageOf(error))),
        )
        .finally(() => {
          pending.delete(key);
          void guard.close();
          changed();
        });
      changed();
      return report;
    } catch (error) {
      await guard.close();
      const { grantProblem } = await import('../logins/grants.ts');
      if (error instanceof GatewayError && error.code !== 'source_broken') throw error;
      throw new GatewayError('source_unavailable', gateway.redact(`Server "${key}" ${grantProblem(error)}.`));
    }
  }

  return {
    start,
    async list() {
      const statuses = new Map(gateway.statuses().map((status) => [status.key, status]));
      const rows = remote().map((config): LoginRow => {
        const status = statuses.get(config.key);
        const login = gateway.vault.shownLogin(config);
        return {
          server: config.key,
          url: gateway.redact((config.launch as HttpLaunch).url),
          state: status?.state ?? 'closed',
          detail: status?.detail ?? '',
          canLogIn: canLogIn(config),
          login: login === null ? null : { who: login.who ?? null, issuer: login.issuer, expires: login.expires },
          pending: pending.get(config.key) ?? null,
          failure: failures.get(config.key) ?? null,
        };
      });
      const key = await findKey(gateway.config.vault).catch(() => null);
      return { servers: rows, unusable: key === null ? keyMissing().message : null };
    },
    async end(key, session) {
      const name = loginName(find(key).key);
      const text = (await store().read()).logins.get(name);
      if (text === undefined) throw new GatewayError('path_unknown', `Nobody is logged in to "${key}".`);
      const made = JSON.parse(text) as Login;
      const [{ revoke }, { createGuard }] = await Promise.all([
        import('../logins/grants.ts'),
        import('../logins/guarded-fetch.ts'),
      ]);
      const guard = await createGuard(made.url);
      await revoke(made, { settings: { grant: 'login' }, guard }).finally(() => guard.close());
      await store().setLogin(name, null);
      gateway.events.emit('admin', { act: 'logged_out', agent: '', detail: key, ...byOf(session) });
      await gateway.change({ secrets: true });
      changed();
      return null;
    },
  };
}
