/** `toolgate manager`: the process with which models manage folders of tools. Also its start by `toolgate serve`. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { openHttpDoor } from '../doors/http/server.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { followConfigAndSignal, followSecrets } from '../gateway/watch.ts';
import { type Manager, openManager } from '../manager/open-manager.ts';
import { SUPERVISED, superviseManager } from '../manager/supervise.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { watchNamespaces } from '../workers/watch-folders.ts';
import { readPort } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { startLog, writeLog } from './log.ts';
import { logLevel } from './log-level.ts';
import { loadOptions, type Options } from './options.ts';
import { paint, print, untilSignal } from './terminal.ts';
import { openTrust, trustAdded } from './trust.ts';

const NEEDS_CREDENTIAL =
  'The manager does not listen without a credential, because its tools write and run code. Set BEARER_TOKEN, or give an agent a token: toolgate agents add NAME.';

export async function manager(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const trust = openTrust(options, io);
  const config = await trust.hold(await loadConfig(loadOptions(options, io)));
  const level = logLevel(options, io, 'warn');
  const opened = await openManager(config, {
    env: io.env,
    logLevel: level,
    creating: (create) => trustAdded(options, io, create),
    trustAdvice: trust.advice(config),
    gateway: { audit: true, stdout: io.stdout, ...(io.spawn !== undefined && { spawn: io.spawn }) },
  });
  const { gateway } = opened;
  startLog(gateway, level, io);
  try {
    const door = await openHttpDoor(gateway, {
      host: options.host ?? config.http.host,
      port: options.port === undefined ? config.manager.port : readPort(options.port),
      portOption: '--port or MANAGER_PORT',
      token: io.env.BEARER_TOKEN || null,
      needsCredential: NEEDS_CREDENTIAL,
    });
    opened.listens(door.port);
    const isSupervised = Boolean(io.env[SUPERVISED]);
    const following = [
      followConfigAndSignal(gateway, loadOptions(options, io), io, {
        hold: async (read) => opened.adjust(await trust.hold(read)),
        file: trust.file,
      }),
      followSecrets(gateway),
      // The core that started it watches the folders itself.
      ...(config.folders.watch && !isSupervised ? [await watchFolders(opened, config)] : []),
    ];
    const stop = untilSignal(io);
    print(`The manager of Toolgate is listening on ${paint('bold', door.url, io)}`, io);
    await (isSupervised ? Promise.race([stop, ended(io)]) : stop);
    for (const one of following) one.close();
    gateway.approvals.stop();
    await door.drain(config.http.drain);
    await door.close();
    return 0;
  } finally {
    await opened.close();
    io.stdin.destroy();
  }
}

/** Resolves when the process that started this one is gone: it holds the other end of our input. */
function ended({ stdin }: CommandIo): Promise<void> {
  return new Promise((resolve) => {
    stdin.once('end', resolve);
    stdin.once('error', () => resolve());
    stdin.resume();
  });
}

/** Tells the core of changes in the folders. It may not see them: it may run elsewhere, with its own watch off. */
async function watchFolders({ gateway, core }: Manager, { dataDir, folders }: Config): Promise<{ close(): void }> {
  let isRunning = false;
  let isStale = false;
  const reload = async (): Promise<void> => {
    isRunning = true;
    while (isStale) {
      isStale = false;
      await core.reload(null).catch((error: unknown) => {
        gateway.events.emit('note', { source: 'core', message: messageOf(error) });
      });
    }
    isRunning = false;
  };
  return watchNamespaces({
    dataDir,
    folders: folders.named.filter(({ enabled }) => enabled).map(({ namespace: name, folder }) => ({ name, folder })),
    enabled: true,
    debounce: folders.debounce,
    changed() {
      isStale = true;
      if (!isRunning) void reload();
    },
  });
}

/** The io of a command with the token that core and manager share: a random one, unless one is set. */
export function withManagerToken(io: CommandIo, options: Options): CommandIo {
  if (options['no-manager'] === true || !io.env.BEARER_TOKEN || io.env.MANAGER_INTERNAL_TOKEN) return io;
  return {
    env: { ...io.env, MANAGER_INTERNAL_TOKEN: randomBytes(32).toString('base64url') },
    cwd: () => io.cwd(),
    stdin: io.stdin,
    stdout: io.stdout,
    stderr: io.stderr,
    on: io.on.bind(io),
    once: io.once.bind(io),
    off: io.off.bind(io),
    exit: (code) => io.exit(code),
    ...(io.spawn !== undefined && { spawn: io.spawn }),
  };
}

/** Starts the manager of a gateway that listens at this origin, and keeps it running. Null if it has none. */
export function startManager(
  gateway: Gateway,
  origin: string,
  options: Options,
  io: CommandIo,
): { close(): Promise<void> } | null {
  const { config } = gateway;
  const { enabled } = config.manager;
  if (options['no-manager'] === true || enabled === false) return null;
  if (enabled !== true && config.folders.named.length === 0 && !existsSync(toolsFolder(config.dataDir))) return null;
  if (!io.env.BEARER_TOKEN) {
    print(paint('dim', 'The manager is off: it needs BEARER_TOKEN.', io), io);
    return null;
  }
  return superviseManager({
    command: [
      process.execPath,
      ownFile('bin/toolgate.mjs'),
      'manager',
      // Only what the user named: a file that was found is trusted only if its user says so.
      ...(options.config === undefined ? [] : ['--config', options.config]),
      ...(options.trust === true ? ['--trust'] : []),
      ...(options.host === undefined ? [] : ['--host', options.host]),
      ...(options['log-level'] === undefined ? [] : ['--log-level', options['log-level']]),
    ],
    cwd: io.cwd(),
    env: { ...io.env, CORE_URL: origin },
    printed: (text) => void io.stderr.write(text),
    listens: (url) => print(`The manager is at ${paint('bold', url, io)}`, io),
    ended: (message) => writeLog({ level: 'warn', source: 'manager', message }, io),
  });
}
