/**
 * Leaves out what nobody has trusted yet. It is shown with the reason, as an entry with a mistake is, and a server that
 * is in force stays as it is (`keep-broken.ts`).
 */
import { counted } from '../base/text.ts';
import type { BrokenEntry } from '../config/broken.ts';
import type { Config, HeldCredentials } from '../config/config.ts';
import type { HttpConfig } from '../config/http.ts';
import type { Runnable, RunnableSubject } from '../config/runnables.ts';
import type { FolderConfig, ServerConfig } from '../config/servers.ts';

/**
 * `missing` is what nobody has trusted. `dropped` are the namespaces in the data folder, if they are among it. `reason`
 * says what to do.
 */
export function holdUntrusted(
  config: Config,
  missing: readonly Runnable[],
  dropped: readonly string[],
  reason: string,
): Config {
  if (missing.length === 0) return config;
  const keys = new Set(subjects(missing, 'server').map(({ key }) => key));
  const isFolder = ({ server }: BrokenEntry) => server?.kind === 'folder';
  const servers = hold(
    config.servers,
    config.broken.filter((one) => !isFolder(one)),
    keys,
    reason,
  );
  const folders = hold(config.folders.named, config.broken.filter(isFolder), keys, reason);
  const place = folders.left.length;
  const isDropped = subjects(missing, 'dropped').length > 0;
  const held = { ...config, http: heldHttp(config.http, missing) };
  return Object.freeze({
    ...holdCredentials(held, missing, reason),
    servers: servers.left,
    folders: { ...config.folders, named: folders.left, ...(isDropped && { isHeld: true as const }) },
    broken: [
      ...servers.broken,
      ...folders.broken,
      ...(isDropped ? dropped : []).map((name) =>
        untrusted(name, { namespace: name, kind: 'folder', required: false, place }, reason),
      ),
    ],
  });
}

/** The configuration with these credentials held, and no others. */
export function holdCredentials(config: Config, missing: readonly Runnable[], reason: string): Config {
  const { held: before, ...rest } = config;
  const notices = config.notices.filter((one) => one !== before?.notice);
  const tokens = new Set(subjects(missing, 'token').map(({ sha256 }) => sha256));
  // Those that were held before are not in `http.jwt` any more.
  const issuers = [...(before?.issuers ?? []), ...subjects(missing, 'issuer').map(({ issuer }) => issuer)];
  const settings = subjects(missing, 'setting').map(({ name }) => `http.${name}`);
  const certificates = subjects(missing, 'certificates').length > 0;
  const words = [
    ...(tokens.size === 0 ? [] : [`${counted(tokens.size, 'token')} of agents`]),
    ...issuers.map((issuer) => `tokens of ${issuer}`),
    ...(certificates ? ['client certificates'] : []),
    ...settings,
  ];
  if (words.length === 0) return { ...rest, notices };
  const isOne = words.length === 1 && tokens.size < 2 && issuers.length === 0 && !certificates;
  const notice = `${words.join(', ')} ${isOne ? 'lets' : 'let'} nobody in, because nobody has trusted ${isOne ? 'it' : 'them'} yet: ${reason}`;
  const held: HeldCredentials = { tokens, issuers, certificates, notice };
  return { ...rest, held, notices: [...notices, notice] };
}

function heldHttp(http: HttpConfig, missing: readonly Runnable[]): HttpConfig {
  const issuers = subjects(missing, 'issuer').map(({ issuer }) => issuer);
  const settings = subjects(missing, 'setting').map(({ name }) => name);
  return {
    ...http,
    jwt: http.jwt.filter(({ issuer }) => !issuers.includes(issuer)),
    ...(settings.includes('trust_agent_header') && { trustAgentHeader: false }),
    ...(settings.includes('allowed_origins') && { allowedOrigins: [] }),
    ...(settings.includes('allowed_hosts') && { allowedHosts: [] }),
  };
}

function subjects<Kind extends RunnableSubject['kind']>(missing: readonly Runnable[], kind: Kind) {
  return missing
    .map(({ subject }) => subject)
    .filter((subject): subject is Extract<RunnableSubject, { kind: Kind }> => subject.kind === kind);
}

function untrusted(key: string, server: NonNullable<BrokenEntry['server']>, reason: string): BrokenEntry {
  return { section: 'servers', key, cause: 'untrusted', problem: reason, server, isKept: false };
}

/** Servers without those that are held, and all entries that are left out, in the order of the file. */
function hold<Server extends ServerConfig | FolderConfig>(
  servers: readonly Server[],
  broken: readonly BrokenEntry[],
  held: ReadonlySet<string>,
  reason: string,
): { readonly left: readonly Server[]; readonly broken: readonly BrokenEntry[] } {
  const isLeft = ({ key, enabled }: Server) => !enabled || !held.has(key);
  const leftBefore = (place: number) => servers.slice(0, place).filter(isLeft).length;
  const entries = [
    // An entry at place 1 comes after the first server and before the second one.
    ...broken.map((one) => ({ at: one.server?.place ?? 0, one })),
    ...servers.flatMap((server, i) =>
      isLeft(server) ? [] : { at: i + 0.5, one: untrusted(server.key, describe(server, i), reason) },
    ),
  ];
  return {
    left: servers.filter(isLeft),
    broken: entries
      .sort((a, b) => a.at - b.at)
      .map(({ one }) => ({
        ...one,
        server: one.server === null ? null : { ...one.server, place: leftBefore(one.server.place) },
      })),
  };
}

function describe(server: ServerConfig | FolderConfig, place: number): NonNullable<BrokenEntry['server']> {
  const { namespace, required } = server;
  const kind = 'folder' in server || server.launch.kind === 'inline' ? 'folder' : server.launch.kind;
  return { namespace, kind, required, place };
}
