/** `toolgate serve`. */
import { followConfig, type Gateway, GatewayError, openHttpDoor } from '../index.ts';
import type { Options } from './commands.ts';
import { loadOptions, startGateway } from './session.ts';
import { untilSignal } from './stdio.ts';
import { paint, plain, table } from './terminal.ts';

export async function serve(options: Options): Promise<number> {
  const gateway = await startGateway(options, 'warn');
  try {
    const { http } = gateway.config;
    const token = process.env.BEARER_TOKEN || null;
    const door = await openHttpDoor(gateway, {
      host: options.host ?? http.host,
      port: options.port === undefined ? http.port : readPort(options.port),
      token,
    });
    const following = followConfig(gateway, loadOptions(options));
    const stop = untilSignal();
    process.stdout.write(`${connectText(door.url, token !== null, gateway.config.controls.length > 0)}\n`);
    await Promise.race([stop, gateway.tried().then(() => process.stdout.write(`${servedText(gateway)}\n`))]);
    await stop;
    following.close();
    await door.close();
    return 0;
  } finally {
    await gateway.close();
  }
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new GatewayError('usage', `--port is a number from 0 to 65535, not "${text}".`);
  return port;
}

function connectText(url: string, token: boolean, selects: boolean): string {
  const server = { type: 'http', url, ...(token ? { headers: { Authorization: 'Bearer ${BEARER_TOKEN}' } } : {}) };
  const header = token ? ' --header "Authorization: Bearer $BEARER_TOKEN"' : '';
  return [
    `Toolgate is listening on ${paint('bold', url)}`,
    ...(token ? [] : [paint('dim', 'No BEARER_TOKEN is set: every program on this machine may connect.')]),
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

function servedText(gateway: Gateway): string {
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
  const rows = gateway
    .statuses()
    .map(({ key, state, present, detail }) => [
      `  ${present ? paint('green', '✓') : paint('red', '✗')} ${key}`,
      present ? counts(key) || 'nothing' : plain(`${state}: ${detail}`),
    ]);
  return rows.length === 0 ? 'No servers are configured.' : `Serving:\n${table(rows)}`;
}
