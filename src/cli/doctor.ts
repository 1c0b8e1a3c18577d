/** `toolgate doctor`: checks the configuration and every server, and says what to do about each problem. */
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unmatchedRules } from '../access/unmatched-rules.ts';
import { readAuthorities, readKeyPair } from '../base/certificates.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { EventMap } from '../base/events.ts';
import { getOrMake } from '../base/memo.ts';
import { counted } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import { deviationsOf, withoutPins } from '../catalog/pins.ts';
import { countedTokensText, tokensOfBytes, tokensText } from '../catalog/tokens.ts';
import type { Config } from '../config/config.ts';
import type { TlsConfig } from '../config/http.ts';
import { requireOutside } from '../config/inside.ts';
import { secretsInArguments } from '../config/launch-secrets.ts';
import { loadConfig } from '../config/load.ts';
import { LOCK_FILE, readLock, writeLock } from '../config/pins.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { StatusReport } from '../doors/http/admin/status.ts';
import { issuerTrouble } from '../doors/http/auth/issuer.ts';
import { scanFolders } from '../gateway/folders.ts';
import { type Gateway, openGateway } from '../gateway/gateway.ts';
import { missingVariables } from '../sources/environment.ts';
import { problemText } from '../sources/last-good.ts';
import { openAgentStore } from '../store/agents.ts';
import { examineDataFolder } from '../store/data-folder.ts';
import { openOfferStore } from '../store/offers.ts';
import { findKey, INSECURE_TEXT, keyMissing } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';
import type { CommandIo } from './command-io.ts';
import { backUp, type Repair, repairables, setAside } from './doctor-files.ts';
import { firstListLines } from './first-list.ts';
import { loadOptions, type Options } from './options.ts';
import { noteNoneRuns, runningGateways } from './running.ts';
import { agentsText, loginText, timeText } from './server-rows.ts';
import { progressText } from './session.ts';
import { readStatus } from './status.ts';
import { paint, plain, printResult, warn, withSpinner } from './terminal.ts';
import { missingText } from './toolsets.ts';
import { openTrust } from './trust.ts';

/** Of a server that failed. */
const MOST_LINES = 20;

interface Diagnosis {
  readonly level: 'ok' | 'warning' | 'broken';
  readonly about: string;
  readonly message: string;
  /** The last lines that a server wrote to its standard error. */
  readonly stderr?: string;
  /** Absent if a person has to decide. */
  readonly repair?: Repair;
}

export async function doctor(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const findings = await examine(options, io);
  const repairs = findings.filter(({ repair }) => repair !== undefined).length;
  const lines = findings.map((finding) => toText(finding, io));
  if (repairs > 0) lines.push(`${counted(repairs, 'problem')} can be repaired with: toolgate doctor --fix`);
  const json = findings.map(({ repair, ...finding }) => ({
    ...finding,
    ...(repair !== undefined && { repairable: true }),
  }));
  printResult(options, { findings: json }, lines.join('\n'), io);
  if (findings.some(({ level }) => level === 'broken')) return 2;
  return findings.some(({ level }) => level === 'warning') ? 1 : 0;
}

