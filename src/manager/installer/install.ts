/** `search_registry`, `install_from_registry` and `install_from_repo`. */
import { dirname, join } from 'node:path';
import { GatewayError } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import { addServers, type EditOptions, type WrittenServer } from '../../config/edit-servers.ts';
import { openSecretStore } from '../../store/secrets.ts';
import { requireName } from '../../workers/namespace-folders.ts';
import { analyzeRepo, type RepoAnalysis } from '../builder/analyze-repo.ts';
import type { Work } from '../builder/repositories.ts';
import { findEntry, searchEntries } from './registry-client.ts';
import { entryStatus, type RegistryEntry, type ServerJson, type ServerPackage } from './server-json.ts';
import { type MissingInput, OFFICIAL, type ServerKind, toServer } from './to-server.ts';

/** What the functions of the installer need from their caller; the data folder is that of the configuration. */
export type InstallWork = Omit<Work, 'dataDir'>;

/** One result of a search, in the words of the tool. */
export interface FoundServer {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly package: string;
  readonly package_type: string;
  readonly source_url: string;
}

const MAX_FOUND = 30;

export async function searchRegistry(query: string, config: Config, { signal }: InstallWork): Promise<FoundServer[]> {
  if (query.trim() === '') throw new GatewayError('usage', 'Say what to search for, such as "github".');
  const entries = await searchEntries(query.trim(), MAX_FOUND, { registry: config.registry, signal });
  return entries.filter((entry) => entryStatus(entry) !== 'deleted').map(foundServer);
}

function foundServer({ server }: RegistryEntry): FoundServer {
  const [first] = server.packages ?? [];
  const [remote] = server.remotes ?? [];
  return {
    name: server.name,
    description: server.description,
    version: server.version,
    package: first?.identifier ?? remote?.url ?? '',
    package_type: first?.registryType ?? (remote === undefined ? '' : 'remote'),
    source_url: server.repository?.url ?? '',
  };
}

export interface InstallRequest {
  /** The name of the entry, or of its package. */
  readonly package: string;
  readonly namespace: string;
  /** `attach` writes it as a server to the configuration, `translate` reads its source. */
  readonly mode: 'attach' | 'translate';
  /** Values for what the entry asks for, by name. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly kind: ServerKind | null;
  readonly version: string | null;
}

export type InstallResult =
  | {
      readonly installed: true;
      readonly name: string;
      readonly version: string;
      readonly namespace: string;
      readonly kind: ServerKind;
      /** The configuration that it was written to. */
      readonly file: string;
      readonly server: WrittenServer;
      /** Secrets that a person has to set. */
      readonly secrets_needed: readonly string[];
      readonly notes: readonly string[];
    }
  | { readonly installed: false; readonly error: string; readonly inputs: readonly MissingInput[] };

/** Nothing is written if something is missing: the result says what to ask the user for. */
export async function installFromRegistry(
  request: InstallRequest,
  config: Config,
  work: InstallWork,
  beforeWrite?: EditOptions['beforeWrite'],
): Promise<InstallResult | RepoAnalysis> {
  requireName(request.namespace);
  work.progress(`asking ${config.registry.url} for ${request.package}`);
  const entry = await lookUp(request, config, work);
  const { server } = entry;
  const status = entryStatus(entry);
  if (status === 'deleted')
    throw new GatewayError('usage', `"${server.name}" was deleted from the registry. Choose another server.`);
  if (request.mode === 'translate') return analyzeSource(server, request, config, work);
  const { namespace, kind, inputs } = request;
  const converted = await toServer(server, { namespace, kind, inputs, allowPrivate: config.registry.allowPrivate });
  if (converted.missing.length > 0)
    return {
      installed: false,
      error: `"${server.name}" needs ${converted.missing.map(({ name }) => name).join(', ')}. Ask the user, and call again with "inputs".`,
      inputs: converted.missing,
    };
  const file = config.file ?? join(config.dataDir, 'config.yaml');
  const found = { file, isNamed: true, others: [], dataDir: config.dataDir };
  const edit = { cwd: dirname(file), env: work.env, ...(beforeWrite === undefined ? {} : { beforeWrite }) };
  await addServers(found, [converted.server], edit);
  work.progress(`wrote "${namespace}" to ${file}`);
  await prepareSecrets(converted.secrets, namespace, config);
  return {
    installed: true,
    name: server.name,
    version: server.version,
    namespace,
    kind: converted.kind,
    file,
    server: converted.server,
    secrets_needed: converted.secrets,
    notes: status === 'deprecated' ? ['The registry calls this server deprecated.'] : [],
  };
}

