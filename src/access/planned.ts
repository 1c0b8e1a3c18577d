/** The catalog as it looks from inside a task: only the tools that it needs, and the other items of their servers. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import type { Task } from '../config/task.ts';
import type { TaskRules } from '../config/task-rules.ts';
import { planTask } from '../plans/plan.ts';

/** Callers make tasks up, so only so many are remembered. */
const MOST = 200;

// Callers with the same task look at the same catalog, so that what hangs on it is made once for all of them.
const made = new WeakMap<Catalog, WeakMap<TaskRules, Map<string, Catalog>>>();

/** Equal for equal tasks. */
export function taskKey({ service, type, description, profile }: Task): string {
  return JSON.stringify([service, type, description, profile]);
}

/** What one of the tasks does not need is as if it were not there. */
export function planned(catalog: Catalog, tasks: readonly Task[], rules: () => TaskRules): Catalog {
  return tasks.reduce((inside, task) => enter(inside, task, rules), catalog);
}

function enter(catalog: Catalog, task: Task, rules: () => TaskRules): Catalog {
  const present = rules();
  const byRules = made.get(catalog) ?? new WeakMap<TaskRules, Map<string, Catalog>>();
  const known = byRules.get(present) ?? new Map<string, Catalog>();
  made.set(catalog, byRules.set(present, known));
  const key = taskKey(task);
  const before = known.get(key);
  if (before !== undefined) return before;
  if (known.size >= MOST) known.delete(known.keys().next().value!);
  const narrowed = narrow(catalog, task, present);
  known.set(key, narrowed);
  return narrowed;
}

function narrow(catalog: Catalog, task: Task, rules: TaskRules): Catalog {
  const needed = new Set(planTask(task, rules, catalog).tools.map(({ entry }) => entry));
  const servers = new Set([...needed].map((entry) => entry?.sourceId));
  const stays = (entry: Entry) => (entry.kind === 'tool' ? needed.has(entry) : servers.has(entry.sourceId));
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  const claims = {} as Record<Kind, ReadonlyMap<string, Entry | null>>;
  const sources = new Set<string>();
  for (const kind of KINDS) {
    claims[kind] = new Map([...catalog.claims[kind]].filter(([, entry]) => entry === null || stays(entry)));
    entries[kind] = new Map([...catalog.entries[kind]].filter(([, entry]) => stays(entry)));
  }
  for (const entry of needed) if (entry !== null) sources.add(entry.sourceKey).add(entry.namespace);
  sources.delete('');
  return Object.freeze({ ...catalog, entries: Object.freeze(entries), claims: Object.freeze(claims), sources });
}
