/** `toolgate manager`: the process with which models manage folders of tools. Also its start by `toolgate serve`. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { openHttpDoor } from '../doors/http/server.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { followConfigAndSignal, followSecrets } from '../gateway/watch.ts';
import { type Manager, openManager, SERVER } from '../manager/open-manager.ts';
import { SUPERVISED, superviseManager } from '../manager/supervise.ts';
import { operatorKey } from '../store/operator.ts';
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
  const isSupervised = Boolean(io.env[SUPERVISED]);
  // The core that started this manager knows the operator's key: both are of one user. It is shown to no other core.
  const ownKey = isSupervised ? await operatorKey(io.env) : null;
  const opened = await openManager(config, {
    env: io.env,
    logLevel: level,
    coreToken: io.env.CORE_TOKEN || io.env.BEARER_TOKEN || ownKey,
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
      await core
        .reload(null, () => {})
        .catch((error: unknown) => {
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
  if (options['no-manager'] === true || io.env.MANAGER_INTERNAL_TOKEN) return io;
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

/** Starts the manager of a gateway that listens there, and keeps it running. Null if it has none. */
export function startManager(
  gateway: Gateway,
  { origin, isOpen }: { readonly origin: string; readonly isOpen: boolean },
  options: Options,
  io: CommandIo,
): { close(): Promise<void> } | null {
  const { config } = gateway;
  const { enabled } = config.manager;
  if (options['no-manager'] === true || enabled === false) return null;
  if (enabled !== true && config.folders.named.length === 0 && !existsSync(toolsFolder(config.dataDir))) return null;
  const off = (why: string) => {
    print(paint('dim', `The manager is off: ${why}`, io), io);
    return null;
  };
  if (isOpen)
    return off('it needs a credential. Set BEARER_TOKEN, or give an agent a token: toolgate agents add NAME.');
  const agents = config.policy === null ? [] : openedFor(config.policy);
  if (!io.env.BEARER_TOKEN && enabled !== true && agents.length === 0)
    return off(
      `no agent was given it. Its tools write and run code: allow the server "${SERVER}" to an agent (agent_policies), set manager = true for all agents, or set BEARER_TOKEN.`,
    );
  const who = io.env.BEARER_TOKEN || agents.length === 0 ? '' : `, for ${agents.join(', ')}`;
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
    listens: (url) => print(`The manager is at ${paint('bold', url, io)}${who}`, io),
    ended: (message) => writeLog({ level: 'warn', source: 'manager', message }, io),
  });
}

/** The agents that a rule lets use the manager by its name: a rule about all servers was not written with it in mind. */
function openedFor({ agents, exposed }: PolicyConfig): string[] {
  if (Object.hasOwn(exposed.tool, SERVER)) return ['all agents'];
  return agents
    .filter(({ allowedServers, overrides }) => {
      const isNamed = allowedServers?.includes(SERVER) === true || Object.hasOwn(overrides.tool, SERVER);
      return isNamed && overrides.tool[SERVER]?.length !== 0;
    })
    .map(({ name }) => name);
}
