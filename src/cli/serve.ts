/** `toolgate serve`, and `toolgate stdio` with a gateway of its own: they serve clients until they are stopped. */
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { isLoopback, localOrigin } from '../base/loopback.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { createDashboard } from '../dashboard/dashboard.ts';
import { type ListeningDoor, openHttpDoor } from '../doors/http/server.ts';
import { openOperatorDoor } from '../doors/operator.ts';
import { openStdioDoor, type StdioDoor } from '../doors/stdio.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { followConfigAndSignal, followSecrets, followToolsets } from '../gateway/watch.ts';
import { openTelemetry } from '../telemetry/open.ts';
import { readPort } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { firstListLines, firstListText } from './first-list.ts';
import { type LogLine, writeLog } from './log.ts';
import { logLevel } from './log-level.ts';
import { loadOptions, type Options } from './options.ts';
import { startGateway } from './session.ts';
import { leaveClient, paint, plain, print, table, untilSignal, warn } from './terminal.ts';
import { followTrust, openTrust, type Trust, trustAdded, trustServers } from './trust.ts';

export async function ownStdio(_: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const trust = openTrust(options, io);
  const gateway = await startGateway(options, io, 'warn', { trust });
  if (io.stdin.isTTY === true) io.stderr.write(terminalText(gateway.config.file));
  const stop = untilSignal(io);
  const telemetry = await startTelemetry(gateway, io);
  const following = follow(gateway, options, io, trust);
  const door = openStdioDoor(gateway, io.stdin, io.stdout, options.agent);
  const operators = openOperatorDoor(gateway, { command: 'stdio', url: null });
  const ended = Promise.race([door.ended, stop]);
  void logFirstList(gateway, door, ended, options, io);
  await ended;
  following.close();
  gateway.approvals.stop();
  door.close();
  await (await operators).close();
  await gateway.close();
  await telemetry.close();
  return leaveClient(io);
}

/** For people who start it by hand: without a client, nothing would happen. */
function terminalText(file: string | null): string {
  const config = file === null ? '' : ` --config ${/^[\w./-]+$/.test(file) ? file : JSON.stringify(file)}`;
  return `Toolgate speaks MCP on standard input and output. It waits for a client now.
Clients start it themselves. For Claude Code:

  claude mcp add toolgate -- toolgate${config}

Other commands:

  toolgate serve    serve MCP over HTTP
  toolgate doctor   check the configuration and every server
  toolgate --help   all commands

Ctrl-C ends it.
`;
}

export async function serve(_: readonly string[], options: Options, given: CommandIo): Promise<number> {
  const many = options.processes === undefined ? null : await import('./processes.ts');
  if (many !== null && !many.isOneOfMany()) {
    const count = many.readProcesses(options.processes ?? '');
    if (count > 1) return many.runProcesses(count, given);
  }
  const isFirst = many?.isOneOfMany() !== true || many.isFirst();
  const { startManager, withManagerToken } = await import('./manager.ts');
  const io = withManagerToken(isFirst ? given : silent(given), options);
  const trust = openTrust(options, io);
  const gateway = await startGateway(options, io, 'warn', {
    audit: true,
    stdout: io.stdout,
    trust,
    ...(many?.isOneOfMany() === true && { replica: () => many.openProcessReplica(io) }),
  });
  const telemetry = await startTelemetry(gateway, io);
  try {
    const { http } = gateway.config;
    const token = io.env.BEARER_TOKEN || null;
    const dashboard = createDashboard(gateway, {
      trustServers: (keys) => trustServers(keys, io),
      trustTokens: (act) => trustAdded(options, io, act),
    });
    const door = await openHttpDoor(gateway, {
      host: options.host ?? http.host,
      port: options.port === undefined ? http.port : readPort(options.port),
      portOption: '--port',
      token,
      dashboard,
    });
    dashboard.listens(door.url);
    if (http.trustAgentHeader) warn(trustText(door), io);
    const following = follow(gateway, options, io, trust);
    const stop = untilSignal(io);
    print(connectText(door, token !== null, gateway.config, io), io);
    const operators = await openOperatorDoor(gateway, { command: 'serve', url: door.url }, undefined, dashboard);
    const origin = localOrigin(options.host ?? http.host, door.port, http.tls !== null);
    const manager = isFirst ? startManager(gateway, { origin, isOpen: door.isOpen }, options, io) : null;
    await Promise.race([stop, showServed(gateway, stop, io)]);
    await stop;
    await manager?.close();
    following.close();
    gateway.approvals.stop();
    dashboard.close();
    await door.drain(gateway.config.http.drain);
    await door.close();
    await operators.close();
    return 0;
  } finally {
    await gateway.close();
    await telemetry.close();
  }
}

