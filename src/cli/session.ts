/** A gateway for the length of one command. */
import {
  findKey,
  type Gateway,
  INSECURE_TEXT,
  type LoadOptions,
  loadConfig,
  loadTask,
  openGateway,
  requireProfile,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { readLogLevel, startLog } from './log.ts';
import { paint, withSpinner } from './terminal.ts';

export function loadOptions(options: Options): LoadOptions {
  return { cwd: process.cwd(), env: process.env, ...(options.config === undefined ? {} : { path: options.config }) };
}

export async function startGateway(options: Options, defaultLevel: string, audit?: boolean): Promise<Gateway> {
  const level = readLogLevel(options['log-level'] ?? levelOf(process.env.LOG_LEVEL) ?? defaultLevel);
  const config = await loadConfig(loadOptions(options));
  const task = options.task === undefined ? null : await loadTask(options.task, process.cwd());
  if (task !== null) requireProfile(task, config.tasks.rules());
  const gateway = await openGateway(config, { task, ...(audit !== undefined && { audit }) });
  const equipped = options['equip-toolset'];
  if (equipped !== undefined)
    await gateway.equip(equipped).catch((error) => gateway.close().then(() => Promise.reject(error)));
  startLog(gateway, level);
  // Loud, whatever the level.
  if ((await findKey(config.vault).catch(() => null))?.isInsecure === true)
    process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${INSECURE_TEXT}\n`);
  for (const message of config.notices) gateway.events.emit('note', { source: 'configuration', message });
  return gateway;
}

/** Programs in Python say `warning`. */
function levelOf(variable: string | undefined): string | undefined {
  const level = variable?.toLowerCase();
  return level === 'warning' ? 'warn' : level || undefined;
}

/**
 * Runs `work` when every server has been tried, or as soon as what is there `suffices`, and closes the gateway whatever
 * happens.
 */
export async function withGateway(
  options: Options,
  work: (gateway: Gateway) => Promise<number>,
  audit?: boolean,
  suffices?: (gateway: Gateway) => boolean,
): Promise<number> {
  const gateway = await startGateway(options, 'error', audit);
  const interrupted = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(130));
  });
  try {
    await Promise.race([interrupted, withSpinner('starting servers', untilServed(gateway, suffices))]);
    return await Promise.race([interrupted, work(gateway)]);
  } finally {
    await gateway.close();
  }
}

function untilServed(gateway: Gateway, suffices: (gateway: Gateway) => boolean = () => false): Promise<void> {
  return new Promise((resolve, reject) => {
    gateway.events.listen((name) => {
      if (name === 'catalog' && suffices(gateway)) resolve();
    });
    gateway.tried().then(resolve, reject);
  });
}