async function examine(options: Options, io: CommandIo): Promise<Diagnosis[]> {
  let gateway: Gateway | null = null;
  try {
    const loaded = await loadConfig(loadOptions(options, io));
    requireOutside(loaded, io.env, true);
    const isFixing = options.fix === true;
    // First, because they are in the way of the rest, and the gateway replaces some damaged files.
    const data = await repaired([...(await fileFindings(loaded, io.env)), ...(await dataFindings(loaded))], isFixing);
    const trust = openTrust(options, io);
    await trust.ask(loaded);
    const config = await trust.hold(loaded);
    const others = await versionFindings(config, io);
    const running = await runningStatus(config, io);
    if (running === null) noteNoneRuns(config, io);
    const opened = await openGateway(config, {
      ...{ audit: false, env: io.env, spawn: io.spawn },
      ...(running !== null && { adjust: asleep(config) }),
    });
    gateway = running === null ? opened : withServersOf(opened, running);
    const notes = collectNotes(gateway);
    await withSpinner(() => progressText(opened), gateway.tried(), io);
    const { redact } = gateway;
    const names = await repaired([...renameFindings(gateway), ...(await pinFindings(gateway))], isFixing);
    const goneIsFixed = names.some(({ about, level }) => about === LOCK_FILE && level === 'ok');
    const findings: Diagnosis[] = [
      { level: 'ok', about: 'configuration', message: configurationText(config) },
      ...(running === null ? [] : [runningFinding(running)]),
      ...config.notices.map((message): Diagnosis => ({ level: 'warning', about: 'configuration', message })),
      ...config.broken.map(
        ({ section, key, cause, problem }): Diagnosis => ({
          level: cause === 'mistake' ? 'broken' : 'warning',
          about: section === 'servers' ? key : `toolset ${key}`,
          message:
            cause === 'mistake'
              ? `left out, because its entry has a mistake: ${problem}`
              : `not started, because nobody has trusted it yet: ${problem}`,
        }),
      ),
      ...data,
      ...others,
      ...names,
      ...(await identityFindings(config)),
      ...(await secretFindings(config)),
      ...(await approverFindings(config, io.env)),
      ...argumentFindings(config),
      ...serverFindings(gateway, notes, io.env),
      ...(await folderFindings(gateway)),
      ...(await repaired(await ruleFindings(gateway), isFixing)),
      ...firstListFindings(gateway),
      ...(await vectorFindings(gateway)),
      ...(await tokenFindings(gateway, running)),
      ...gateway.catalog.problems
        .filter(({ message }) => !goneIsFixed || !message.includes(' differs from tools.lock (gone)'))
        .map(({ source, message }): Diagnosis => ({ level: 'warning', about: source, message })),
    ];
    return findings.map((finding) => ({ ...finding, message: redact(finding.message) }));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return [{ level: 'broken', about: 'configuration', message: error.message }];
  } finally {
    await gateway?.close();
  }
}

/** How long servers that are starting in a running gateway are waited for, and how often it is asked. In milliseconds. */
const MOST_WAITING = 60_000;
const ASKING = 200;

/** Of the newest gateway that runs with this configuration; null if none runs, or if it cannot be asked. */
async function runningStatus(config: Config, io: CommandIo): Promise<StatusReport | null> {
  const [running] = await runningGateways(config, io);
  if (running === undefined) return null;
  let late: readonly string[] = [];
  const triedStatus = async () => {
    const end = performance.now() + MOST_WAITING;
    for (;;) {
      const report = await readStatus(running);
      late = report.servers.filter(({ state }) => state === 'starting').map(({ key }) => key);
      if (late.length === 0 || performance.now() > end) return report;
      await sleep(ASKING);
    }
  };
  return withSpinner(() => `waiting for ${late.join(', ')}`, triedStatus(), io).catch((error: unknown) => {
    warn(`${messageOf(error)} The servers are started again for this command.`, io);
    return null;
  });
}

/** Starts none of the servers: those whose items are known sleep, and the others are left out. */
function asleep({ dataDir }: Config): (server: ServerConfig) => ServerConfig | null {
  const offers = openOfferStore(dataDir);
  return (server) => (offers.read(server.launchHash) === null ? null : { ...server, start: 'lazy' });
}

/** The gateway with its servers as they are in the one that runs. */
function withServersOf(gateway: Gateway, { servers }: StatusReport): Gateway {
  return Object.create(gateway, { statuses: { value: () => [...servers] } }) as Gateway;
}

function runningFinding({ command, pid, started }: StatusReport): Diagnosis {
  const what = `toolgate ${command ?? ''}`.trim();
  const message = `${what} runs since ${timeText(started)} (process ${pid}). Its servers are shown as they are there`;
  return { level: 'ok', about: 'gateway', message };
}

function configurationText({ file, dataDir }: Config): string {
  if (file === null || existsSync(file)) return file ?? '';
  return `none; the folders of tools in ${dataDir} are served (${file} would be read)`;
}

async function dataFindings({ dataDir }: Config): Promise<Diagnosis[]> {
  const problems = await examineDataFolder(dataDir);
  return problems.map(({ message, isLoss, file }) => ({
    level: isLoss ? 'broken' : 'warning',
    about: 'data folder',
    message,
    ...(file !== undefined && { repair: async () => `${file} ${await setAside(file)}` }),
  }));
}

async function fileFindings(config: Config, env: CommandIo['env']): Promise<Diagnosis[]> {
  const problems = await repairables(config, env);
  return problems.map((problem) => ({ level: 'warning', ...problem }));
}

