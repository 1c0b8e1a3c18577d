/** Explains to the operator why an agent may use something, or may not. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS } from '../catalog/item.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { aliased } from './alias.ts';
import { type Decision, explain, rulesFor } from './policy.ts';

/** One item, and what the policy says about it. */
export interface EntryDecision extends Decision {
  readonly entry: Entry;
}

/**
 * What the policy says about everything of that name, of any kind: an exposed name, `server:name`, or the server's own
 * name. Throws if nothing has the name.
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
  if (entries.length === 0) {
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
