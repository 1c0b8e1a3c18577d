/** `toolgate status`: the gateways that run with this configuration, their servers and their clients. */
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { tokensText } from '../catalog/tokens.ts';
import { loadConfig } from '../config/load.ts';
import { STATUS_PATH, type StatusReport } from '../doors/http/admin/status.ts';
import { operatorKey } from '../store/operator.ts';
import { readUrl } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { listWords } from './first-list.ts';
import { loadOptions, type Options } from './options.ts';
import { ask } from './remote.ts';
import { type RunningGateway, runningGateways } from './running.ts';
import { serverRows, timeText } from './server-rows.ts';
import { brief, jsonText, paint, plain, print, printResult, table, untilSignal } from './terminal.ts';

/** Milliseconds between two looks of `--watch`. */
const PAUSE = 1_000;

export async function status(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const read = await reader(options, io);
  if (options.watch === true) return watch(read, options, io);
  const reports = await read();
  const isNone = reports.length === 0;
  if (isNone && options.json !== true) io.stderr.write(`${plain(await noneText(options, io))}\n`);
  else printResult(options, { gateways: reports }, reports.map((one) => toText(one, io)).join('\n\n'), io);
  return isNone ? 1 : 0;
}

async function noneText(options: Options, io: CommandIo): Promise<string> {
  const { file } = await loadConfig(loadOptions(options, io));
  return `No gateway runs with ${file ?? 'this configuration'}. Start one: toolgate serve. A client that starts toolgate itself is found too.`;
}

type Read = () => Promise<readonly StatusReport[]>;

async function reader(options: Options, io: CommandIo): Promise<Read> {
  if (options.url !== undefined) {
    const { origin } = readUrl('--url', options.url);
    return async () => [await readRemote(origin, io)];
  }
  const config = await loadConfig(loadOptions(options, io));
  return async () => {
    const running = await runningGateways(config, io);
    return Promise.all(running.map(readStatus));
  };
}

export async function readStatus({ ask }: RunningGateway): Promise<StatusReport> {
  return JSON.parse((await ask(STATUS_PATH)).toString()) as StatusReport;
}

async function readRemote(origin: string, { env }: CommandIo): Promise<StatusReport> {
  const response = await ask(new URL(STATUS_PATH, origin), { authorization: `Bearer ${await operatorKey(env)}` });
  if (response.status === 401 || response.status === 403)
    throw new GatewayError(
      'forbidden',
      `The gateway at ${origin} has another operator key. Set TOOLGATE_OPERATOR_KEY to its key.`,
    );
  if (!response.ok)
    throw new GatewayError(
      'source_broken',
      `The server at ${origin} gives no status (${response.status}): it is not Toolgate, or an older version.`,
    );
  return (await response.json()) as StatusReport;
}

/** Prints the status whenever it changes: in place on a terminal, and below each other otherwise. */
async function watch(read: Read, options: Options, io: CommandIo): Promise<number> {
  const stopped = new AbortController();
  void untilSignal(io).then(() => stopped.abort());
  const none = options.url === undefined ? await noneText(options, io) : '';
  let last = '';
  for (;;) {
    const reports = await read();
    const text =
      options.json === true
        ? jsonText({ gateways: reports })
        : reports.length === 0
          ? none
          : reports.map((one) => toText(one, io)).join('\n\n');
    if (text !== last) print(io.stdout.isTTY === true && options.json !== true ? `${CLEAR}${text}` : text, io);
    last = text;
    // The timer keeps the command alive.
    await sleep(PAUSE, undefined, { signal: stopped.signal }).catch(() => {});
    if (stopped.signal.aborted) return 0;
  }
}

const CLEAR = '\u001b[2J\u001b[H';

function toText(report: StatusReport, io: CommandIo): string {
  const { pid, version, started, file, command, url, servers, clients, firstLists, problems } = report;
  const how = command === undefined ? '' : ` ${command}`;
  const head = `toolgate${how} ${plain(version)}, process ${pid}, since ${timeText(started)}`;
  return [
    paint('bold', url == null ? head : `${head}, at ${plain(url)}`, io),
    ...(file === null ? [] : [paint('dim', plain(file), io)]),
    '',
    section('Servers', servers.length === 0 ? 'none' : serverRows(servers, io, true), io),
    section('Clients', clients.length === 0 ? 'none' : table(clients.map((one) => clientRow(one))), io),
    ...firstLists.map(
      ({ agent, ...list }) =>
        `${agent === null ? 'A new client sees' : `Agent ${plain(agent)} sees`} ${listWords(list)}`,
    ),
    ...problems.map(({ source, message }) => `${paint('yellow', '!', io)} ${plain(`${source}: ${message}`)}`),
  ].join('\n');
}

function section(title: string, text: string, io: CommandIo): string {
  const lines = text.split('\n').map((line) => `  ${line}`);
  return [paint('bold', `${title}:`, io), ...lines, ''].join('\n');
}

function clientRow({ agent, door, client, since, toolset, namespace, tools, tokens }: StatusReport['clients'][number]) {
  const equipped = toolset === null ? [] : [`toolset ${toolset}`];
  const inside = namespace === null ? [] : [`namespace ${namespace}`];
  return [
    brief(client ?? 'a client', 40),
    `agent ${brief(agent, 40)}`,
    door,
    `since ${timeText(since)}`,
    [`${counted(tools, 'tool')}, ${tokensText(tokens)}`, ...equipped, ...inside].map(plain).join('; '),
  ];
}
