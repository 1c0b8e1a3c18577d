/** A gateway for the length of one command. */
import { createGateway, followFolders, type Gateway, type LoadOptions, loadConfig } from '../index.ts';
import type { Options } from './commands.ts';
import { readLogLevel, startLog } from './log.ts';
import { withSpinner } from './terminal.ts';

export function loadOptions(options: Options): LoadOptions {
  return { cwd: process.cwd(), env: process.env, ...(options.config === undefined ? {} : { path: options.config }) };
}

export async function startGateway(options: Options, defaultLevel: string, audit?: boolean): Promise<Gateway> {
  const level = readLogLevel(options['log-level'] ?? defaultLevel);
  const config = await loadConfig(loadOptions(options));
  const gateway = createGateway(config, audit === undefined ? {} : { audit });
  const equipped = options['equip-toolset'];
  if (equipped !== undefined)
    await gateway.equip(equipped).catch((error) => gateway.close().then(() => Promise.reject(error)));
  startLog(gateway, level);
  for (const message of config.notices) gateway.events.emit('note', { source: 'configuration', message });
  return gateway;
}

/** Runs `work` when every server has been tried, and closes the gateway whatever happens. */
export async function withGateway(
  options: Options,
  work: (gateway: Gateway) => Promise<number>,
  audit?: boolean,
): Promise<number> {
  const gateway = await startGateway(options, 'error', audit);
  const interrupted = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(130));
  });
  const folders = await followFolders(gateway);
  try {
    await Promise.race([interrupted, withSpinner('starting servers', gateway.tried())]);
    return await Promise.race([interrupted, work(gateway)]);
  } finally {
    folders.close();
    await gateway.close();
  }
}
