/** Folders of tools as they are on the disk and as they are served, and the secrets that servers ask for. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { wantedSecrets } from '../config/wanted-secrets.ts';
import { scanFolders } from '../gateway/folders.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { listPackages } from '../manager/dependencies.ts';
import { findManaged, listManaged, type ManagedNamespace } from '../manager/managed-namespace.ts';
import { type FiledTool, secretsOf, toolsInSource } from '../manager/namespace-list.ts';
import type { SecretScope } from '../secrets/payload.ts';
import { nameProblem } from '../secrets/secret-names.ts';
import { findKey, keyMissing } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import type {
  NamespaceDetail,
  NamespaceFile,
  NamespaceRow,
  NamespacesReport,
  SecretRow,
  SecretsReport,
} from './api-types.ts';
import { byOf, type PageSession } from './page-sessions.ts';

const storeOf = ({ config }: Gateway) => openSecretStore(config.dataDir, config.vault);

export async function namespaceRows(gateway: Gateway): Promise<NamespacesReport> {
  const statuses = await storeOf(gateway).list();
  const all = await listManaged(gateway.config);
  return { namespaces: all.map((one) => toRow(gateway, one, secretsOf(one, statuses))) };
}

function toRow(
  gateway: Gateway,
  { name, found, servers, isOwn }: ManagedNamespace,
  { missing, placeholders }: ReturnType<typeof secretsOf>,
): NamespaceRow {
  const keys = new Set(servers.map(({ key }) => key));
  const states = gateway.statuses().filter(({ key }) => keys.has(key));
  const worst = states.find(({ state }) => state !== 'up' && state !== 'asleep') ?? states[0];
  return {
    name,
    folder: found.folder,
    state: worst?.state ?? 'unserved',
    detail: worst?.detail ?? '',
    languages: found.parts.map(({ language }) => language),
    files: found.parts.reduce((sum, { files }) => sum + files.length, 0),
    tools: [...gateway.catalog.entries.tool.values()].filter(({ sourceKey }) => keys.has(sourceKey)).length,
    problems: found.problems.length + states.reduce((sum, { problems }) => sum + problems.length, 0),
    missingSecrets: [...missing, ...placeholders],
    managed: isOwn,
  };
}

/** Characters of what a worker printed. */
const SHOWN_OUTPUT = 32_000;

export async function namespaceDetail(gateway: Gateway, name: string): Promise<NamespaceDetail> {
  const managed = await findManaged(gateway.config, name).catch((error: unknown) => {
    throw new GatewayError('path_unknown', messageOf(error));
  });
  const { servers } = managed;
  const statuses = await storeOf(gateway).list();
  const names = secretsOf(managed, statuses);
  const keys = new Set(servers.map(({ key }) => key));
  const states = gateway.statuses().filter(({ key }) => keys.has(key));
  const { tools, problems } = await toolsInSource(managed, gateway.env);
  const known = states.flatMap((status) => status.problems);
  const written = problems
    .map((text) => ({ ...placeOf(text), isKept: false }))
    .filter(({ file, line }) => !known.some((one) => one.file === file && one.line === line));
  return {
    ...toRow(gateway, managed, names),
    description: servers[0]?.description ?? '',
    sources: await filesOf(managed, tools),
    fileProblems: [...known, ...written].map((one) => ({ ...one, message: gateway.redact(one.message) })),
    secrets: [
      ...names.satisfied.map((one) => secretRow(one, name, 'set', statuses, [name])),
      ...names.missing.map((one) => secretRow(one, name, 'missing', statuses, [name])),
      ...names.placeholders.map((one) => secretRow(one, name, 'placeholder', statuses, [name])),
    ],
    packages: await packagesOf(gateway, name),
    isolation: states[0]?.isolation ?? null,
    output: gateway.redact(states.map(({ stderr }) => stderr).join('\n')).slice(-SHOWN_OUTPUT),
  };
}

/** `tools.py:3: message` */
function placeOf(text: string): { readonly file: string; readonly line: number | null; readonly message: string } {
  const [, file, line, message] = /^([^:\n]+):(\d+): (.*)$/s.exec(text) ?? [];
  if (file !== undefined) return { file, line: Number(line), message: message! };
  const [, named, words] = /^([\w.-]+\.\w+): (.*)$/s.exec(text) ?? [];
  return { file: named ?? '', line: null, message: words ?? text };
}

