/** `toolgate plan`: the configuration that a task needs. */
import {
  CONFIG_MAP_NAME,
  type Config,
  configMapName,
  EMPTY_CATALOG,
  type Gateway,
  GatewayError,
  loadConfig,
  loadTask,
  openLocalDoor,
  type Plan,
  type PlanConfig,
  planConfig,
  planConfigMap,
  planJson,
  planTask,
  planToml,
  requireProfile,
  type Task,
  taskFromValue,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions, withGateway } from './session.ts';
import { jsonText, paint, plain } from './terminal.ts';

const FORMATS = ['toml', 'json', 'configmap'];

export async function plan(options: Options): Promise<number> {
  const format = options.format ?? 'toml';
  if (!FORMATS.includes(format))
    throw new GatewayError('usage', `--format is ${FORMATS.join(', ')}, and not "${format}".`);
  if (options.name !== undefined && !CONFIG_MAP_NAME.test(options.name))
    throw new GatewayError('usage', `"${options.name}" is no name for a ConfigMap: use small letters, digits and "-".`);
  const task = await readTask(options);
  if (options.offline !== true) {
    // The task is what is asked about: the gateway itself is to know everything.
    const { task: _, ...rest } = options;
    const work = (gateway: Gateway) => show(planIn(gateway, task, options.agent), gateway.config, options);
    return withGateway(rest, work, false);
  }
  if (options.agent !== undefined)
    throw new GatewayError('usage', '--agent needs to know what servers offer; leave out --offline.');
  const config = await loadConfig(loadOptions(options));
  requireProfile(task, config.tasks.rules());
  const servers = config.servers.filter(({ enabled }) => enabled).map((one) => ({ ...one, present: false }));
  return show(planTask(task, config.tasks.rules(), EMPTY_CATALOG, servers), config, options);
}

async function readTask({ task: file, service, type, description, profile }: Options): Promise<Task> {
  const given = Object.entries({ service, type, description, profile }).filter(([, value]) => value !== undefined);
  if (file === undefined && given.length === 0)
    throw new GatewayError(
      'usage',
      'Which task? toolgate plan --service S --type T --description TEXT, or --task FILE.',
    );
  const read = file === undefined ? {} : await loadTask(file, process.cwd());
  return taskFromValue({ ...read, ...Object.fromEntries(given) });
}

function planIn(gateway: Gateway, task: Task, agent: string | undefined): Plan {
  const rules = gateway.config.tasks.rules();
  requireProfile(task, rules);
  const { catalog } = openLocalDoor(gateway, 'all', agent ?? null).caller.view();
  return planTask(task, rules, catalog, gateway.statuses());
}

async function show(found: Plan, config: Config, options: Options): Promise<number> {
  if (options.json === true) {
    process.stdout.write(`${jsonText(asJson(found), 2)}\n`);
    return 0;
  }
  const made = planConfig(config, found);
  process.stdout.write(await textOf(found, made, options));
  const warn = (text: string) =>
    process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${plain(text)}\n`);
  if (found.tools.length === 0) warn('the task gets no tools: no rule fits, or no server has what they name.');
  for (const text of found.missing) warn(text);
  if (made.variables.length > 0)
    warn(`secrets are not printed. Set ${made.variables.join(', ')} in the environment of the gateway.`);
  return 0;
}

function textOf(found: Plan, made: PlanConfig, { format, name }: Options): string | Promise<string> {
  if (format === 'json') return planJson(made);
  return format === 'configmap' ? planConfigMap(found, made, name ?? configMapName(found)) : planToml(found, made);
}

function asJson({ tools, ...rest }: Plan) {
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
