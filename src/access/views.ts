/** Views of one catalog, made once for all callers with the same selection. */
import type { Selection } from './selection.ts';
import type { View } from './view.ts';

const MOST = 100;

export interface Views {
  of(selection: Selection): View;
  /** Another catalog is in force, or other controls. */
  forget(): void;
}

export function createViews(build: (selection: Selection) => View): Views {
  const made = new Map<string, View>();
  return {
    of(selection) {
      const known = made.get(selection.key);
      if (known !== undefined) return known;
      if (made.size >= MOST) made.delete(made.keys().next().value!);
      const view = build(selection);
      made.set(selection.key, view);
      return view;
    },
    forget: () => made.clear(),
  };
}
