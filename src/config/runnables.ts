/**
 * What a configuration would run, and whom it would let in over HTTP. Each has a hash of what decides that, by which trust
 * in it is remembered. It is made of the file as it is written: a secret that changes asks nobody again, and the hash
 * tells nothing about it. Paths in it begin at the file, so the file is part of it.
 */
import { isAbsolute, relative } from 'node:path';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { type JsonObject, toObject } from '../base/objects.ts';
import { escaped } from '../base/text.ts';
import type { Config } from './config.ts';
import { withoutSecrets } from './raw-config.ts';
import type { FolderConfig, ServerConfig, serverShape } from './servers.ts';

/** A token of an agent, by its hash. */
export interface HeldToken {
  readonly agent: string;
  readonly sha256: string;
}

/** What lets clients in and is not in the configuration itself. */
export interface FoundCredentials {
  /** Those of agents, in the configuration and in the data folder. */
  readonly tokens: readonly HeldToken[];
  /** A hash of the file with the authorities of client certificates; null if there is none. */
  readonly authorities: string | null;
}

/** Settings of `http` that let more clients in, or let them be somebody else. */
export const OPENING = ['allowed_origins', 'allowed_hosts', 'trust_agent_header'] as const;

/** What is trusted, or held back. */
export type RunnableSubject =
  /** A server, or a folder of tools that the configuration names. */
  | { readonly kind: 'server'; readonly key: string }
  /** The folders of tools in the data folder. */
  | { readonly kind: 'dropped' }
  | { readonly kind: 'token'; readonly sha256: string }
  | { readonly kind: 'issuer'; readonly issuer: string }
  | { readonly kind: 'certificates' }
  | { readonly kind: 'setting'; readonly name: (typeof OPENING)[number] };

export interface Runnable {
  readonly subject: RunnableSubject;
  readonly hash: string;
  /** For a person: everything that is run, without secrets, every character visible. */
  readonly text: string;
}

/** Keys of an entry that decide how a server is used, but not what runs. A key that is added later is not one of them. */
const HARMLESS: readonly (keyof typeof serverShape)[] = [
  'namespace',
  'description',
  'enabled',
  'required',
  'start',
  'idle_stop',
  'share',
  'timeout',
  'total_timeout',
  'start_timeout',
  'health_interval',
  'memory',
  'concurrency',
  'queue',
  'rate',
  'calls_per_day',
  'max_arguments',
  'max_result',
  'tools',
];

/**
 * `file` is the path of the configuration without links. `dropped` are the names of the folders in the tools folder of
 * the data folder, which is `place`.
 */
export function runnablesOf(
  config: Config,
  file: string,
  place: string,
  dropped: readonly string[],
  cwd: string,
  credentials: FoundCredentials,
): Runnable[] {
  const { settings, servers } = config.written();
  const { isolation, packages } = config.folders;
  const common = { inherit_env: settings.inherit_env ?? null };
  const hashOf = (what: JsonObject) => sha256(canonicalJson({ file, ...what }));
  const describe = (server: ServerConfig | FolderConfig): Runnable => {
    const raw = servers.get(server.key);
    const entry = Object.fromEntries(
      Object.entries(raw?.entry ?? {}).filter(([key]) => !(HARMLESS as readonly string[]).includes(key)),
    );
    const settled = 'folder' in server ? { isolation: server.isolation, packages: server.packages } : common;
    const hash = hashOf({ entry, isShellLine: raw?.isShellLine ?? null, ...settled });
    return { subject: { kind: 'server', key: server.key }, hash, text: `${escaped(server.key)}: ${entryText(entry)}` };
  };
  return [
    ...[...config.servers, ...config.folders.named].filter(({ enabled }) => enabled).map(describe),
    ...(dropped.length === 0
      ? []
      : [
          {
            subject: { kind: 'dropped' } as const,
            hash: hashOf({ place, isolation, packages }),
            text: `tool files in ${escaped(shownPath(place, cwd))}, also those that come later: ${dropped.map(escaped).join(', ')}`,
          },
        ]),
    ...credentials.tokens.map(({ agent, sha256: token }) => ({
      subject: { kind: 'token', sha256: token } as const,
      hash: hashOf({ agent, token }),
      text: `a token of the agent ${escaped(agent)}, which lets clients in over HTTP: ${token.slice(0, 8)}…`,
    })),
    ...entrancesOf(config, credentials, hashOf),
  ];
}

/** Whom `http` lets in. */
function entrancesOf(
  { http, written }: Config,
  { authorities }: FoundCredentials,
  hashOf: (what: JsonObject) => string,
): Runnable[] {
  const clients = http.tls?.clients ?? null;
  const settings = toObject(written().settings.http);
  return [
    ...http.jwt.map((jwt) => ({
      subject: { kind: 'issuer', issuer: jwt.issuer } as const,
      hash: hashOf({ jwt: { ...jwt } }),
      text: `tokens that ${escaped(jwt.issuer)} signs, which let clients in over HTTP: ${valueText(jwt)}`,
    })),
    ...(clients === null
      ? []
      : [
          {
            subject: { kind: 'certificates' } as const,
            hash: hashOf({ clients: { ...clients }, authorities }),
            text: `certificates of the authorities in ${escaped(clients.ca)}, which let clients in over HTTP: ${valueText(clients)}`,
          },
        ]),
    ...OPENING.filter((name) => isOpening(settings[name])).map((name) => ({
      subject: { kind: 'setting', name } as const,
      hash: hashOf({ [name]: settings[name] }),
      text: `http.${name}, which opens the HTTP door further: ${valueText(settings[name])}`,
    })),
  ];
}

function isOpening(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value === true;
}

function entryText(written: JsonObject): string {
  const { command, args, url, folder, env, headers, ...others } = withoutSecrets(written).value as JsonObject;
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => word !== undefined);
  const target =
    url !== undefined
      ? `connects to ${valueText(url)}`
      : folder !== undefined
        ? `tool files in ${valueText(folder)}`
        : Array.isArray(args)
          ? words.map(quoted).join(' ')
          : valueText(command);
  const pairs = Object.entries({ ...(env as JsonObject), ...(headers as JsonObject) });
  return [
    target,
    ...pairs.map(([name, value]) => `    ${escaped(name)}=${valueText(value)}`),
    ...Object.entries(others).map(([name, value]) => `    ${escaped(name)}: ${valueText(value)}`),
  ].join('\n');
}

/** An argument as a shell would take it, so that one with a space does not look like two. */
function quoted(word: unknown): string {
  const text = valueText(word);
  return /^[\w@%+=:,./~${}-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function valueText(value: unknown): string {
  return escaped(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

function shownPath(path: string, cwd: string): string {
  const way = relative(cwd, path);
  return way.startsWith('..') || isAbsolute(way) ? path : way;
}
