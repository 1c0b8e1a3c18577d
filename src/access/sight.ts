/** What of all there is a caller gets to see: by policy, by the task it works on, by the namespace it is in. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Owner } from '../catalog/entry.ts';
import type { Config } from '../config/config.ts';
import type { Task } from '../config/task.ts';
import { isInhabited, NO_CONTROLS, namespaced } from './namespaced.ts';
import { type Permission, permitted } from './permission.ts';
import { planned } from './planned.ts';
import { buildView, type View, type ViewControls } from './view.ts';
import { createViews, type Views } from './views.ts';

/** What there is at the moment: each is replaced now and then. */
export interface Scene {
  catalog(): Catalog;
  config(): Config;
  controls(): ViewControls;
  /** What an agent may use now; null where it is everything. */
  permissionOf(agent: string): Permission | null;
}

interface Seer {
  readonly namespace: string | null;
  readonly tasks: readonly Task[];
  view(): View;
}

export interface Sight {
  readonly views: Views;
  /** Whether there is anything of the server that the caller may use. */
  sees(seer: Seer, owner: Pick<Owner, 'key' | 'namespace'>): boolean;
  /** All that policy lets the caller use, whatever it works on or has switched on. */
  allowed(permission: Permission | null): Catalog;
  /** Whether there is anything in the namespace of which the agent may know. */
  knows(agent: string, namespace: string): boolean;
}

export function createSight({ catalog, config, controls, permissionOf }: Scene): Sight {
  const within = (permission: Permission | null, tasks: readonly Task[]) =>
    planned(permitted(catalog(), permission), tasks, config().tasks.rules);
  return {
    views: createViews((permission, selection, namespace, tasks, plain) => {
      const own = namespace === null && tasks.length === 0 && plain !== true ? controls() : NO_CONTROLS;
      return buildView(namespaced(within(permission, tasks), namespace, config()), selection, own, permission);
    }),
    sees(seer, { key, namespace }) {
      if (seer.namespace !== null && seer.namespace !== namespace) return false;
      const { permission } = seer.view();
      if (permission === null && seer.tasks.length === 0) return true;
      return within(permission, seer.tasks).sources.has(key);
    },
    allowed: (permission) => within(permission, []),
    knows(agent, namespace) {
      const permission = permissionOf(agent);
      return permission === null || isInhabited(permitted(catalog(), permission), namespace);
    },
  };
}
