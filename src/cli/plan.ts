/** `toolgate plan`: prints the configuration that a task needs. */
import { GatewayError } from '../base/errors.ts';
import { EMPTY_CATALOG } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { loadTask, type Task, taskFromValue } from '../config/task.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type Plan, planTask, requireProfile } from '../plans/plan.ts';
import { type PlanConfig, planConfig } from '../plans/plan-config.ts';
import { CONFIG_MAP_NAME, configMapName, planConfigMap, planJson, planToml } from '../plans/plan-text.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { withGateway } from './session.ts';
import { jsonText, print, warn } from './terminal.ts';

const FORMATS = ['toml', 'json', 'configmap'];

export async function plan(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const format = options.format ?? 'toml';
  if (!FORMATS.includes(format))
    throw new GatewayError('usage', `--format is one of ${FORMATS.join(', ')}, not "${format}".`);
  if (options.name !== undefined && !CONFIG_MAP_NAME.test(options.name))
    throw new GatewayError(
      'usage',
      `"${options.name}" is not a valid ConfigMap name: use lower-case letters, digits and "-".`,
    );
  const task = await readTask(options, io);
  if (options.offline !== true) {
    // The gateway itself must see everything, so it is not narrowed to the task.
    const { task: __, ...rest } = options;
    const work = (gateway: Gateway) => show(planIn(gateway, task, options.agent), gateway.config, options, io);
    return withGateway(rest, io, work, { audit: false });
  }
  if (options.agent !== undefined)
    throw new GatewayError('usage', '--agent needs to know what the servers offer: leave out --offline.');
  const config = await loadConfig(loadOptions(options, io));
  requireProfile(task, config.tasks.rules());
  const servers = config.servers.filter(({ enabled }) => enabled).map((one) => ({ ...one, present: false }));
  return show(planTask(task, config.tasks.rules(), EMPTY_CATALOG, servers), config, options, io);
}

async function readTask({ task: file, service, type, description, profile }: Options, io: CommandIo): Promise<Task> {
  const given = Object.entries({ service, type, description, profile }).filter(([, value]) => value !== undefined);
  if (file === undefined && given.length === 0)
    throw new GatewayError(
      'usage',
      'Which task? toolgate plan --service S --type T --description TEXT, or --task FILE.',
    );
  const loaded = file === undefined ? {} : await loadTask(file, io.cwd());
  return taskFromValue({ ...loaded, ...Object.fromEntries(given) });
}

function planIn(gateway: Gateway, task: Task, agent: string | undefined): Plan {
  const rules = gateway.config.tasks.rules();
  requireProfile(task, rules);
  const { catalog } = openLocalDoor(gateway, 'all', agent ?? null).caller.view();
  return planTask(task, rules, catalog, gateway.statuses());
}

async function show(planned: Plan, base: Config, options: Options, io: CommandIo): Promise<number> {
  if (options.json === true) return print(jsonText(toJson(planned), 2), io);
  const config = planConfig(base, planned);
  io.stdout.write(await toText(planned, config, options));
  if (planned.tools.length === 0)
    warn('the task gets no tools: no rule matches, or no server has the tools they name.', io);
  for (const text of [...planned.missing, ...planned.notes]) warn(text, io);
  if (config.variables.length > 0)
    warn(`secrets are not printed. Set ${config.variables.join(', ')} in the environment of the gateway.`, io);
  return 0;
}

function toText(planned: Plan, config: PlanConfig, { format, name }: Options): string | Promise<string> {
  if (format === 'json') return planJson(config);
  return format === 'configmap'
    ? planConfigMap(planned, config, name ?? configMapName(planned))
    : planToml(planned, config);
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
