/** The lists that clients are told of: resources and their templates change as one. */
import type { Kind } from '../catalog/item.ts';
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
