/** `toolgate login` and `toolgate logout`: who Toolgate is to servers that ask. No server is started. */
import { GatewayError, messageOf } from '../base/errors.ts';
import { didYouMean, quotedList } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { OAuthSettings } from '../config/oauth.ts';
import { toMilliseconds } from '../config/units.ts';
import type { Callback, CallbackPage } from '../logins/callback.ts';
import { type Login, loginName, readLogin, shownLogin } from '../logins/record.ts';
import type { GrantContext } from '../logins/token.ts';
import type { HttpLaunch } from '../sources/http.ts';
import { createVault } from '../sources/vault.ts';
import { openSecretStore, type SecretStore } from '../store/secrets.ts';
import { readUrl } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { openBrowser } from './open-browser.ts';
import { loadOptions, type Options } from './options.ts';
import { confirm, hasTerminal } from './prompts.ts';
import { loginText } from './server-rows.ts';
import { note, paint, plain, print, printResult } from './terminal.ts';
import { openTrust } from './trust.ts';
import { withKey } from './user-key.ts';

/** A server that can be logged in to, with its secrets filled in. */
interface LoginTarget {
  readonly key: string;
  readonly launch: HttpLaunch;
  readonly settings: OAuthSettings;
  /** The name of the login in the store. */
  readonly name: string;
}

const PATIENCE = '5m';

export async function login([wanted]: readonly string[], options: Options, io: CommandIo): Promise<number> {
  if (options.url !== undefined) return onPage(wanted, options.url, options, io);
  const config = await readConfig(options, io);
  const targets = await targetsOf(config, wanted, options);
  const known = (await openSecretStore(config.dataDir, config.vault).read()).logins;
  // Made when the first login is due, so that nothing is changed if there is none.
  let opened: Promise<SecretStore> | null = null;
  const store = () => {
    opened ??= withKey(config, options, io).then((vault) => openSecretStore(config.dataDir, vault));
    return opened;
  };
  const done: object[] = [];
  for (const target of targets) {
    const before = readLogin(known.get(target.name), target.launch.url);
    const made = await logInTo(target, before, wanted !== undefined, store, options, io);
    if (made !== null) done.push({ server: target.key, ...shownLogin(made) });
  }
  if (done.length === 0 && wanted === undefined && options.json !== true)
    return print('No server asks for a login. To log in again, name one: toolgate login SERVER', io);
  return options.json === true ? printResult(options, done, '', io) : 0;
}

/** A gateway that runs elsewhere has a page for it, which a link opens once. */
async function onPage(wanted: string | undefined, at: string, options: Options, io: CommandIo): Promise<number> {
  if (wanted !== undefined || options.agent !== undefined || options.device === true)
    throw new GatewayError('usage', 'With --url, the page of the gateway shows your servers: leave out the rest.');
  const place = readUrl('--url', at);
  place.pathname = `${place.pathname.replace(/\/mcp\/?$|\/$/, '')}/login/link`;
  const { ask } = await import('./remote.ts');
  const { credential } = await import('./connect.ts');
  const answer = await ask(place, credential(io), {});
  const body = (await answer.json().catch(() => null)) as { url?: unknown; error?: { message?: unknown } } | null;
  if (typeof body?.url !== 'string') {
    const why = answer.status === 401 ? 'Set TOOLGATE_TOKEN to your own token.' : (body?.error?.message ?? '');
    throw new GatewayError('usage', `${place.origin} gives no link to log in (HTTP status ${answer.status}). ${why}`);
  }
  if (options.json === true) return printResult(options, body, '', io);
  const mayOpen = options['no-browser'] !== true && openBrowser(body.url, io);
  const what = mayOpen ? 'A browser opens your logins' : 'Open this address to see your logins';
  io.stderr.write(`${what}. The link works once, for five minutes:\n  ${plain(body.url)}\n`);
  return 0;
}

async function readConfig(options: Options, io: CommandIo): Promise<Config> {
  const loaded = await loadConfig(loadOptions(options, io));
  const trust = openTrust(options, io);
  await trust.ask(loaded);
  return trust.hold(loaded);
}