/** With `--fix`, repairs what can be repaired, one after the other. A failed repair is told, and the problem stays. */
async function repaired(findings: readonly Diagnosis[], isFixing: boolean): Promise<Diagnosis[]> {
  if (!isFixing) return [...findings];
  const after: Diagnosis[] = [];
  for (const { repair, ...finding } of findings) {
    if (repair === undefined) {
      after.push(finding);
      continue;
    }
    try {
      after.push({ level: 'ok', about: finding.about, message: `fixed: ${await repair()}` });
    } catch (error) {
      after.push({ ...finding, message: `${finding.message} It could not be repaired: ${messageOf(error)}` });
    }
  }
  return after;
}

/** A gateway of another version goes on with what that version does. */
async function versionFindings(config: Config, io: CommandIo): Promise<Diagnosis[]> {
  const running = await runningGateways(config, io);
  // One with another operator key cannot be asked.
  const reports = await Promise.all(running.map((one) => readStatus(one).catch(() => null)));
  return reports.flatMap((report): Diagnosis[] => {
    if (report === null || report.version === VERSION) return [];
    const message = `a gateway of version ${report.version} runs with this configuration (process ${report.pid}), and this is version ${VERSION}. Restart it.`;
    return [{ level: 'warning', about: 'running gateway', message }];
  });
}

/** Tools of saved toolsets that were found under another name. */
function renameFindings({ renamed, toolsets, toolsetFolders, config }: Gateway): Diagnosis[] {
  return [...new Set(renamed.map(({ toolset }) => toolset))].flatMap((name) => {
    const own = renamed.filter(({ toolset }) => toolset === name);
    const isProject = own[0]!.place === 'project';
    const texts = own.map(({ from, to }) => `"${from}", which is called "${to}" now`);
    const repair: Repair = async () => {
      const folder = await backUp([join(toolsetFolders[0]!, `${name}.json`)], config.dataDir);
      // A change writes the present names.
      await toolsets.change(name, (toolset) => toolset);
      const done = own.map(({ from, to }) => `"${from}" is written as "${to}" now`);
      return `${done.join(', ')}; the old file is in ${folder}`;
    };
    // Another project may have the former name, so a toolset for all of them is left as it is.
    const what = isProject ? 'it' : 'it is for all projects and';
    return [
      {
        level: isProject ? ('warning' as const) : ('ok' as const),
        about: `toolset ${name}`,
        message: `${what} has ${texts.join(', and ')}. It is found all the same.`,
        ...(isProject && { repair }),
      },
    ];
  });
}

/** Pins of servers that the configuration does not have, and of items that a server which is up does not offer. */
async function pinFindings(gateway: Gateway): Promise<Diagnosis[]> {
  const { config } = gateway;
  const { file, mode } = config.pins;
  const pins = file === null || mode === 'off' ? null : await readLock(file).catch(() => null);
  if (file === null || pins === null) return [];
  const keys = new Set([
    ...gateway.statuses().map(({ key }) => key),
    ...config.servers.map(({ key }) => key),
    ...config.broken.map(({ key }) => key),
  ]);
  const servers = Object.keys(pins).filter((key) => !keys.has(key));
  const items = gateway
    .offers()
    .filter(({ key, isCurrent }) => isCurrent && Object.hasOwn(pins, key))
    .flatMap(({ key, offer }) => deviationsOf(key, offer, pins[key]))
    .filter(({ verdict }) => verdict === 'gone');
  if (servers.length + items.length === 0) return [];
  const gone = [
    ...servers.map((key) => `server "${key}", which the configuration does not have`),
    ...items.map(({ server, kind, name }) => `${kind} "${server}.${name}", which the server does not offer`),
  ];
  const shown = gone.length > MOST_GONE ? [...gone.slice(0, MOST_GONE), `${gone.length - MOST_GONE} more`] : gone;
  const repair: Repair = async () => {
    const folder = await backUp([file], config.dataDir);
    await writeLock(file, withoutPins(pins, servers, items));
    return `removed the pins of ${shown.join(', ')}; the old file is in ${folder}`;
  };
  const message = `it has pins of ${shown.join(', ')}. To remove them: toolgate lock approve`;
  return [{ level: 'warning', about: LOCK_FILE, message, repair }];
}

const MOST_GONE = 5;

