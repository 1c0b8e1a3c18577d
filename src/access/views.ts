/** Views of one catalog, made once for all callers with the same permission and the same selection, in the same namespace, with the same task. */
import type { Task } from '../config/task.ts';
import type { Permission } from './permission.ts';
import { taskKey } from './planned.ts';
import type { Selection } from './selection.ts';
import type { View } from './view.ts';

const MOST = 500;

export interface Views {
  /**
   * `namespace` is null for all of them, and there may be no `tasks`; `plain` leaves out Toolgate's own tools, which a namespace
   * or a task does not have anyway.
   */
  of(
    permission: Permission | null,
    selection: Selection,
    namespace: string | null,
    tasks: readonly Task[],
    plain?: boolean,
  ): View;
  /** Another catalog is in force, or other controls. */
  forget(): void;
}

export function createViews(build: Views['of']): Views {
  const made = new Map<string, View>();
  return {
    of(permission, selection, namespace, tasks, plain = false) {
      const chosen = permission === null ? selection.key : `${permission.key} ${selection.key}`;
      const inside = namespace !== null ? `${namespace} ${chosen}` : plain ? `\n${chosen}` : chosen;
      const key = tasks.length === 0 ? inside : `${tasks.map(taskKey).join(' ')} ${inside}`;
      const known = made.get(key);
      if (known !== undefined) return known;
      if (made.size >= MOST) made.delete(made.keys().next().value!);
      const view = build(permission, selection, namespace, tasks, plain);
      made.set(key, view);
      return view;
    },
    forget: () => made.clear(),
  };
}