/** The server of this name, or all with an address. */
async function targetsOf(config: Config, wanted: string | undefined, { agent }: Options): Promise<LoginTarget[]> {
  const remote = config.servers.filter(({ launch }) => launch.kind === 'http');
  const meant = remote.filter(({ key, enabled }) => (wanted === undefined ? enabled : key === wanted));
  if (wanted !== undefined && meant.length === 0) {
    const other = config.servers.find(({ key }) => key === wanted);
    const keys = remote.map(({ key }) => key);
    throw new GatewayError(
      'usage',
      other === undefined
        ? `There is no server "${wanted}".${didYouMean(wanted, keys)}${keys.length === 0 ? ' No server has a url.' : ` Choose from ${quotedList(keys)}.`}`
        : `Server "${wanted}" is started here, and nobody logs in to it. Its keys go into the secrets: toolgate secrets set NAME`,
    );
  }
  const shared = meant.find(({ credentials }) => credentials !== 'agent');
  if (agent !== undefined && shared !== undefined)
    throw new GatewayError(
      'usage',
      `All agents share the login of "${shared.key}". To give each its own, set credentials = "agent" in its entry.`,
    );
  const vault = createVault({ dataDir: config.dataDir, vault: () => config.vault, learn: () => {} });
  return Promise.all(
    meant.map(async (server) => {
      const { launch } = await vault.fill(server);
      const { oauth } = launch as HttpLaunch;
      const settings: OAuthSettings = oauth || { grant: 'login' };
      return { key: server.key, launch: launch as HttpLaunch, settings, name: loginName(server.key, agent ?? null) };
    }),
  );
}

/** Null if the server asks nobody who they are, and it was not named. */
async function logInTo(
  { key, launch, settings, name }: LoginTarget,
  before: Login | null,
  isNamed: boolean,
  openStore: () => Promise<SecretStore>,
  options: Options,
  io: CommandIo,
): Promise<Login | null> {
  const about = (text: string) => new GatewayError('usage', `Server "${key}" ${text}.`);
  const isFixed = Object.keys(launch.headers).some((header) => header.toLowerCase() === 'authorization');
  if (launch.oauth === false || isFixed || settings.grant !== 'login') {
    if (!isNamed) return null;
    if (isFixed) throw about('has the header Authorization in its configuration. Remove it to log in');
    if (launch.oauth === false) throw about('has oauth = false in its configuration. Remove it to log in');
    throw about(`gets its tokens by itself (oauth.grant is "${settings.grant}"), so nobody logs in to it`);
  }
  if (!isNamed && before?.token !== undefined && before.wanted === undefined) return null;
  const [{ certificatesOf, probe }, { createGuard }, grants] = await Promise.all([
    import('../logins/probe.ts'),
    import('../logins/guarded-fetch.ts'),
    import('../logins/grants.ts'),
  ]);
  const { isRefused, challenge } = await probe(launch, certificatesOf(launch)).catch((error: unknown) => {
    if (isNamed) throw about(`cannot be reached (${messageOf(error)})`);
    return { isRefused: false, challenge: null };
  });
  if (!isNamed && !isRefused) return null;
  const authorities = certificatesOf(launch).ca;
  const guard = await createGuard(launch.url, authorities === undefined ? undefined : [authorities]);
  const context: GrantContext = { url: launch.url, settings, guard };
  try {
    const store = await openStore();
    const made =
      options.device === true
        ? await atDevice(
            key,
            (redirect, over) => grants.startDeviceLogin(context, challenge, before, redirect, over),
            before,
            options,
            io,
          )
        : await inBrowser(
            key,
            (redirect) => grants.startLogin(context, challenge, before, redirect),
            before,
            settings,
            {
              options,
              io,
              problem: grants.grantProblem,
            },
          );
    await store.setLogin(name, JSON.stringify(made));
    if (options.json !== true)
      print(`${paint('green', '✓', io)} ${plain(`${key}: ${loginText(shownLogin(made))}`)}.`, io);
    return made;
  } catch (error) {
    if (error instanceof GatewayError && error.code !== 'source_broken') throw error;
    throw about(grants.grantProblem(error));
  } finally {
    await guard.close();
  }
}

type StartLogin = typeof import('../logins/grants.ts').startLogin;
type StartDeviceLogin = typeof import('../logins/grants.ts').startDeviceLogin;

