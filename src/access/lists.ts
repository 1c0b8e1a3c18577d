/** The lists that clients are told of: resources and their templates change as one. */

import { GatewayError } from '../base/errors.ts';
import type { Kind } from '../catalog/item.ts';
import type { Era } from '../protocol/revisions.ts';
import type { View } from './view.ts';

export type ListKind = 'tools' | 'resources' | 'prompts';

export const LIST_KINDS: readonly ListKind[] = ['tools', 'resources', 'prompts'];

export function listOf(kind: Kind): ListKind {
  if (kind === 'tool') return 'tools';
  return kind === 'prompt' ? 'prompts' : 'resources';
}

/** Changes exactly when the list does. */
export function fingerprint(view: View, kind: ListKind): string {
  switch (kind) {
    case 'tools':
      return view.fingerprint('tool');
    case 'prompts':
      return view.fingerprint('prompt');
    case 'resources':
      return view.fingerprint('resource') + view.fingerprint('template');
    default:
      return kind satisfies never;
  }
}

/** A page of the list, or all of it where pages have no size. */
export function pageOf(view: View, kind: Kind, era: Era, size: number | null, cursor: string | null): Buffer {
  if (size === null && cursor === null) return view.list(kind, era);
  const page = size === null ? null : view.page(kind, era, size, cursor);
  if (page !== null) return page;
  throw new GatewayError('params_invalid', 'The cursor is unknown: the list may have changed. List from the start.');
}
