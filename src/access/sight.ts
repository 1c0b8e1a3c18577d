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

/** A catalog that only some look at. */
export interface Share {
  catalog(): Catalog;
}

interface Seer {
  /** What is its own to see; null for what everybody does. */
  readonly sources: Share | null;
  readonly namespace: string | null;
  readonly tasks: readonly Task[];
  view(): View;
}

export interface Sight {
  readonly views: {
    /** `share` is null for what everybody sees. */
    of(share: Share | null, ...seen: Parameters<Views['of']>): View;
    forget(): void;
  };
  /** Whether there is anything of the server that the caller may use. */
  sees(seer: Seer, owner: Pick<Owner, 'key' | 'namespace'>): boolean;
  /** All that policy lets the caller use, whatever it works on or has switched on. */
  allowed(permission: Permission | null): Catalog;
  /** Whether there is anything in the namespace of which the agent may know. */
  knows(agent: string, namespace: string): boolean;
}

export function createSight({ catalog, config, controls, permissionOf }: Scene): Sight {
  const within = (all: Catalog, permission: Permission | null, tasks: readonly Task[]) =>
    planned(permitted(all, permission), tasks, config().tasks.rules);
  const viewsOf = (all: () => Catalog) =>
    createViews((permission, selection, namespace, tasks, plain) => {
      const own = namespace === null && tasks.length === 0 && plain !== true ? controls() : NO_CONTROLS;
      return buildView(namespaced(within(all(), permission, tasks), namespace, config()), selection, own, permission);
    });
  const common = viewsOf(catalog);
  // Those of a catalog go with it.
  let shares = new WeakMap<Catalog, Views>();

  function viewsIn(share: Share): Views {
    const all = share.catalog();
    const known = shares.get(all) ?? viewsOf(() => all);
    shares.set(all, known);
    return known;
  }

  return {
    views: {
      of: (share, ...seen) => (share === null ? common : viewsIn(share)).of(...seen),
      forget() {
        common.forget();
        shares = new WeakMap();
      },
    },
    sees(seer, { key, namespace }) {
      if (seer.namespace !== null && seer.namespace !== namespace) return false;
      const { permission } = seer.view();
      if (permission === null && seer.tasks.length === 0) return true;
      return within(seer.sources?.catalog() ?? catalog(), permission, seer.tasks).sources.has(key);
    },
    allowed: (permission) => within(catalog(), permission, []),
    knows(agent, namespace) {
      const permission = permissionOf(agent);
      return permission === null || isInhabited(permitted(catalog(), permission), namespace);
    },
  };
}
