/** Opens a folder of tools: installs its dependencies, then starts a worker for one of its languages. */
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { socketFolderFor } from '../base/socket-folder.ts';
import type { EnvVars } from '../config/expand.ts';
import { INSIDE } from '../config/inside.ts';
import type { Launch } from '../config/launch.ts';
import { EnvironmentError, type WorkerEnvironment } from '../workers/environment.ts';
import { isolate, requireIsolation } from '../workers/isolation.ts';
import { TOOLCHAINS } from '../workers/toolchains.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import type { LastGoodFiles } from './last-good.ts';
import { openWorker, type WorkerOptions } from './worker.ts';

export type FolderLaunch = Extract<Launch, { kind: 'folder' }>;

export interface FolderOptions extends WorkerOptions {
  /** The environment of the gateway. */
  readonly env: EnvVars;
  readonly lastGood: LastGoodFiles;
  /** What has to be done before the folder can be served, such as an install. */
  preparing(text: string): void;
  /** New dependencies were installed. */
  installed(): void;
}

/** How often we check whether the worker is still wanted while its dependencies are being installed. */
const CHECK = 100;
/** An upper bound of the bytes that a message has in addition to its result. */
const ENVELOPE = 512;
let lastSocket = 0;

export async function openFolder(
  launch: FolderLaunch,
  options: FolderOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const { folder, language, namespace, dataDir } = launch;
  // Before anything is installed, because installers are isolated too.
  await requireIsolation(launch.isolation, launch.network);
  const environment = await prepare(launch, options);
  const socketFolder = socketFolderFor(join(dataDir, 'workers', namespace));
  const socket = join(socketFolder, `${language}-${process.pid}-${++lastSocket}.sock`);
  const command = [
    ...withHeap(environment.command, launch),
    ...['--namespace', namespace, '--socket', socket, '--folder', folder],
    // The result and the rest of the message have to fit into the limit.
    ...['--max-line', String(Math.max(1, options.maxMessage - ENVELOPE))],
  ];
  const { PATH = '/usr/local/bin:/usr/bin:/bin', HOME = '/', LANG = 'C.UTF-8' } = options.env;
  const needs = { folder, dataDir, reads: environment.reads, writes: [socketFolder], network: launch.network ?? true };
  const worker = await openWorker(
    {
      command: await isolate(command, needs, launch.isolation),
      env: { PATH, HOME, LANG, [INSIDE]: options.env[INSIDE] ?? '', ...environment.env, ...launch.env },
      cwd: folder,
      memory: launch.memory,
      namespace,
      socketFolder,
      socket,
    },
    options,
    events,
  );
  options.lastGood.accept(launch, await environment.versions(), worker.problems ?? []);
  return worker;
}

async function prepare(launch: FolderLaunch, options: FolderOptions): Promise<WorkerEnvironment> {
  const { folder, language, namespace, dataDir } = launch;
  const abort = new AbortController();
  const checking = setInterval(() => {
    if (options.isClosed()) abort.abort();
  }, CHECK);
  try {
    const { prepare } = await TOOLCHAINS[language]();
    let isNew = false;
    const progress = (message: string) => {
      isNew = true;
      options.preparing(message);
    };
    const environment = await prepare({
      folder,
      namespace,
      dataDir,
      isolation: launch.isolation,
      packages: launch.packages ?? 'registry',
      env: options.env,
      progress,
      signal: abort.signal,
      lastGood: options.lastGood.of(launch),
    });
    if (isNew) options.installed();
    return environment;
  } catch (error) {
    if (error instanceof EnvironmentError && error.log !== '') options.stderr(Buffer.from(`${error.log}\n`));
    const { code, cause } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || (cause as NodeJS.ErrnoException | undefined)?.code === 'ENOSPC')
      throw new GatewayError('dependency_error', `there is no space left for it in ${dataDir}; make room there`);
    throw new GatewayError('dependency_error', `its dependencies could not be installed: ${messageOf(error)}`);
  } finally {
    clearInterval(checking);
  }
}

/** Sets the heap limit of Node to ours. With a lower one, Node would spend more and more time on collecting garbage. */
function withHeap(command: readonly string[], { language, memory }: FolderLaunch): readonly string[] {
  if (language !== 'typescript' || memory === null) return command;
  const [node, ...rest] = command as [string, ...string[]];
  return [node, `--max-old-space-size=${Math.max(16, Math.floor(memory / 1024 ** 2))}`, ...rest];
}
