/** Fills a plan with tools that the search finds for the task, where rules leave something open. */
import type { Match } from '../catalog/search/search.ts';
import type { Task } from '../config/task.ts';
import type { Plan, PlannedTool } from './plan.ts';

/** What the search is asked for: the service and the description. */
export function taskQuery({ service, description }: Task): string {
  return [service, description].filter((text) => text !== '').join('. ');
}

/** The most tools that the search looks at, and the part of the best score that a tool must have to be taken. */
export const MOST_FOUND = 15;
const LEAST_SHARE = 0.6;

/** The plan with the tools among `matches` that are about as good as the best one. Each says that the search found it. */
export function fillPlan(plan: Plan, matches: readonly Match[]): Plan {
  const planned = new Set(plan.tools.map(({ entry }) => entry));
  const least = (matches[0]?.score ?? 0) * LEAST_SHARE;
  const found = matches
    .map(({ entry, score }, i) => ({ entry, score, place: i + 1 }))
    .filter(({ entry, score }) => score >= least && !planned.has(entry))
    .map(
      ({ entry, place }): PlannedTool => ({
        server: entry.sourceKey,
        tool: entry.item.name,
        entry,
        reasons: [`search: match ${place} for the description`],
      }),
    );
  return { ...plan, tools: [...plan.tools, ...found] };
}