async function filesOf({ found }: ManagedNamespace, tools: readonly FiledTool[]): Promise<NamespaceFile[]> {
  const files = found.parts.flatMap(({ language, files: names }) => names.map((file) => ({ language, file })));
  const known = await Promise.all(
    files.map(async ({ language, file }) => {
      const stats = await stat(join(found.folder, file)).catch(() => null);
      if (stats === null) return [];
      const own = tools.filter(({ filename }) => filename === file).map((tool) => tool.name);
      return [{ file, language, bytes: stats.size, modified: stats.mtime.toISOString(), tools: own }];
    }),
  );
  return known.flat();
}

async function packagesOf({ config }: Gateway, name: string): Promise<NamespaceDetail['packages']> {
  try {
    const { python, typescript } = await listPackages(config, name);
    return { python, node: typescript, problem: null };
  } catch (error) {
    return { python: [], node: [], problem: messageOf(error) };
  }
}

type Statuses = Awaited<ReturnType<ReturnType<typeof storeOf>['list']>>;

function secretRow(
  name: string,
  namespace: string,
  status: SecretRow['status'],
  statuses: Statuses,
  wantedBy: readonly string[],
): SecretRow {
  const kept = statuses.filter((one) => one.name === name);
  const own = kept.find(({ scope }) => scope === namespace) ?? kept.find(({ scope }) => scope === null);
  return {
    name,
    scope: own === undefined ? namespace : (own.scope ?? GLOBAL),
    status,
    updated: own?.updated ?? null,
    wantedBy,
  };
}

const GLOBAL = 'global';

/** Those that are set, and those that a server waits for. */
export async function secretRows(gateway: Gateway): Promise<SecretsReport> {
  const { config } = gateway;
  const statuses = await storeOf(gateway).list();
  const { servers } = await scanFolders(config);
  const wanted = wantedSecrets([...config.servers, ...servers], statuses);
  const kept = statuses.map(({ name, scope, status, updated }): SecretRow => {
    const by = wanted.filter(
      (one) =>
        (scope === null || one.namespace === scope || one.server === scope) &&
        [...one.satisfied, ...one.placeholders].includes(name),
    );
    return { name, scope: scope ?? GLOBAL, status, updated, wantedBy: by.map(({ server }) => server) };
  });
  const missing = wanted.flatMap(({ server, namespace, missing: names }) =>
    names.map(
      (name): SecretRow => ({ name, scope: namespace || GLOBAL, status: 'missing', updated: null, wantedBy: [server] }),
    ),
  );
  const key = await findKey(config.vault).catch(() => null);
  return { secrets: [...missing, ...kept], unusable: key === null ? keyMissing().message : gateway.vault.problem };
}

export async function setSecret(
  gateway: Gateway,
  session: PageSession,
  { name, scope, value }: { readonly name: string; readonly scope: string; readonly value: string },
): Promise<SecretRow> {
  const problem = nameProblem(name);
  if (problem !== null) throw new GatewayError('params_invalid', problem);
  await storeOf(gateway).set(name, scopeOf(scope), value);
  gateway.events.emit('admin', { act: 'secret_set', agent: '', detail: `${name} (${scope})`, ...byOf(session) });
  await gateway.change({ secrets: true });
  return { name, scope, status: 'set', updated: new Date().toISOString(), wantedBy: [] };
}

export async function removeSecret(
  gateway: Gateway,
  session: PageSession,
  { name, scope }: { readonly name: string; readonly scope: string },
): Promise<null> {
  const wasThere = await storeOf(gateway).remove(name, scopeOf(scope));
  if (!wasThere)
    throw new GatewayError(
      'path_unknown',
      `There is no secret ${JSON.stringify(name.slice(0, 80))} of ${JSON.stringify(scope.slice(0, 80))}.`,
    );
  gateway.events.emit('admin', { act: 'secret_removed', agent: '', detail: `${name} (${scope})`, ...byOf(session) });
  await gateway.change({ secrets: true });
  return null;
}

function scopeOf(scope: string): SecretScope {
  return scope === GLOBAL || scope === '' ? null : scope;
}
