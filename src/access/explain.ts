/** Explains to the operator why an agent may use something, or may not. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS } from '../catalog/item.ts';
import { matchesTemplate } from '../catalog/template.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { aliased } from './alias.ts';
import { type Decision, deniesName, explain, type Rules, rulesFor } from './policy.ts';

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
  agent: string,
  name: string,
  now: Date,
): EntryDecision[] {
  const entries = KINDS.flatMap((kind) => {
    const exposed = catalog.claims[kind].get(name);
    return exposed == null ? aliased(catalog, kind, name) : [exposed];
  });
  const expanded = entries.length === 0 ? templatesOf(catalog, name) : [];
  if (expanded.length > 0) {
    if (policy === null) return expanded.map(({ entry }) => ({ entry, allowed: true, findings: [] }));
    const rules = rulesFor(policy, agent);
    return expanded.map(({ entry, uri }) => ({ entry, ...explainUri(rules, entry, uri, now) }));
  }
  if (entries.length === 0) {
    const away = awayWith(catalog, KINDS, name);
    if (away.length > 0)
      throw awayError(away, `Whether anything is called "${name}" is not known now: ${awayText(away)}.`);
    const names = KINDS.flatMap((kind) => [...catalog.claims[kind].keys()]);
    throw new GatewayError('item_unknown', `Nothing is called "${name}".${didYouMean(name, names)}`);
  }
  if (policy === null) return entries.map((entry) => ({ entry, allowed: true, findings: [] }));
  const rules = rulesFor(policy, agent);
  return entries.map((entry) => ({ entry, ...withUses(explain(rules, entry, now), entry) }));

  /** A macro may be used if all its tools may. */
  function withUses(decision: Decision, { item, name: macro }: Entry): Decision {
    if (!decision.allowed || item.uses === undefined) return decision;
    const used = [...catalog.claims.tool.values()].filter(
      (one) => one !== null && item.uses?.includes(canonicalName(one)),
    );
    const denied = used.find((one) => one !== null && !explain(rules, one, now).allowed);
    const rule = `macros.${macro}`;
    const text =
      denied == null
        ? 'calls only what the agent may use'
        : `calls "${canonicalName(denied)}", which the agent may not use`;
    const verdict = denied == null ? 'passes' : 'deny';
    return { allowed: denied == null, findings: [...decision.findings, { rule, verdict, text }] };
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

/** A URI is allowed if its template is, unless it is denied by its own name. */
function explainUri(rules: Rules, template: Entry, uri: string, now: Date): Decision {
  const named = deniesName(rules, template, uri) ? { ...template, item: { ...template.item, name: uri } } : template;
  return explain(rules, named, now);
}