async function inBrowser(
  key: string,
  start: (redirect: string) => ReturnType<StartLogin>,
  before: Login | null,
  { callbackPort }: OAuthSettings,
  { options, io, problem }: { options: Options; io: CommandIo; problem(error: unknown): string },
): Promise<Login> {
  const [{ openCallback }, { portOf }] = await Promise.all([
    import('../logins/callback.ts'),
    import('../logins/asked-login.ts'),
  ]);
  const port = callbackPort ?? portOf(before);
  const callback = await openCallback(port, callbackPort === undefined);
  const end = endOf(key, options, io);
  try {
    const started = await Promise.race([start(callback.redirect), end.reached]);
    const returned = whenReturned(key, started, callback, problem);
    const pasted = whenPasted(started, io);
    const mayOpen = options['no-browser'] !== true && openBrowser(started.address, io);
    const what = mayOpen ? 'A browser opens to log in to' : 'Open this address to log in to';
    io.stderr.write(`${what} ${plain(key)}:\n  ${plain(started.address)}\n`);
    if (hasTerminal(io)) note('If the browser is on another machine, paste the address here that it ends up at.', io);
    return await Promise.race([returned, pasted.done, end.reached]).finally(pasted.stop);
  } finally {
    end.stop();
    await callback.close();
  }
}

/** Nobody has to wait for a person for ever: rejects if they take too long, or stop the command. */
function endOf(key: string, options: Options, io: CommandIo): { readonly reached: Promise<never>; stop(): void } {
  const patience = patienceOf(options);
  let stop = () => {};
  const reached = new Promise<never>((_, reject) => {
    const text = `Nobody logged in to "${key}" in time. Run toolgate login ${key} again.`;
    const timer = setTimeout(() => reject(new GatewayError('usage', text)), patience);
    stop = () => clearTimeout(timer);
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      io.once(signal, () => reject(new GatewayError('cancelled', 'The login was stopped. Nothing was changed.')));
  });
  // It may come before anybody waits for it.
  reached.catch(() => {});
  return { reached, stop };
}

function patienceOf({ timeout = PATIENCE }: Options): number {
  const ms = /^\d+(\.\d+)?(ms|s|m|h)$/.test(timeout) ? toMilliseconds(timeout) : Number.NaN;
  if (!(ms > 0)) throw new GatewayError('usage', `--timeout ${timeout} is not a time such as 90s or 5m.`);
  return ms;
}

/** Resolves when the browser has returned with a code, and the code was exchanged. */
function whenReturned(
  key: string,
  started: Awaited<ReturnType<StartLogin>>,
  callback: Callback,
  problem: (error: unknown) => string,
): Promise<Login> {
  return new Promise((resolve, reject) => {
    let hasReturned = false;
    callback.handle = async (parameters): Promise<CallbackPage> => {
      // A page on the internet could send a browser here, with a code of its own.
      if (parameters.get('state') !== started.state)
        return { title: 'Another login', text: 'This is not the login that was started here.', isFailure: true };
      if (hasReturned)
        return { title: 'Done', text: 'This login is over. You can close this window.', isFailure: false };
      hasReturned = true;
      try {
        resolve(await started.finish(parameters));
        return {
          title: 'Logged in',
          text: `Toolgate can use ${key} now. You can close this window.`,
          isFailure: false,
        };
      } catch (error) {
        reject(error);
        return { title: 'Not logged in', text: `Server "${key}" ${problem(error)}.`, isFailure: true };
      }
    };
  });
}

/** The address that a browser on another machine ended up at, typed by the person. */
function whenPasted(
  started: Awaited<ReturnType<StartLogin>>,
  io: CommandIo,
): { readonly done: Promise<Login>; stop(): void } {
  if (!hasTerminal(io)) return { done: new Promise(() => {}), stop() {} };
  let stop = () => {};
  const done = new Promise<Login>((resolve, reject) => {
    let line = '';
    const hear = (chunk: Buffer) => {
      line += chunk.toString();
      if (!line.includes('\n')) return;
      const address = line.trim();
      line = '';
      if (address === '') return;
      const parameters = URL.canParse(address) ? new URL(address).searchParams : null;
      if (parameters?.get('state') === started.state) started.finish(parameters).then(resolve, reject);
      else
        note('This is not where this login ends. Paste the whole address that the browser shows after you agreed.', io);
    };
    io.stdin.on('data', hear);
    stop = () => {
      io.stdin.off('data', hear);
      io.stdin.pause();
    };
  });
  return { done, stop: () => stop() };
}

