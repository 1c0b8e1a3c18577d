/** `toolgate daemon`: the gateway in the background, which the windows of a project share. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf, toGatewayError } from '../base/errors.ts';
import { makePrivateFolder } from '../base/socket-folder.ts';
import { counted } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { openOperatorDoor } from '../doors/operator.ts';
import { type AttachedWindow, LAST_CALLS, openWindowDoor } from '../doors/window/door.ts';
import { HELLO_VERSION, type SharedGatewayStatus, sayHello, type WindowQuestion } from '../doors/window/hello.ts';
import { watchIdle } from '../doors/window/idle.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import { newWindowSocket, type WindowKey, windowSockets } from '../store/window-sockets.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { followLog, logText, problemLines } from './log.ts';
import { openLogFile } from './log-file.ts';
import { readVerbosity } from './log-level.ts';
import { loadOptions, type Options } from './options.ts';
import { firstListLine, follow, startTelemetry } from './serve.ts';
import { timeText } from './server-rows.ts';
import { startGateway } from './session.ts';
import { type SharedPlace, type StartReport, sharedPlace, startInBackground, withStartLock } from './shared-gateway.ts';
import { plain, printResult, untilSignal } from './terminal.ts';
import { openTrust } from './trust.ts';

export const daemon = withVerbs('daemon', { status, start, stop, run });

/** Milliseconds that `stop` waits for the end. */
const PATIENCE = 30_000;

async function status(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const running = await askAll(sharedPlace(options, io), 'status');
  const text =
    running.length === 0 ? 'No gateway runs in the background for this folder.' : running.map(toText).join('\n\n');
  printResult(options, { gateways: running }, text, io);
  return running.length === 0 ? 1 : 0;
}

function toText({ pid, version, started, file, windows, log }: SharedGatewayStatus): string {
  return plain(
    [
      `toolgate ${version}, process ${pid}, since ${timeText(started)}, ${counted(windows, 'client')}`,
      ...(file === null ? [] : [`  ${file}`]),
      `  log: ${log}`,
    ].join('\n'),
  );
}

async function start(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const place = sharedPlace(options, io);
  await makePrivateFolder(place.folder);
  await withStartLock(place, async () => {
    const same = await windowSockets(place.folder, place.key.project, place.key.start);
    const alive = await Promise.all(same.map((path) => ask(path, 'status')));
    if (alive.every((one) => one === null)) await startInBackground(place, options, io);
  });
  return status([], options, io);
}

async function stop(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const place = sharedPlace(options, io);
  const stopped = await askAll(place, 'stop');
  const until = Date.now() + PATIENCE;
  while ((await askAll(place, 'status')).length > 0 || stopped.some(({ pid }) => isThere(pid))) {
    if (Date.now() > until)
      throw new GatewayError(
        'source_busy',
        'The gateway is still finishing calls. Look again: toolgate daemon status.',
      );
    await sleep(20);
  }
  const text =
    stopped.length === 0
      ? 'No gateway runs in the background for this folder.'
      : stopped.map(({ pid }) => `Stopped process ${pid}.`).join('\n');
  return printResult(options, { stopped }, text, io);
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function ask(path: string, question: WindowQuestion['ask']): Promise<SharedGatewayStatus | null> {
  const answered = await sayHello<SharedGatewayStatus>(path, { toolgate: HELLO_VERSION, ask: question });
  answered?.socket.destroy();
  return answered?.answer ?? null;
}

/** All gateways of the project, also those of other versions and environments. */
async function askAll({ folder, key }: SharedPlace, question: WindowQuestion['ask']): Promise<SharedGatewayStatus[]> {
  const answers = await Promise.all((await windowSockets(folder, key.project)).map((path) => ask(path, question)));
  return answers.filter((one) => one !== null);
}

/** The process in the background. Its argument is the key under which the window that starts it looks for it. */
async function run([name]: readonly string[], options: Options, io: CommandIo): Promise<number> {
  try {
    const { folder, key } = sharedPlace(options, io);
    const config = await loadConfig(loadOptions(options, io));
    if (!config.shared) {
      report({ unshared: true });
      return 0;
    }
    return await serveWindows(config, folder, readKey(name) ?? key, options, io);
  } catch (error) {
    const { code, message } = toGatewayError(error);
    report({ code, message: createRedactor(environmentSecrets(io.env)).redact(message) });
    throw error;
  }
}

function readKey(name: string | undefined): WindowKey | null {
  const [, project, start] = /^([0-9a-f]{12})-([0-9a-f]{12})$/.exec(name ?? '') ?? [];
  return project === undefined || start === undefined ? null : { project, start };
}

/** Tells the process that started this one, if it is still there. */
function report(message: StartReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function serveWindows(
  { dataDir }: Config,
  folder: string,
  key: WindowKey,
  options: Options,
  given: CommandIo,
): Promise<number> {
  const file = join(dataDir, 'daemon.log');
  const log = openLogFile(file);
  const io = withLog(given, log);
  const write = (message: string) => log.write(`${logText({ level: 'info', message })}\n`);
  process.on('uncaughtExceptionMonitor', (error) => write(error.stack ?? messageOf(error)));
  const trust = openTrust(options, io);
  const gateway = await startGateway(options, io, 'info', { trust });
  const stopped = untilSignal(io);
  const telemetry = await startTelemetry(gateway, io);
  const following = follow(gateway, options, io, trust);
  let end = (_why: string) => {};
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  const idle = watchIdle(gateway, () => end('nobody used it'));
  const path = newWindowSocket(folder, key);
  const door = await openWindowDoor(gateway, {
    folder,
    path,
    cwd: io.cwd(),
    log: file,
    stop: () => end('it was told to'),
    idle,
    attached: (window, print) => attachLog(gateway, window, print),
  });
  const operators = await openOperatorDoor(gateway, { command: 'daemon', url: null }, idle.enter);
  write(`toolgate ${VERSION} started, process ${process.pid}`);
  report({ socket: path });
  if (process.connected) process.disconnect();
  const why = await Promise.race([ended, stopped.then(() => 'a signal')]);
  write(`toolgate ends: ${why}`);
  idle.close();
  following.close();
  gateway.approvals.stop();
  await Promise.all([door.close(), operators.close(LAST_CALLS)]);
  await gateway.close();
  await telemetry.close();
  return 0;
}

/** Shows the log of the gateway in a window, from the level on that it asks for. */
function attachLog(gateway: Gateway, { hello, door }: AttachedWindow, print: (line: string) => void): () => void {
  const level = readVerbosity(hello.log);
  const write = (line: Parameters<typeof logText>[0]) => print(logText(line));
  for (const line of problemLines(gateway, level)) write(line);
  if (hello.before === 0 && hello.task === null && !['error', 'silent'].includes(level))
    void firstListLine(gateway, door, door.ended, hello.agent).then((line) => line !== null && write(line));
  return followLog(gateway, level, write);
}

function withLog(io: CommandIo, log: CommandIo['stderr']): CommandIo {
  return {
    env: io.env,
    cwd: () => io.cwd(),
    stdin: io.stdin,
    stdout: log,
    stderr: log,
    on: io.on.bind(io),
    once: io.once.bind(io),
    off: io.off.bind(io),
    exit: (code) => io.exit(code),
    ...(io.spawn !== undefined && { spawn: io.spawn }),
  };
}
