/** Prints the configuration of a task: as TOML with the reasons, as JSON, or as a ConfigMap of Kubernetes. */
import { stringify } from 'smol-toml';
import type { Plan } from './plan.ts';
import type { PlanConfig } from './plan-config.ts';

/** A plan as `tools.toml`, with its reasons as comments. */
export function planToml(plan: Plan, { value }: PlanConfig): string {
  return `${reasons(plan)
    .map((line) => `# ${line}`.trimEnd())
    .join('\n')}\n\n${stringify(value as Record<string, unknown>)}`;
}

/** A plan as `toolgate.json`. */
export function planJson({ value }: PlanConfig): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** `name` is the name of the ConfigMap. */
export async function planConfigMap(plan: Plan, config: PlanConfig, name: string): Promise<string> {
  const { stringify: toYaml } = await import('yaml');
  const labels = {
    'app.kubernetes.io/name': 'toolgate',
    'app.kubernetes.io/managed-by': 'toolgate',
    ...(isLabel(plan.task.service) && { 'toolgate/service': plan.task.service }),
    ...(isLabel(plan.task.type) && { 'toolgate/type': plan.task.type }),
  };
  return toYaml(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, labels },
      data: { 'toolgate.toml': planToml(plan, config) },
    },
    { lineWidth: 0 },
  );
}

/** A name that Kubernetes accepts, made from the service. */
export function configMapName({ task }: Plan): string {
  const slug = task.service
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 50)
    .replace(/-+$/, '');
  return slug === '' ? 'toolgate-task' : `toolgate-${slug}`;
}

export const CONFIG_MAP_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

function isLabel(text: string): boolean {
  return /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(text);
}

function reasons({ task, profile, rules, tools, missing, notes }: Plan): string[] {
  const about = [
    ...(task.service === '' ? [] : [`service "${task.service}"`]),
    ...(task.type === '' ? [] : [`type "${task.type}"`]),
    ...(task.description === '' ? [] : [`"${brief(task.description)}"`]),
  ];
  return [
    `What this task needs: ${about.join(', ') || `profile "${profile}"`}.`,
    `Profile: ${profile ?? 'none'}. Rules: ${rules.join(', ') || 'none'}.`,
    '',
    ...tools.map(
      ({ server, tool, entry, reasons }) =>
        `${server}.${tool}: ${reasons.join('; ')}${entry === null ? ' (not checked: the server could not be asked)' : ''}`,
    ),
    ...(tools.length === 0 ? ['Nothing: no rule matches, or no server has what they name.'] : []),
    ...(missing.length + notes.length === 0 ? [] : ['', ...missing, ...notes]),
  ].map(oneLine);
}

function brief(text: string): string {
  const characters = [...oneLine(text).trim()];
  return characters.length > 100 ? `${characters.slice(0, 99).join('')}…` : characters.join('');
}

/** A line break in foreign text would end the comment. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
}