async function atDevice(
  key: string,
  start: (redirect: string, over: AbortSignal) => ReturnType<StartDeviceLogin>,
  before: Login | null,
  options: Options,
  io: CommandIo,
): Promise<Login> {
  const end = endOf(key, options, io);
  const over = new AbortController();
  // Nothing returns there, but a client is registered with an address.
  const redirect = before?.redirect ?? 'http://127.0.0.1/callback';
  const started = start(redirect, over.signal).then(({ address, code, complete, done }) => {
    io.stderr.write(`Open this address on any device to log in to ${plain(key)}:\n  ${plain(complete ?? address)}\n`);
    io.stderr.write(`The code is ${paint('bold', plain(code), io, 'stderr')}\n`);
    return done;
  });
  return Promise.race([started, end.reached]).finally(() => {
    end.stop();
    over.abort();
  });
}

export async function logout([wanted]: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const config = await readConfig(options, io);
  if (wanted === undefined && options.all !== true)
    throw new GatewayError('usage', 'Name a server: toolgate logout SERVER. Or end all logins: toolgate logout --all');
  const store = openSecretStore(config.dataDir, config.vault);
  const { logins } = await store.read();
  const name = wanted === undefined ? null : loginName(wanted, options.agent ?? null);
  const meant = [...logins].filter(([one]) => name === null || one === name);
  if (meant.length === 0) {
    const isKnown = wanted === undefined || config.servers.some(({ key }) => key === wanted);
    const who = options.agent === undefined ? '' : ` for the agent "${options.agent}"`;
    const text =
      wanted === undefined
        ? 'Nobody is logged in.'
        : `Nobody is logged in to "${wanted}"${who}.${isKnown ? '' : didYouMean(wanted, serversIn(logins))}`;
    return printResult(options, [], text, io);
  }
  if (name === null && options.yes !== true && !(await confirm(`End ${meant.length} logins?`, io))) return 1;
  const { revoke } = await import('../logins/grants.ts');
  const { createGuard } = await import('../logins/guarded-fetch.ts');
  const ended: object[] = [];
  for (const [one, text] of meant) {
    const [server, agent = null] = JSON.parse(one) as [string, string?];
    const made = JSON.parse(text) as Login;
    const { settings, authorities } = await connectionOf(config, server);
    const guard = await createGuard(made.url, authorities);
    const isRevoked = await revoke(made, { settings, guard }).finally(() => guard.close());
    await store.setLogin(one, null);
    ended.push({ server, ...(agent !== null && { agent }), revoked: isRevoked });
    const more = isRevoked ? '' : ' The server was not told: it offers no way, or could not be reached.';
    if (options.json !== true) print(`Logged out of ${plain(server)}.${more}`, io);
  }
  return options.json === true ? printResult(options, ended, '', io) : 0;
}

/** The servers that somebody is logged in to. */
function serversIn(logins: ReadonlyMap<string, string>): string[] {
  return [...new Set([...logins.keys()].map((name) => (JSON.parse(name) as [string])[0]))];
}

/** How the authorization server of this server is reached. It may be in the configuration no longer, or without its secrets. */
async function connectionOf(
  config: Config,
  key: string,
): Promise<{ readonly settings: OAuthSettings; readonly authorities?: string[] }> {
  const settings: OAuthSettings = { grant: 'login' };
  const server = config.servers.find((one) => one.key === key);
  if (server?.launch.kind !== 'http') return { settings };
  const vault = createVault({ dataDir: config.dataDir, vault: () => config.vault, learn: () => {} });
  const { certificatesOf } = await import('../logins/probe.ts');
  try {
    const launch = (await vault.fill(server)).launch as HttpLaunch;
    const { ca } = certificatesOf(launch);
    return { settings: launch.oauth || settings, ...(ca !== undefined && { authorities: [ca] }) };
  } catch {
    return { settings };
  }
}
