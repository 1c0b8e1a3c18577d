/** Why an agent may use something, or may not, for the operator who asks. */

import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/similar.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS } from '../catalog/item.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { aliased } from './alias.ts';
import { type Decision, explain, rulesFor } from './policy.ts';

/** One item, and what the policy says of it. */
export interface EntryDecision extends Decision {
  readonly entry: Entry;
}

/**
 * What the policy says of everything of that name, of any kind: exposed, `server:name`, or the server's own. Throws where there is nothing.
 *
 * @example
 * for (const { entry, allowed } of explainName(gateway.catalog, gateway.config.policy, 'ci', 'files_write_file', new Date()))
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

  /** What is made of other tools may be used where all of those may. */
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