/** Reads the repository that the entry names; its package if it names none, or if one was asked for. */
async function analyzeSource(
  server: ServerJson,
  { kind }: InstallRequest,
  config: Config,
  work: InstallWork,
): Promise<RepoAnalysis> {
  const analyze = (url: string, folder?: string) =>
    analyzeRepo(url, config.repositories, { ...work, dataDir: config.dataDir }, folder);
  const readable = (server.packages ?? []).filter(isReadable);
  const { url, subfolder } = server.repository ?? {};
  if (kind === null && url) {
    const others = [...new Set(readable.map(({ registryType }) => registryType))];
    return analyze(url, subfolder).catch((error: unknown) => {
      if (!(error instanceof GatewayError) || others.length === 0) throw error;
      const remedy = `Its package can be read instead: call again with kind ${others.map((one) => `"${one}"`).join(' or ')}.`;
      throw new GatewayError(error.code, `${error.message} ${remedy}`, { cause: error });
    });
  }
  const found = readable.find(({ registryType }) => kind === null || registryType === kind);
  if (found === undefined)
    throw new GatewayError(
      'usage',
      kind === null
        ? `"${server.name}" names no repository and no package of npm or PyPI, so there is no source to translate. Use mode "attach".`
        : `"${server.name}" has no ${kind} package that can be read. Leave "kind" out to read its repository.`,
    );
  return analyze(`${found.registryType}:${found.identifier}${found.version === undefined ? '' : `@${found.version}`}`);
}

function isReadable({ registryType, registryBaseUrl }: ServerPackage): boolean {
  if (registryType !== 'npm' && registryType !== 'pypi') return false;
  return registryBaseUrl === undefined || OFFICIAL[registryType].test(registryBaseUrl);
}

/** By the name of the entry, or of a package of one. */
async function lookUp(request: InstallRequest, config: Config, { signal }: InstallWork): Promise<RegistryEntry> {
  const ask = { registry: config.registry, signal };
  const version = request.version ?? 'latest';
  const name = request.package;
  const exact = /^[^@/\s]+\/[^/\s]+$/.test(name) ? await findEntry(name, version, ask) : null;
  if (exact !== null) return exact;
  let found: RegistryEntry[] = [];
  let matches: RegistryEntry[] = [];
  for (const term of termsOf(name)) {
    found = await searchEntries(term, MAX_FOUND, ask);
    matches = found.filter(
      ({ server }) => server.name === name || (server.packages ?? []).some((one) => one.identifier === name),
    );
    if (matches.length > 0) break;
  }
  if (matches.length === 1) {
    const [match] = matches;
    if (version === 'latest' || match!.server.version === version) return match!;
    const older = await findEntry(match!.server.name, version, ask);
    if (older !== null) return older;
  }
  const names = (matches.length > 1 ? matches : found).map(({ server }) => server.name).slice(0, 5);
  const hint = names.length === 0 ? ' Search with search_registry.' : ` There are: ${names.join(', ')}.`;
  const what = version === 'latest' ? '' : ` in version ${version.slice(0, 40)}`;
  throw new GatewayError(
    'usage',
    `The registry has no single server ${JSON.stringify(name.slice(0, 200))}${what}.${hint}`,
  );
}

/** A registry searches in names of entries, and those of packages differ: `@acme/weather-mcp` is that of `acme/weather`. */
function termsOf(name: string): string[] {
  const last = name.split('/').at(-1) ?? name;
  const words = last.split(/[-_.:@]+/).filter((word) => word.length > 2 && !/^(?:mcp|server)$/i.test(word));
  return [...new Set([last, ...words.toSorted((a, b) => b.length - a.length)])].slice(0, 3);
}

/** So that lists of secrets show what is still to be set. Without a key there are no secrets yet. */
async function prepareSecrets(names: readonly string[], namespace: string, config: Config): Promise<void> {
  const store = openSecretStore(config.dataDir, config.vault);
  for (const name of names) {
    const known = await store.list().catch(() => []);
    if (known.some((one) => one.name === name && (one.scope === null || one.scope === namespace))) continue;
    await store.prepare(name, namespace).catch(() => {});
  }
}

/** Clones and analyzes a repository whose tools are to be written in a namespace. */
export function installFromRepo(
  url: string,
  namespace: string,
  config: Config,
  work: InstallWork,
): Promise<RepoAnalysis> {
  requireName(namespace);
  return analyzeRepo(url, config.repositories, { ...work, dataDir: config.dataDir });
}
