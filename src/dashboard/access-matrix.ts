/** Which agent may use what, and what another policy would change. */
import { extname } from 'node:path';
import { stringify } from 'smol-toml';
import { circumstancesAt, plainSubject } from '../access/circumstances.ts';
import { confirmationsFor } from '../access/confirm.ts';
import { explainEntry } from '../access/explain.ts';
import { rulesFor } from '../access/policy.ts';
import type { View } from '../access/view.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { isObject, toObject } from '../base/objects.ts';
import { isPattern } from '../base/pattern.ts';
import { categoryOf } from '../catalog/category.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { configFromValue } from '../config/load.ts';
import { parseConfig, readConfigText } from '../config/parse.ts';
import { type PolicyConfig, policyShape } from '../config/policy.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { openAgentStore } from '../store/agents.ts';
import type { AccessCell, AccessMatrix, DryRunReport, PolicyText } from './api-types.ts';
import { isKind } from './catalog-window.ts';
import { wordsOf } from './inputs.ts';

const MOST_AGENTS = 50;

/** Large catalogs take a while for each agent. Calls go on in between. */
const othersFirst = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Everybody whom the configuration, the tokens, the policy or a client names. */
export async function knownAgents(gateway: Gateway): Promise<string[]> {
  const { agents, policy, dataDir } = gateway.config;
  const stored =
    (await openAgentStore(dataDir)
      .read()
      .catch(() => null)) ?? [];
  const names = [
    ...agents.map(({ name }) => name),
    ...stored.map(({ name }) => name),
    ...(policy?.agents ?? []).map(({ name }) => name).filter((name) => !isPattern(name)),
    ...gateway.clients().map(({ agent }) => agent),
  ];
  return ['default', ...[...new Set(names)].filter((name) => name !== 'default').sort()];
}

export async function accessMatrix(
  gateway: Gateway,
  query: URLSearchParams,
  offset: number,
  limit: number,
): Promise<AccessMatrix> {
  await gateway.opening;
  const kind = query.get('kind') || 'tool';
  if (!isKind(kind)) throw new GatewayError('params_invalid', `"kind" is ${KINDS.join(', ')}.`);
  const wanted = (query.get('agents') ?? '').split(',').filter((one) => one !== '');
  const known = wanted.length > 0 ? wanted : await knownAgents(gateway);
  const agents = known.slice(0, MOST_AGENTS);
  const words = wordsOf(query.get('q'));
  const server = query.get('server') ?? '';
  const { catalog, config } = gateway;
  const matching = [...catalog.claims[kind].values()].filter(
    (entry): entry is Entry =>
      entry !== null &&
      entry.sourceId !== BUILT_IN &&
      (server === '' || entry.sourceKey === server) &&
      words.every((word) => entry.name.toLowerCase().includes(word) || entry.sourceKey.toLowerCase().includes(word)),
  );
  const views: View[] = [];
  for (const agent of agents) {
    const door = openLocalDoor(gateway, 'default', agent);
    views.push(door.caller.view());
    door.close();
    await othersFirst();
  }
  const cell = (entry: Entry, i: number): AccessCell => {
    const { entries, catalog: allowed } = views[i]!;
    if (!allowed.claims[kind].has(entry.name) && !allowed.entries[kind].has(entry.name)) return 'denied';
    if (!catalog.entries[kind].has(entry.name)) return 'away';
    if (!allowed.entries[kind].has(entry.name)) return 'denied';
    if (
      kind === 'tool' &&
      confirmationsFor(config.security.confirm, agents[i]!, entry).some(({ condition }) => !condition.dryRun)
    )
      return 'asks';
    return entries[kind].has(entry.name) ? 'seen' : 'allowed';
  };
  return {
    total: matching.length,
    offset,
    hasPolicy: config.policy !== null,
    dryRun: config.policy?.dryRun ?? false,
    agents,
    moreAgents: known.slice(MOST_AGENTS),
    rows: matching.slice(offset, offset + limit).map((entry) => ({
      name: entry.name,
      kind,
      server: entry.sourceKey,
      category: kind === 'tool' ? categoryOf(entry).effect : null,
      cells: agents.map((_, i) => cell(entry, i)),
    })),
  };
}

const POLICY_KEYS = Object.keys(policyShape);

/** The policy in the language of the file. Policies have no secrets; what looks like one is removed all the same. */
export async function policyText(gateway: Gateway): Promise<PolicyText> {
  const { file } = gateway.config;
  const written = file === null ? {} : await writtenPolicy(file);
  const text = file !== null && extname(file) === '.toml' ? stringify(written) : JSON.stringify(written, null, 2);
  return { file, text: gateway.redact(text) };
}

async function writtenPolicy(file: string): Promise<object> {
  try {
    const { value } = await parseConfig(await readConfigText(file, file), file);
    const all = toObject(value);
    return Object.fromEntries(POLICY_KEYS.flatMap((key) => (Object.hasOwn(all, key) ? [[key, all[key]]] : [])));
  } catch {
    // A client's file, or one that is gone: it has no policy.
    return {};
  }
}

