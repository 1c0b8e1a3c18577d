/** The catalog as seen from inside a task: only the tools that the task needs, and the other items of their servers. */
import type { Catalog } from '../catalog/catalog.ts';
import { narrow, rememberNarrowed } from '../catalog/narrow.ts';
import type { Task } from '../config/task.ts';
import type { TaskRules } from '../config/tasks.ts';
import { planTask } from './plan.ts';

const tasks = rememberNarrowed<TaskRules>();

/** Equal for equal tasks. */
export function taskKey({ service, type, description, profile }: Task): string {
  return JSON.stringify([service, type, description, profile]);
}

export function narrowToTask(catalog: Catalog, task: Task, rules: TaskRules): Catalog {
  return tasks(catalog, rules, taskKey(task), () => {
    const needed = new Set(planTask(task, rules, catalog).tools.map(({ entry }) => entry));
    const servers = new Set([...needed].map((entry) => entry?.sourceId));
    return narrow(catalog, {
      keep: (entry) => (entry.kind === 'tool' ? needed.has(entry) : servers.has(entry.sourceId)),
    });
  });
}
