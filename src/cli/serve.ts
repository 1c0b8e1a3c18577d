/** `toolgate serve`. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Config,
  followConfig,
  followSecrets,
  type Gateway,
  GatewayError,
  type ListeningDoor,
  openHttpDoor,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions, startGateway } from './session.ts';
import { untilSignal } from './signals.ts';
import { followCalls } from './telemetry.ts';
import { paint, plain, table } from './terminal.ts';

export async function serve(options: Options): Promise<number> {
  const gateway = await startGateway(options, 'warn', true);
  const telemetry = await followCalls(gateway);
  try {
    const { http } = gateway.config;
    const token = process.env.BEARER_TOKEN || null;
    const door = await openHttpDoor(gateway, {
      host: options.host ?? http.host,
      port: options.port === undefined ? http.port : readPort(options.port),
      token,
    });
    if (http.trustAgentHeader)
      process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${trustText(door)}\n`);
    const following = followConfig(gateway, loadOptions(options));
    const secrets = followSecrets(gateway);
    const stop = untilSignal();
    process.stdout.write(`${connectText(door, token !== null, gateway.config)}\n`);
    await Promise.race([stop, showServed(gateway)]);
    await stop;
    following.close();
    secrets.close();
    await door.drain(gateway.config.http.drain);
    await door.close();
    return 0;
  } finally {
    await gateway.close();
    await telemetry.close();
  }
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new GatewayError('usage', `--port is a number from 0 to 65535, not "${text}".`);
  return port;
}

/** What trusting the header means here. */
function trustText({ url, isOpen }: ListeningDoor): string {
  if (!isOpen) return 'http.trust_agent_header is on: whoever has BEARER_TOKEN may come as any agent.';
  return `http.trust_agent_header is on and no credential is configured: whoever reaches ${url} may use every tool, as any agent.`;
}

function connectText({ url, isOpen }: ListeningDoor, token: boolean, { controls, http }: Config): string {
  // With JWTs alone clients find out by themselves where to get one.
  const variable = token ? 'BEARER_TOKEN' : isOpen || http.jwt !== null ? null : 'TOOLGATE_TOKEN';
  const headers = { Authorization: `Bearer \${${variable}}` };
  const server = { type: 'http', url, ...(variable === null ? {} : { headers }) };
  const header = variable === null ? '' : ` --header "Authorization: Bearer $${variable}"`;
  const selects = controls.length > 0;
  return [
    `Toolgate is listening on ${paint('bold', url)}`,
    ...(isOpen ? [paint('dim', 'No BEARER_TOKEN is set: every program on this machine may connect.')] : []),
    ...(variable === 'TOOLGATE_TOKEN' ? [paint('dim', 'Each agent has its own token: toolgate agents.')] : []),
    // Since 2026-07-28 nothing tells one client of an agent from another.
    ...(selects ? [paint('dim', 'Clients without sessions (2026-07-28) share what is activated.')] : []),
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

/** What is served, and later what took longer: what folders depend on may have to be installed. */
async function showServed(gateway: Gateway): Promise<void> {
  const tried = gateway.tried();
  await Promise.race([tried, sleep(gateway.config.startWait, undefined, { ref: false })]);
  const late = gateway.statuses().filter(({ state }) => state === 'starting');
  const rows = servedRows(gateway);
  process.stdout.write(rows.length === 0 ? 'No servers are configured.\n' : `Serving:\n${table(rows)}\n`);
  if (late.length === 0) return;
  await tried;
  process.stdout.write(
    `${table(
      servedRows(
        gateway,
        late.map(({ key }) => key),
      ),
    )}\n`,
  );
}

function servedRows(gateway: Gateway, keys?: readonly string[]): string[][] {
  const counts = (key: string) =>
    (['tool', 'resource', 'template', 'prompt'] as const)
      .map(
        (kind) =>
          [
            kind,
            [...gateway.catalog.entries[kind].values()].filter((entry) => entry.sourceKey === key).length,
          ] as const,
      )
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`)
      .join(', ');
  return gateway
    .statuses()
    .filter(({ key }) => keys === undefined || keys.includes(key))
    .map(({ key, state, present, detail }) => [
      `  ${present ? paint('green', '✓') : state === 'starting' ? '…' : paint('red', '✗')} ${key}`,
      present ? counts(key) || 'nothing' : plain(detail === '' ? state : `${state}: ${detail}`),
    ]);
}