export interface DryRunInput {
  readonly text: string;
  readonly agents?: readonly string[] | undefined;
}

const MOST_CHANGES = 1_000;

export async function dryRunPolicy(gateway: Gateway, { text, agents: wanted }: DryRunInput): Promise<DryRunReport> {
  if (wanted !== undefined && wanted.length > MOST_AGENTS)
    throw new GatewayError('params_invalid', `"agents" names more than ${MOST_AGENTS}. Ask for fewer at a time.`);
  const policy = await readPolicy(text, gateway);
  const agents = wanted !== undefined && wanted.length > 0 ? wanted : await withNew(gateway, policy);
  const now = Date.now();
  const { catalog } = gateway;
  const entries = KINDS.flatMap((kind: Kind) => [...catalog.claims[kind].values()]).filter(
    (entry): entry is Entry => entry !== null && entry.sourceId !== BUILT_IN,
  );
  const changes: DryRunReport['changes'][number][] = [];
  let total = 0;
  const counts: DryRunReport['agents'][number][] = [];
  for (const agent of agents) {
    const decide = decider(gateway, gateway.config.policy, agent, now);
    const decideThen = decider(gateway, policy, agent, now);
    let [before, after] = [0, 0];
    for (const entry of entries) {
      const was = decide(entry).allowed;
      const next = decideThen(entry);
      if (was && entry.kind === 'tool') before++;
      if (next.allowed && entry.kind === 'tool') after++;
      if (was === next.allowed || ++total > MOST_CHANGES) continue;
      const last = next.findings.at(-1);
      changes.push({
        agent,
        name: entry.name,
        kind: entry.kind,
        server: entry.sourceKey,
        before: was ? 'allowed' : 'denied',
        after: next.allowed ? 'allowed' : 'denied',
        rule: last?.rule ?? '',
        reason: last?.text ?? 'no rule is about it',
      });
    }
    counts.push({ agent, before, after });
    await othersFirst();
  }
  const warnings = policy?.dryRun === true ? ['dry_run is on: the policy would only be recorded, not enforced.'] : [];
  return { changes, total, agents: counts, warnings };
}

/** Agents that only the new policy names are shown too. */
async function withNew(gateway: Gateway, policy: PolicyConfig | null): Promise<string[]> {
  const named = (policy?.agents ?? []).map(({ name }) => name).filter((name) => !isPattern(name));
  return [...new Set([...(await knownAgents(gateway)), ...named])].slice(0, MOST_AGENTS);
}

function decider({ catalog }: Gateway, policy: PolicyConfig | null, agent: string, now: number) {
  if (policy === null) return () => ({ allowed: true, findings: [] });
  const rules = rulesFor(policy, agent);
  const at = circumstancesAt(plainSubject(agent), now);
  return (entry: Entry) => explainEntry(catalog, rules, entry, at);
}

async function readPolicy(text: string, { env, redact }: Gateway): Promise<PolicyConfig | null> {
  const value = text.trimStart().startsWith('{') ? readJsonPolicy(text) : await readTomlPolicy(text);
  if (!isObject(value))
    throw new GatewayError('params_invalid', 'The policy has to be a map, such as {"agent_policies": {…}}.');
  const other = Object.keys(value).find((key) => !POLICY_KEYS.includes(key));
  if (other !== undefined)
    throw new GatewayError(
      'params_invalid',
      `"${other.slice(0, 80)}" is no part of a policy. It has: ${POLICY_KEYS.join(', ')}.`,
    );
  try {
    return configFromValue(value, { cwd: '/', env }).policy;
  } catch (error) {
    throw new GatewayError('params_invalid', redact(messageOf(error)));
  }
}

function readJsonPolicy(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GatewayError('params_invalid', `The policy is not JSON: ${messageOf(error)}`, {
      details: lineOf(text, error),
    });
  }
}

/** Other text than JSON is TOML, as most configurations are. */
async function readTomlPolicy(text: string): Promise<unknown> {
  try {
    return (await parseConfig(text, POLICY_NAME)).value;
  } catch (error) {
    const [, line] = /:(\d+):\d+:/.exec(messageOf(error)) ?? [];
    throw new GatewayError('params_invalid', messageOf(error), {
      ...(line !== undefined && { details: { line: Number(line) } }),
    });
  }
}

/** What errors call the text. */
const POLICY_NAME = 'policy.toml';

/** Node says at which character, or line, it stopped. */
function lineOf(text: string, error: unknown): { readonly line?: number } {
  const [, line] = /line (\d+)/.exec(messageOf(error)) ?? [];
  if (line !== undefined) return { line: Number(line) };
  const [, at] = /position (\d+)/.exec(messageOf(error)) ?? [];
  return at === undefined ? {} : { line: text.slice(0, Number(at)).split('\n').length };
}
