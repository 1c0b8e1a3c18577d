/** `toolgate plan`: prints the configuration that a task needs. */
import { GatewayError } from '../base/errors.ts';
import { EMPTY_CATALOG } from '../catalog/catalog.ts';
import { loadConfig } from '../config/load.ts';
import { loadTask, type Task, taskFromValue } from '../config/task.ts';
import { PLAN_FORMATS, type PlanReport, reportPlan } from '../doors/commands/plan.ts';
import { planTask, requireProfile } from '../plans/plan.ts';
import { CONFIG_MAP_NAME } from '../plans/plan-text.ts';
import type { CommandIo } from './command-io.ts';
import { inGateway } from './in-gateway.ts';
import { loadOptions, type Options } from './options.ts';
import { jsonText, print, warn } from './terminal.ts';

export async function plan(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const format = PLAN_FORMATS.find((one) => one === (options.format ?? 'toml'));
  if (format === undefined)
    throw new GatewayError('usage', `--format is one of ${PLAN_FORMATS.join(', ')}, not "${options.format}".`);
  if (options.name !== undefined && !CONFIG_MAP_NAME.test(options.name))
    throw new GatewayError(
      'usage',
      `"${options.name}" is not a valid ConfigMap name: use lower-case letters, digits and "-".`,
    );
  const named = options.name === undefined ? {} : { name: options.name };
  const task = await readTask(options, io);
  if (options.offline !== true) {
    // The gateway itself must see everything, so it is not narrowed to the task.
    const { task: __, ...rest } = options;
    const search = options.search === true;
    const request = { task, format, search, ...named, ...(options.agent !== undefined && { agent: options.agent }) };
    return inGateway(rest, io, async (run) => show(await run('plan', request), options, io), { audit: false });
  }
  if (options.search === true)
    throw new GatewayError('usage', '--search looks at what the servers offer: leave out --offline.');
  if (options.agent !== undefined)
    throw new GatewayError('usage', '--agent needs to know what the servers offer: leave out --offline.');
  const config = await loadConfig(loadOptions(options, io));
  requireProfile(task, config.tasks.rules());
  const servers = config.servers.filter(({ enabled }) => enabled).map((one) => ({ ...one, present: false }));
  const planned = planTask(task, config.tasks.rules(), EMPTY_CATALOG, servers);
  return show(await reportPlan(planned, config, { format, ...named }), options, io);
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

function show({ plan: planned, text, warnings }: PlanReport, options: Options, io: CommandIo): number {
  if (options.json === true) return print(jsonText(planned, 2), io);
  io.stdout.write(text);
  for (const warning of warnings) warn(warning, io);
  return 0;
}
