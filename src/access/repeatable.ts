/** Which tools may be called a second time if nobody knows whether the first call had its effect. */
import { matchesPattern } from '../base/pattern.ts';
import { isOfCategory } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import { annotationsOf } from '../catalog/item.ts';
import type { StoreConfig } from '../config/store.ts';

/** Hints of a server count only if the operator trusts them. Other items than tools are only read. */
export function isRepeatable(
  entry: Entry,
  { repeat, trustHints }: Pick<StoreConfig, 'repeat' | 'trustHints'>,
): boolean {
  if (entry.kind !== 'tool') return true;
  if (repeat.some((one) => matchesPattern(one, entry.name) || isOfCategory(one, entry))) return true;
  if (!trustHints.some((one) => matchesPattern(one, entry.sourceKey))) return false;
  const { readOnlyHint, idempotentHint } = annotationsOf(entry.item);
  return readOnlyHint === true || idempotentHint === true;
}
