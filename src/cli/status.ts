/** `toolgate status`: the gateways that run with this configuration, their servers and their clients. */
import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../base/text.ts';
import { tokensText } from '../catalog/tokens.ts';
import { loadConfig } from '../config/load.ts';
import { STATUS_PATH, type StatusReport } from '../doors/http/admin/status.ts';
import type { CommandIo } from './command-io.ts';
import { listWords } from './first-list.ts';
import { loadOptions, type Options } from './options.ts';
import { gatewayAt, type RunningGateway, runningGateways } from './running.ts';
import { serverRows, timeText } from './server-rows.ts';
import { brief, cell, jsonText, paint, plain, print, printResult, table, untilSignal } from './terminal.ts';

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
    const remote = gatewayAt(options.url, io);
    return async () => [await readStatus(remote)];
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
  const { pid, version, started, file, command, url, servers, clients, approvals, firstLists, problems } = report;
  const how = command === undefined ? '' : ` ${command}`;
  const head = `toolgate${how} ${plain(version)}, process ${pid}, since ${timeText(started)}`;
  return [
    paint('bold', url == null ? head : `${head}, at ${plain(url)}`, io),
    ...(file === null ? [] : [paint('dim', plain(file), io)]),
    '',
    section('Servers', servers.length === 0 ? 'none' : serverRows(servers, io, true), io),
    section('Clients', clients.length === 0 ? 'none' : table(clients.map((one) => clientRow(one, io))), io),
    ...(approvals.length === 0 ? [] : [section('Waiting for an approval', table(approvals.map(approvalRow)), io)]),
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

function clientRow(client: StatusReport['clients'][number], io: CommandIo): string[] {
  const { id, agent, door, version, since, toolset, namespace, tools, tokens, lists, results } = client;
  const name = version === null ? (client.client ?? 'a client') : `${client.client} ${version}`;
  const facts = [
    `${counted(tools, 'tool')}, ${tokensText(tokens)}`,
    ...(lists.changes === 0 ? [] : [changesText(lists)]),
    ...(results.bytes === 0 ? [] : [`results about ${tokensText(results.tokens)}`]),
    ...named('activated', client.activated),
    ...named('deactivated', client.deactivated),
    ...named('enabled', client.enabled),
    ...(toolset === null ? [] : [`toolset ${toolset}`]),
    ...(namespace === null ? [] : [`namespace ${namespace}`]),
  ];
  return [
    paint('dim', id, io),
    brief(name, 40),
    `agent ${brief(agent, 40)}`,
    door,
    `since ${timeText(since)}`,
    facts.map(plain).join('; '),
  ];
}

/** What changed lists cost: each is sent as a whole, and a prompt cache behind it is lost from the first change on. */
function changesText({ changes, sentAgain, tokens }: StatusReport['clients'][number]['lists']): string {
  const sent = sentAgain === 0 ? '' : `, sent again ${times(sentAgain)} (${tokensText(tokens)})`;
  return `list changed ${times(changes)}${sent}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** More names than this are only counted. */
const MOST_NAMES = 5;

function named(what: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const more = names.length - MOST_NAMES;
  return [`${what} ${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`];
}

function approvalRow({ id, agent, tool, asked }: StatusReport['approvals'][number]): string[] {
  return [cell(id), `agent ${brief(agent, 40)}`, cell(tool), `since ${timeText(asked)}`];
}
