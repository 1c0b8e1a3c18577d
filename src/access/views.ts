/** Views of one catalog, made once for all callers with the same permission and the same selection. */
import type { Permission } from './permission.ts';
import type { Selection } from './selection.ts';
import type { View } from './view.ts';

const MOST = 500;

export interface Views {
  of(permission: Permission | null, selection: Selection): View;
  /** Another catalog is in force, or other controls. */
  forget(): void;
}

export function createViews(build: (permission: Permission | null, selection: Selection) => View): Views {
  const made = new Map<string, View>();
  return {
    of(permission, selection) {
      const key = permission === null ? selection.key : `${permission.key} ${selection.key}`;
      const known = made.get(key);
      if (known !== undefined) return known;
      if (made.size >= MOST) made.delete(made.keys().next().value!);
      const view = build(permission, selection);
      made.set(key, view);
      return view;
    },
    forget: () => made.clear(),
  };
}