async function identityFindings({ http, agents, dataDir }: Config): Promise<Diagnosis[]> {
  const findings: Diagnosis[] = [];
  if (http.trustAgentHeader)
    findings.push({
      level: 'warning',
      about: 'http.trust_agent_header',
      message:
        'anyone who can reach the gateway (and has BEARER_TOKEN, if that is set) can act as any agent. Switch it off unless the network is trusted.',
    });
  findings.push(...(await tlsFindings(http.tls)));
  for (const issuer of http.jwt) {
    const trouble = await issuerTrouble(issuer);
    if (trouble !== null) findings.push({ level: 'warning', about: 'http.jwt', message: trouble });
  }
  try {
    const stored = (await openAgentStore(dataDir).read()) ?? [];
    const now = new Date().toISOString();
    const configured = new Set(agents.filter(({ tokens }) => tokens.length > 0).map(({ name }) => name));
    for (const { name, tokens } of stored)
      if (!configured.has(name) && tokens.every(({ expires }) => expires !== null && expires <= now))
        findings.push({
          level: 'warning',
          about: `agent ${name}`,
          message: `its token has expired. Give it another: toolgate agents rotate ${name}`,
        });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    findings.push({ level: 'broken', about: 'agents', message: error.message });
  }
  return findings;
}

/** Certificates are renewed by programs that fail without a word. */
const SOON = 14 * 24 * 3_600_000;

async function tlsFindings(tls: TlsConfig | null): Promise<Diagnosis[]> {
  if (tls === null) return [];
  const about = 'http.tls';
  try {
    if (tls.clients !== null) readAuthorities(tls.clients.ca, 'http.tls.client_ca');
    const { expires } = readKeyPair(tls.cert, tls.key, 'http.tls.cert', 'http.tls.key');
    const days = Math.floor((expires - Date.now()) / (24 * 3_600_000));
    const { mode } = await stat(tls.key);
    return [
      expires - Date.now() < SOON
        ? { level: 'warning', about, message: `${tls.cert} expires in ${counted(days, 'day')}. Renew it.` }
        : { level: 'ok', about, message: `${tls.cert}, valid for ${counted(days, 'day')}` },
      ...(process.platform !== 'win32' && (mode & 0o007) !== 0
        ? [{ level: 'warning' as const, about, message: `${tls.key} can be read by others. Run: chmod 600 ${tls.key}` }]
        : []),
    ];
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return [{ level: 'broken', about, message: error.message }];
  }
}

