/** A gateway for the duration of one command. */
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { removeTemporaries } from '../base/files.ts';
import { isLoopback } from '../base/loopback.ts';
import { counted } from '../base/text.ts';
import { requireOutside } from '../config/inside.ts';
import { loadConfig } from '../config/load.ts';
import type { ServerConfig } from '../config/servers.ts';
import { loadTask } from '../config/task.ts';
import { type Gateway, openGateway } from '../gateway/gateway.ts';
import { requireProfile } from '../plans/plan.ts';
import { findKey, INSECURE_TEXT } from '../store/secret-key.ts';
import type { Replica } from '../store/shared/replica.ts';
import type { CommandIo } from './command-io.ts';
import { startLog, writeLog } from './log.ts';
import { logLevel } from './log-level.ts';
import { loadOptions, type Options } from './options.ts';
import { warn, withSpinner } from './terminal.ts';
import { openTrust, type Trust } from './trust.ts';

export async function startGateway(
  options: Options,
  io: CommandIo,
  defaultLevel: string,
  { audit, stdout, adjust, endsByItself = false, trust = openTrust(options, io), replica }: GatewayStart = {},
): Promise<Gateway> {
  const level = logLevel(options, io, defaultLevel);
  const loaded = await loadConfig(loadOptions(options, io));
  requireOutside(loaded, io.env, endsByItself);
  await trust.ask(loaded);
  const config = await trust.hold(loaded);
  const task = options.task === undefined ? null : await loadTask(options.task, io.cwd());
  if (task !== null) requireProfile(task, config.tasks.rules());
  const gateway = await openGateway(config, {
    task,
    env: io.env,
    spawn: io.spawn,
    isLocal: isLoopback(options.host ?? config.http.host),
    ...(io.listWait !== undefined && { listWait: io.listWait }),
    ...(level === 'debug' && { printed: (source, message) => writeLog({ level: 'debug', source, message }, io) }),
    ...(audit !== undefined && { audit }),
    ...(stdout !== undefined && { stdout }),
    ...(adjust !== undefined && { adjust }),
    ...(replica !== undefined && config.store === null && { replica: await replica() }),
  });
  const equipped = options['equip-toolset'];
  if (equipped !== undefined) {
    try {
      await gateway.equip(equipped);
    } catch (error) {
      // It is equipped, but the next start will not know.
      if (error instanceof GatewayError && error.code === 'storage_failed') warn(error.message, io);
      else {
        await gateway.close();
        throw error;
      }
    }
  }
  startLog(gateway, level, io);
  void import('./edit-secrets.ts').then(({ removeEdits }) => removeEdits());
  void removeTemporaries(['', 'toolsets', 'offers', 'verdicts', 'approvals'].map((name) => join(config.dataDir, name)));
  // Shown at every log level.
  if ((await findKey(config.vault).catch(() => null))?.isInsecure === true) warn(INSECURE_TEXT, io);
  for (const message of config.notices) gateway.events.emit('note', { source: 'configuration', message });
  return gateway;
}

/** `28 of 31 servers tried; waiting for slow, other` */
export function progressText(gateway: Gateway): string {
  const all = gateway.statuses().filter(({ state }) => state !== 'broken' && state !== 'untrusted');
  const late = all.filter(({ state }) => state === 'starting').map(({ key }) => key);
  return `${all.length - late.length} of ${counted(all.length, 'server')} tried; waiting for ${late.join(', ')}`;
}

interface GatewayStart extends Pick<SessionOptions, 'audit' | 'adjust'> {
  /** Where copies of the audit may be printed. Absent: standard output belongs to somebody else. */
  readonly stdout?: CommandIo['stdout'];
  /** Kept by commands that follow the configuration. */
  readonly trust?: Trust;
  /** What it shares with other processes, if the configuration has no store. */
  readonly replica?: () => Promise<Replica>;
  /** Whether the command ends without being stopped. */
  readonly endsByItself?: boolean;
}

export interface SessionOptions {
  /** False for commands that only read: they leave nothing in the audit. */
  readonly audit?: boolean;
  /** Changes a server before it is started; null leaves it out. */
  readonly adjust?: (server: ServerConfig) => ServerConfig | null;
  /** Whether the servers that are up so far are enough to start. Otherwise every server is tried first. */
  readonly isEnough?: (gateway: Gateway) => boolean;
}

/** Runs `work` once the servers have been tried, and closes the gateway afterwards in any case. */
export async function withGateway(
  options: Options,
  io: CommandIo,
  work: (gateway: Gateway) => Promise<number>,
  { isEnough = () => false, ...session }: SessionOptions = {},
): Promise<number> {
  const gateway = await startGateway(options, io, 'error', { ...session, endsByItself: true });
  const interrupted = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) io.once(signal, () => resolve(130));
  });
  const started = new Promise<void>((resolve, reject) => {
    gateway.events.listen((name) => {
      if (name === 'catalog' && isEnough(gateway)) resolve();
    });
    gateway.tried().then(resolve, reject);
  });
  try {
    await Promise.race([interrupted, withSpinner(() => progressText(gateway), started, io)]);
    return await Promise.race([interrupted, work(gateway)]);
  } finally {
    await gateway.close();
  }
}
