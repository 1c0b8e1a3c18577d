/** What `toolgate plan` shows of a gateway: the tools that a task needs, and a configuration with only these. */
import { GatewayError } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import { type Task, taskFromValue } from '../../config/task.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { fillPlan, MOST_FOUND, taskQuery } from '../../plans/fill-plan.ts';
import { type Plan, planTask, requireProfile } from '../../plans/plan.ts';
import { planConfig } from '../../plans/plan-config.ts';
import { configMapName, planConfigMap, planJson, planToml } from '../../plans/plan-text.ts';
import { openLocalDoor } from '../local.ts';

export const PLAN_FORMATS = ['toml', 'json', 'configmap'] as const;

export interface PlanRequest {
  readonly task: Task;
  /** Only what this agent may use. Absent: everything. */
  readonly agent?: string;
  readonly format: (typeof PLAN_FORMATS)[number];
  /** Whether the search adds tools that match the description. Absent: only rules count. */
  readonly search?: boolean;
  /** Of the ConfigMap. */
  readonly name?: string;
}

/** A plan as `--json` prints it, and the configuration as text. */
export interface PlanReport {
  readonly plan: object;
  readonly text: string;
  /** What the user should know about it: one sentence each. */
  readonly warnings: readonly string[];
}

export async function planInGateway(gateway: Gateway, request: PlanRequest): Promise<PlanReport> {
  const rules = gateway.config.tasks.rules();
  const task = taskFromValue(request.task);
  requireProfile(task, rules);
  const door = openLocalDoor(gateway, 'all', request.agent ?? null);
  const { catalog } = door.caller.view();
  door.close();
  const plan = planTask(task, rules, catalog, gateway.statuses());
  if (request.search !== true) return reportPlan(plan, gateway.config, request);
  const search = await gateway.learning.search(door.caller, catalog);
  const { best } = search.find(taskQuery(task), MOST_FOUND, { kinds: new Set(['tool']) });
  return reportPlan(fillPlan(plan, best), gateway.config, request);
}

export async function reportPlan(
  plan: Plan,
  base: Config,
  { format, name }: Pick<PlanRequest, 'format' | 'name'>,
): Promise<PlanReport> {
  const config = planConfig(base, plan);
  const texts = {
    toml: () => planToml(plan, config),
    json: () => planJson(config),
    configmap: () => planConfigMap(plan, config, name ?? configMapName(plan)),
  };
  if (!Object.hasOwn(texts, format))
    throw new GatewayError('usage', `--format is one of ${PLAN_FORMATS.join(', ')}, not "${format}".`);
  return {
    plan: toJson(plan),
    text: await texts[format](),
    warnings: [
      ...(plan.tools.length === 0
        ? ['the task gets no tools: no rule matches, or no server has the tools they name.']
        : []),
      ...plan.missing,
      ...plan.notes,
      ...(config.variables.length > 0
        ? [`secrets are not printed. Set ${config.variables.join(', ')} in the environment of the gateway.`]
        : []),
    ],
  };
}

function toJson({ tools, ...rest }: Plan) {
  return {
    ...rest,
    tools: tools.map(({ server, tool, entry, reasons }) => ({
      name: entry?.name ?? null,
      server,
      tool,
      checked: entry !== null,
      reasons,
    })),
  };
}
