/** Decides whether a client may switch a toolset on, and whether the names of its tools are free. */
import { didYouMean } from '../base/text.ts';
import type { Contribution } from '../catalog/catalog.ts';
import { exposedName, type Naming } from '../catalog/names.ts';
import { ToolingError, warn, wrongOptions } from './errors.ts';
import type { ExposurePolicy } from './types.ts';

/** The names of tools begin with the key of their toolset: `set.tool`. */
export const NAMING: Naming = { names: 'join', nameLimit: null, separator: '.' };

/** `keys` are the toolsets that exist. */
export function checkPolicy(policy: ExposurePolicy, keys: readonly string[]): void {
  const { maxActiveToolsets, allowlist, denylist, onLimitExceeded, namespaceToolsWithSetKey } = policy;
  const isCount = maxActiveToolsets === undefined || (Number.isInteger(maxActiveToolsets) && maxActiveToolsets >= 0);
  if (!isCount) throw wrongOptions('exposurePolicy.maxActiveToolsets must be a whole number.');
  for (const [key, list] of Object.entries({ allowlist, denylist }))
    if (list !== undefined && (!Array.isArray(list) || list.some((one) => typeof one !== 'string')))
      throw wrongOptions(`exposurePolicy.${key} must be a list of toolsets.`);
  // A misspelt name in `denylist` would leave open what should be closed; in `allowlist` it closes something.
  const open = unknownNames(denylist ?? [], keys);
  if (open !== '') throw wrongOptions(`exposurePolicy.denylist names ${open}`);
  const closed = unknownNames(allowlist ?? [], keys);
  if (closed !== '') warn(`exposurePolicy.allowlist names ${closed}`);
  if (namespaceToolsWithSetKey !== undefined && typeof namespaceToolsWithSetKey !== 'boolean')
    throw wrongOptions('exposurePolicy.namespaceToolsWithSetKey must be true or false.');
  if (onLimitExceeded !== undefined && typeof onLimitExceeded !== 'function')
    throw wrongOptions('exposurePolicy.onLimitExceeded must be a function.');
}

/** The end of a sentence about names that no toolset has; empty if there are none. */
export function unknownNames(named: readonly string[], keys: readonly string[]): string {
  const unknown = [...new Set(named)].filter((name) => !keys.includes(name));
  if (unknown.length === 0) return '';
  const [first] = unknown;
  return `toolsets that do not exist: ${unknown.join(', ')}.${unknown.length === 1 ? didYouMean(first!, keys) : ''}`;
}

/** Whether the toolset may be switched on at all. */
export function isExposed({ allowlist, denylist }: ExposurePolicy, toolset: string): boolean {
  return allowlist?.includes(toolset) !== false && denylist?.includes(toolset) !== true;
}

/** Throws if the toolset may not be switched on, or if too many are on already. */
export function requireExposed(policy: ExposurePolicy, toolset: string, active: readonly string[]): void {
  if (!isExposed(policy, toolset))
    throw new ToolingError('E_VALIDATION', `The toolset "${toolset}" is not allowed here.`);
  const { maxActiveToolsets: most } = policy;
  if (most === undefined || active.length < most) return;
  policy.onLimitExceeded?.([toolset], [...active]);
  const instead = active.length === 0 ? '' : ` Disable one first: ${active.join(', ')}.`;
  const text = `The toolset "${toolset}" would be one too many: at most ${most} may be enabled at a time.${instead}`;
  throw new ToolingError('E_POLICY_MAX_ACTIVE', text);
}

/** Throws if two tools would have the same name. `taken` maps names that are in use to their owners. */
export function requireFreeNames(contributions: readonly Contribution[], taken: ReadonlyMap<string, string>): void {
  const owners = new Map(taken);
  for (const { key, namespace, offer } of contributions) {
    for (const { kind, name } of offer.items) {
      if (kind !== 'tool') continue;
      const exposed = exposedName(kind, namespace, name, NAMING);
      const owner = owners.get(exposed);
      if (owner !== undefined)
        throw new ToolingError(
          'E_TOOL_NAME_CONFLICT',
          `Two tools would be called "${exposed}": one of "${key}" and one of ${owner}. Nothing was enabled; rename one of them.`,
        );
      owners.set(exposed, `"${key}"`);
    }
  }
}