/** Only the first of several processes prints. */
function silent(io: CommandIo): CommandIo {
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() });
  return new Proxy(io, {
    get(target, key) {
      if (key === 'stdout') return stdout;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Applies changes of the configuration file, of the secrets and of saved toolsets to the gateway. */
export function follow(gateway: Gateway, options: Options, io: CommandIo, trust: Trust): { close(): void } {
  const followed = [
    followConfigAndSignal(gateway, loadOptions(options, io), io, trust),
    followSecrets(gateway),
    followToolsets(gateway),
    followTrust(gateway, trust),
  ];
  return {
    close() {
      for (const one of followed) one.close();
    },
  };
}

/** Sends traces and metrics if the `OTEL_…` variables ask for it. A gateway whose telemetry fails still serves. */
export async function startTelemetry(gateway: Gateway, io: CommandIo): Promise<{ close(): Promise<void> }> {
  try {
    const telemetry = await openTelemetry(gateway);
    return {
      async close() {
        // An exporter that still tries to send would keep the process alive.
        if (telemetry !== null && !(await telemetry.close())) io.exit(0);
      },
    };
  } catch (error) {
    gateway.events.emit('note', { source: 'telemetry', message: messageOf(error) });
    return { async close() {} };
  }
}

function trustText({ url, isOpen }: ListeningDoor): string {
  if (!isOpen) return 'http.trust_agent_header is on: anyone who has BEARER_TOKEN can act as any agent.';
  return `http.trust_agent_header is on and no credential is configured: anyone who can reach ${url} can use every tool, as any agent.`;
}

function whoMayConnect(url: string): string {
  return isLoopback(new URL(url).hostname) ? 'every program on this machine' : 'everyone who can reach this address';
}

function connectText(
  { url, isOpen }: ListeningDoor,
  token: boolean,
  { controls, http }: Config,
  io: CommandIo,
): string {
  // With JWTs alone, clients find out by themselves where to get one. A certificate is not in the entry.
  const variable = token
    ? 'BEARER_TOKEN'
    : isOpen || http.jwt.length > 0 || http.tls?.clients != null
      ? null
      : 'TOOLGATE_TOKEN';
  const headers = { Authorization: `Bearer \${${variable}}` };
  const server = { type: 'http', url, ...(variable === null ? {} : { headers }) };
  const header = variable === null ? '' : ` --header "Authorization: Bearer $${variable}"`;
  const selects = controls.length > 0;
  return [
    `Toolgate is listening on ${paint('bold', url, io)}`,
    ...(isOpen ? [paint('dim', `No BEARER_TOKEN is set: ${whoMayConnect(url)} may connect.`, io)] : []),
    ...(variable === 'TOOLGATE_TOKEN' ? [paint('dim', 'Each agent has its own token: toolgate agents.', io)] : []),
    ...(http.dashboard ? [paint('dim', 'See what it does: toolgate dashboard', io)] : []),
    // Since 2026-07-28 nothing distinguishes the clients of one agent.
    ...(selects ? [paint('dim', 'Newer clients (MCP 2026-07-28) share one set of active tools.', io)] : []),
    '',
    'Connect Claude Code:',
    `  claude mcp add --transport http toolgate ${url}${header}`,
    '',
    'or any client, in its .mcp.json:',
    ...JSON.stringify({ mcpServers: { toolgate: server } }, null, 2)
      .split('\n')
      .map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/**
 * Prints what is served. Servers that take longer, for example to install dependencies, are printed when they are
 * ready. Nothing is printed any more once the command is being stopped: then every server is done, but not ready.
 */
async function showServed(gateway: Gateway, stop: Promise<void>, io: CommandIo): Promise<void> {
  let isStopping = false;
  void stop.then(() => {
    isStopping = true;
  });
  const tried = gateway.tried();
  await Promise.race([tried, stop, sleep(gateway.config.startWait, undefined, { ref: false })]);
  if (isStopping) return;
  const late = gateway.statuses().filter(({ state }) => state === 'starting');
  const rows = servedRows(gateway, io);
  const served = rows.length === 0 ? 'No servers are configured.' : `Serving:\n${table(rows)}`;
  const seen = firstListLines(gateway).map(plain);
  print([served, ...seen].join('\n'), io);
  if (late.length === 0) return;
  await Promise.race([tried, stop]);
  if (isStopping) return;
  const keys = late.map(({ key }) => key);
  // A server that failed changes nothing. It may have failed because the same signal stopped what it installs.
  const news = firstListLines(gateway).map(plain);
  print([table(servedRows(gateway, io, keys)), ...(news.join() === seen.join() ? [] : news)].join('\n'), io);
}

/**
 * Logs what the client sees, once the servers have been tried and the client is known by its name. Nothing else tells
 * the person at the client that there is more. It is logged by default, although other information is not.
 */
async function logFirstList(
  gateway: Gateway,
  door: StdioDoor,
  ended: Promise<unknown>,
  options: Options,
  io: CommandIo,
): Promise<void> {
  if (['error', 'silent'].includes(logLevel(options, io, 'info'))) return;
  const line = await firstListLine(gateway, door, ended, options.agent);
  if (line !== null) writeLog(line, io);
}

/** That line; null if the client has gone, or sees nothing but Toolgate's own tools. */
export async function firstListLine(
  gateway: Gateway,
  door: StdioDoor,
  ended: Promise<unknown>,
  agent: string | undefined,
): Promise<LogLine | null> {
  const tried = Promise.race([gateway.tried(), sleep(gateway.config.startWait, undefined, { ref: false })]);
  const isOver = await Promise.race([ended.then(() => true), tried.then(() => false)]);
  const list = gateway.firstList(agent);
  return isOver || list.tools <= list.own ? null : { level: 'info', message: firstListText(list, door.client) };
}

function servedRows(gateway: Gateway, io: CommandIo, keys?: readonly string[]): string[][] {
  return gateway
    .statuses()
    .filter(({ key }) => keys === undefined || keys.includes(key))
    .map(({ key, state, present, detail }) => [
      `  ${state === 'starting' ? '…' : present ? paint('green', '✓', io) : paint('red', '✗', io)} ${key}`,
      present
        ? `${offerText(gateway, key)}${state === 'starting' ? ' (starting)' : ''}`
        : plain(detail === '' ? state : `${state}: ${detail}`),
    ]);
}

/** "3 tools, 1 prompt" */
function offerText({ catalog }: Gateway, key: string): string {
  const counts = (['tool', 'resource', 'template', 'prompt'] as const).flatMap((kind) => {
    const count = [...catalog.entries[kind].values()].filter(({ sourceKey }) => sourceKey === key).length;
    return count === 0 ? [] : [counted(count, kind)];
  });
  return counts.join(', ') || 'nothing';
}