async function secretFindings({ vault, dataDir }: Config): Promise<Diagnosis[]> {
  const store = openSecretStore(dataDir, vault);
  const findings: Diagnosis[] = [];
  const add = (level: Diagnosis['level'], message: string) => findings.push({ level, about: 'secrets', message });
  const mode = await stat(store.file).then(
    (file) => file.mode & 0o777,
    () => null,
  );
  try {
    const key = await findKey(vault);
    if (key?.isInsecure === true) add('warning', INSECURE_TEXT);
    if (key === null && mode !== null) add('broken', keyMissing().message);
    const all = key === null && mode !== null ? [] : await store.list();
    const set = all.filter(({ status }) => status === 'set').length;
    if (set > 0) add('ok', `${set} set, encrypted with the key from ${key?.from ?? 'nowhere'}`);
    for (const { name, scope, status } of all) {
      if (status !== 'placeholder') continue;
      const namespace = scope === null ? '' : ` --namespace ${scope}`;
      add('warning', `${name} has no value yet: toolgate secrets set ${name}${namespace}`);
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    add('broken', error.message);
  }
  return findings;
}

/**
 * Warns if an answer of the client counts: anyone who has the token of an agent can then approve what that agent does. On
 * stdio the client is the person's own, so without any sign of HTTP it is only mentioned.
 */
async function approverFindings(config: Config, env: CommandIo['env']): Promise<Diagnosis[]> {
  const { approvers, confirm } = config.security;
  const all = [{ place: 'security.approvers', approvers }, ...confirm].filter((rule) => rule.approvers.client === true);
  const [first] = all;
  if (first === undefined) return [];
  const message =
    'an agent over HTTP can approve its own calls: anyone who has its token can answer the question. Leave out "client" and "any" unless you trust every client to ask a person.';
  const { settings } = config.written();
  const stored = await openAgentStore(config.dataDir)
    .read()
    .catch(() => []);
  const isHttp = 'http' in settings || 'agents' in settings || Boolean(env.BEARER_TOKEN) || (stored ?? []).length > 0;
  return [{ level: isHttp ? 'warning' : 'ok', about: first.place, message }];
}

/** Warns about secrets in arguments, because everyone on the machine can read the arguments of a process. */
function argumentFindings({ servers }: Config): Diagnosis[] {
  return servers.flatMap(({ key, launch }): Diagnosis[] => {
    const names = secretsInArguments(launch);
    if (names.length === 0) return [];
    const message = `${names.join(', ')} is in its arguments, which everyone on this machine can read in the process list. Pass it in env.`;
    return [{ level: 'warning', about: key, message }];
  });
}

/** What servers did that they should not, such as printing lines that are not MCP; by server, each once. */
function collectNotes({ events }: Gateway): ReadonlyMap<string, ReadonlySet<string>> {
  const notes = new Map<string, Set<string>>();
  events.listen((name, event) => {
    if (name !== 'note') return;
    const { source, message } = event as EventMap['note'];
    getOrMake(notes, source, () => new Set<string>()).add(message);
  });
  return notes;
}

/** The last lines, each once: a server that is tried again and again says the same every time, with another time. */
function lastLines(stderr: string): string {
  const lines = new Map<string, string>();
  for (const line of stderr.trimEnd().split('\n')) {
    const same = line.replace(/\d+/g, '0');
    if (!lines.has(same) || same.trim() === '') lines.set(same, line);
  }
  return [...lines.values()].slice(-MOST_LINES).join('\n');
}

function serverFindings(
  gateway: Gateway,
  notes: ReadonlyMap<string, ReadonlySet<string>>,
  env: CommandIo['env'],
): Diagnosis[] {
  const statuses = gateway.statuses().filter(({ state }) => state !== 'broken' && state !== 'untrusted');
  if (statuses.length === 0 && gateway.config.broken.length === 0)
    return [{ level: 'warning', about: 'servers', message: 'No servers are configured.' }];
  return statuses.map(({ key, present, state, detail, revision, required, stderr, login, agentLogins }): Diagnosis => {
    if (!present || state === 'locked') {
      const [note] = notes.get(key) ?? [];
      return {
        level: required ? 'broken' : 'warning',
        about: key,
        message: `${state}${detail === '' ? '' : `: ${detail}`}${note === undefined ? '' : `. ${note.startsWith('Server ') ? '' : 'It '}${note}`}${variablesText(gateway, key, `${detail} ${stderr}`, env)}`,
        stderr: lastLines(stderr),
      };
    }
    const tools = [...gateway.catalog.entries.tool.values()].filter(({ sourceKey }) => sourceKey === key).length;
    const protocol = revision === null ? '' : `, protocol ${revision}`;
    const who = login === undefined ? '' : `, ${loginText(login)}`;
    const agents = agentsText(agentLogins).map((text) => `; ${text}`);
    const message = `${`${state}, ${counted(tools, 'tool')}${protocol} ${detail}`.trim()}${who}${agents}`;
    return { level: 'ok', about: key, message };
  });
}

/** A server that fails often says which variable it misses, and does not know that it is set, but not passed on. */
function variablesText({ config }: Gateway, key: string, text: string, env: CommandIo['env']): string {
  const launch = config.servers.find((one) => one.key === key)?.launch;
  const names = launch?.kind === 'stdio' ? missingVariables(text, launch, env) : [];
  if (names.length === 0) return '';
  const list = names.map((name) => JSON.stringify(name)).join(', ');
  return `. It names ${names.join(', ')}: set here, but not passed on to servers. Add to its entry: inherit_env = [${list}]`;
}

/** Tool files that did not load, and what is wrong with the folders: nothing else tells that tools are missing. */
async function folderFindings(gateway: Gateway): Promise<Diagnosis[]> {
  const { problems } = await scanFolders(gateway.config);
  const unloaded = gateway
    .statuses()
    .flatMap(({ key, problems: own }) => own.map((one) => ({ source: key, message: problemText(one) })));
  return [...unloaded, ...problems].map(({ source, message }) => ({ level: 'warning', about: source, message }));
}

/** Names and patterns that match nothing, toolsets whose files cannot be used, and one that should be equipped but is missing. */
async function ruleFindings({
  config,
  catalog,
  statuses,
  toolsets,
  namespaces,
  equipped,
  toolsetFolders,
}: Gateway): Promise<Diagnosis[]> {
  const { toolsets: all, problems } = await toolsets.list();
  const made = all
    .filter(({ place }) => place !== 'implicit')
    .map((toolset) => ({ ...toolset, isForAll: toolset.place === 'user' }));
  const running = statuses();
  // Disabled servers and folders without a tool exist too.
  const others = [
    ...[...config.servers, ...config.folders.named].map(({ key, namespace }) => ({ key, namespace })),
    ...[...namespaces()].map((namespace) => ({ key: namespace, namespace })),
  ].filter((one) => running.every(({ key, namespace }) => key !== one.key && namespace !== one.namespace));
  const servers = [...running, ...others.map((one) => ({ ...one, present: false }))];
  const unmatched = unmatchedRules(config, made, catalog, servers);
  const missing = equipped?.isMissing === true ? [missingText(equipped.name)] : [];
  return [
    ...missing.map((message): Diagnosis => ({ level: 'warning', about: 'toolsets', message })),
    ...unmatched.map(({ about, message }): Diagnosis => ({ level: 'warning', about, message })),
    ...(await Promise.all(problems.map((message) => toolsetFinding(message, toolsetFolders)))),
  ];
}

/** The problem of a toolset's file. One that is damaged can be set aside. */
async function toolsetFinding(message: string, folders: readonly string[]): Promise<Diagnosis> {
  const files = await Promise.all(
    folders.map(async (folder) => (await readdir(folder).catch(() => [])).map((name) => join(folder, name))),
  );
  const damaged = files.flat().find((file) => message.startsWith(`${file} is not a toolset`));
  return {
    level: 'broken',
    about: 'toolsets',
    message,
    ...(damaged !== undefined && { repair: async () => `${damaged} ${await setAside(damaged)}` }),
  };
}

/** What a new client sees is no problem, but it surprises people. */
function firstListFindings(gateway: Gateway): Diagnosis[] {
  return firstListLines(gateway).map((message) => ({ level: 'ok', about: 'clients', message }));
}

/** A file of vectors that cannot be used. The search goes on by words, so nobody would notice. */
async function vectorFindings({ learning }: Gateway): Promise<Diagnosis[]> {
  const problem = await learning.vectorProblem();
  return problem === null ? [] : [{ level: 'warning', about: 'search', message: problem }];
}

/** Servers that are named with what they cost. */
const MOST_COSTS = 3;

/** What all tools cost a model, and what the clients of a running gateway were sent. */
async function tokenFindings(gateway: Gateway, running: StatusReport | null): Promise<Diagnosis[]> {
  const { tokenizer, servers } = await gateway.tokens();
  if (servers.length === 0) return [];
  const sum = (costs: readonly { readonly tools: number; readonly tokens: number }[]) => ({
    tools: costs.reduce((all, { tools }) => all + tools, 0),
    tokens: costs.reduce((all, { tokens }) => all + tokens, 0),
  });
  const { tools, tokens } = sum(servers);
  const most = [...servers].sort((a, b) => b.tokens - a.tokens).slice(0, MOST_COSTS);
  const named = most.map((one) => `${one.server} ${one.tokens.toLocaleString('en-US')}`).join(', ');
  const all = `The definitions of all ${counted(tools, 'tool')} have ${countedTokensText(tokens)} (${tokenizer}): ${named}${servers.length > MOST_COSTS ? ', …' : ''}. By tool, toolset, agent or client: toolgate list --tokens`;
  return [
    { level: 'ok', about: 'tokens', message: all },
    ...(running === null || running.clients.length === 0 ? [] : [sentFinding(running.clients)]),
  ];
}

function sentFinding(clients: StatusReport['clients']): Diagnosis {
  const changes = clients.reduce((all, { lists }) => all + lists.changes, 0);
  const bytes = clients.reduce((all, { results }) => all + results.bytes, 0);
  const now = clients.reduce((all, { tokens }) => all + tokens, 0);
  const message = `${counted(clients.length, 'client')} ${clients.length === 1 ? 'has a list' : 'have lists'} of about ${tokensText(now)}, changed ${counted(changes, 'time')}, and got results of about ${tokensText(tokensOfBytes(bytes))}. Each: toolgate list clients`;
  return { level: 'ok', about: 'tokens', message };
}

const MARKS = { ok: ['green', '✓'], warning: ['yellow', '!'], broken: ['red', '✗'] } as const;

function toText({ level, about, message, stderr = '' }: Diagnosis, io: CommandIo): string {
  const [style, mark] = MARKS[level];
  const lines = stderr === '' ? [] : plain(stderr).split('\n');
  return [
    `${paint(style, mark, io)} ${paint('bold', about, io)}: ${plain(message)}`,
    ...lines.map((line) => paint('dim', `    ${line}`, io)),
  ].join('\n');
}
