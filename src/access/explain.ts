/** Explains to the operator why an agent may use something, or may not. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { matchesTemplate } from '../catalog/template.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { aliased } from './alias.ts';
import { type Circumstances, circumstancesAt, plainSubject, type Subject } from './circumstances.ts';
import { type Decision, expandedEntry, explain, isUriAllowed, type Rules, rulesFor } from './policy.ts';
import { normalUri } from './uri-spelling.ts';

/** One item, and what the policy says about it. */
export interface EntryDecision extends Decision {
  readonly entry: Entry;
}

/**
 * What the policy says about everything of that name, of any kind: an exposed name, `server:name`, the server's own
 * name, or a URI that a template makes. Throws if nothing has the name.
 *
 * @example
 * const { catalog, config } = gateway;
 * for (const { entry, allowed } of explainName(catalog, config.policy, 'ci', 'files_write_file', new Date()))
 *   console.log(entry.name, allowed);
 */
export function explainName(
  catalog: Catalog,
  policy: PolicyConfig | null,
  agent: string | Subject,
  name: string,
  now: Date,
): EntryDecision[] {
  const subject = typeof agent === 'string' ? plainSubject(agent) : agent;
  const decisions = decisionsOn(catalog, policy, name, KINDS, circumstancesAt(subject, now.getTime()));
  if (decisions.length > 0) return decisions;
  const away = awayWith(catalog, KINDS, name);
  if (away.length > 0)
    throw awayError(away, `Whether anything is called "${name}" is not known now: ${awayText(away)}.`);
  const names = KINDS.flatMap((kind) => [...catalog.claims[kind].keys()]);
  throw new GatewayError('item_unknown', `Nothing is called "${name}".${didYouMean(name, names)}`);
}

/** The decisions on everything of these kinds that the name could mean; empty if nothing has it. */
function decisionsOn(
  catalog: Catalog,
  policy: PolicyConfig | null,
  name: string,
  kinds: readonly Kind[],
  at: Circumstances,
): EntryDecision[] {
  const entries = kinds.flatMap((kind) => {
    const exposed = catalog.claims[kind].get(name);
    return exposed == null ? aliased(catalog, kind, name) : [exposed];
  });
  const expanded = entries.length === 0 && kinds.includes('template') ? templatesOf(catalog, name) : [];
  if (policy === null) {
    const all = [...entries, ...expanded.map(({ entry }) => entry)];
    return all.map((entry) => ({ entry, allowed: true, findings: [] }));
  }
  const rules = rulesFor(policy, at.subject.agent);
  return [
    ...entries.map((entry) => ({ entry, ...explainEntry(catalog, rules, entry, at) })),
    ...expanded.map(({ entry, uri }) => ({ entry, ...explainUri(rules, entry, uri, at) })),
  ];
}

/** A macro may be used if all its tools may. */
export function explainEntry(catalog: Catalog, rules: Rules, entry: Entry, at: Circumstances): Decision {
  const decision = explain(rules, entry, at);
  const { item, name: macro } = entry;
  if (!decision.allowed || item.uses === undefined) return decision;
  const used = [...catalog.claims.tool.values()].filter(
    (one) => one !== null && item.uses?.includes(canonicalName(one)),
  );
  const denied = used.find((one) => one !== null && !explain(rules, one, at).allowed);
  const rule = `macros.${macro}`;
  const text =
    denied == null
      ? 'calls only what the agent may use'
      : `calls "${canonicalName(denied)}", which the agent may not use`;
  const verdict = denied == null ? 'passes' : 'deny';
  return { allowed: denied == null, findings: [...decision.findings, { rule, verdict, text }] };
}

/** What an agent asked for and did not get. */
export interface DeniedRequest {
  readonly subject: Subject;
  /** The item; null if it asked for the namespace as a whole. */
  readonly name: string | null;
  readonly kinds: readonly Kind[];
  /** The namespace that the request is limited to; null for all. */
  readonly namespace: string | null;
}

/** Why a request was denied, for the operator only: the agent must not learn that the item exists. */
export interface DenialReason {
  /** The server that has what was asked for. */
  readonly server: string;
  /** The key in the configuration; null if the policy allows it, and something else was missing. */
  readonly rule: string | null;
  /** What is not met, if the rule is a condition; otherwise null. */
  readonly text: string | null;
}

/** Null if there is no such thing: the request was misspelt. */
export function denialReason(
  catalog: Catalog,
  policy: PolicyConfig | null,
  { subject, name, kinds, namespace }: DeniedRequest,
  now: Date,
): DenialReason | null {
  const at = circumstancesAt(subject, now.getTime());
  const all = name === null ? everythingInside() : decisionsOn(catalog, policy, name, kinds, at);
  const inside = all.filter(({ entry }) => isInside(entry));
  const decisions = inside.length > 0 ? inside : all;
  const decisive = decisions.find(({ allowed }) => allowed) ?? decisions[0];
  if (decisive === undefined) return null;
  const { entry, allowed, findings } = decisive;
  const last = allowed ? undefined : findings.at(-1);
  const isCondition = last?.text.startsWith('is not met') === true;
  return { server: entry.sourceKey, rule: last?.rule ?? null, text: isCondition ? last.text : null };

  /** Macros have no namespace: they are addressed by the name of their server. */
  function isInside({ namespace: own, sourceKey }: Entry): boolean {
    return namespace === null || own === namespace || sourceKey === namespace;
  }

  function everythingInside(): EntryDecision[] {
    if (namespace === null) return [];
    const rules = policy === null ? null : rulesFor(policy, subject.agent);
    const entries = KINDS.flatMap((kind) => [...catalog.claims[kind].values()]);
    return entries
      .filter((entry) => entry !== null && isInside(entry))
      .map((entry) => ({
        entry: entry!,
        ...(rules === null ? { allowed: true, findings: [] } : explainEntry(catalog, rules, entry!, at)),
      }));
  }
}

/** The templates that a URI comes from, and the URI as their servers know it. */
function templatesOf({ claims }: Catalog, uri: string): { readonly entry: Entry; readonly uri: string }[] {
  return [...claims.template].flatMap(([name, entry]) => {
    if (entry === null) return [];
    const { item } = entry;
    if (matchesTemplate(name, uri)) return { entry, uri: uri.slice(name.length - item.name.length) };
    return matchesTemplate(item.name, uri) ? { entry, uri } : [];
  });
}

/** A URI is allowed if its template is, or if a list has the URI itself, unless it is denied by its own name. */
export function explainUri(rules: Rules, template: Entry, uri: string, at: Circumstances): Decision {
  const allowed = isUriAllowed(rules, template, uri, at);
  const ofTemplate = explain(rules, template, at);
  if (allowed && ofTemplate.allowed) return ofTemplate;
  const own = explain(rules, expandedEntry(template, uri), at);
  if (own.allowed === allowed) return own;
  if (!ofTemplate.allowed) return ofTemplate;
  const text = `is compared with "${normalUri(uri)}": other spellings are refused where a server has such rules`;
  return { allowed, findings: [{ rule: 'denied_resources', verdict: allowed ? 'allow' : 'deny', text }] };
}
