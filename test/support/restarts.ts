/** An agent behind `toolgate connect`, with a gateway that is restarted repeatedly. */
import { expect } from 'vitest';
import { childEnv } from './child.ts';
import { openPipe } from './connection.ts';
import { type GatewayOptions, type HttpGateway, startHttp } from './gateway.ts';
import { callsInFlight } from './in-flight.ts';
import { openModernPipe } from './modern.ts';
import { freePort } from './ports.ts';
import { waitFor } from './processes.ts';
import { startToolgate } from './program.ts';
import { server, serversToml } from './server.ts';
import { tempFolder } from './temp.ts';

export const config = `controls = []\n${serversToml({ a: server('basic'), slow: server('hang') })}`;
export const TOKEN = { BEARER_TOKEN: 'the-token-of-the-agent' };

export const startAt = (port: number, cwd: string, options: GatewayOptions = {}): Promise<HttpGateway> =>
  startHttp({ config, cwd, env: TOKEN, args: ['--port', String(port)], ...options });

export function connectTo(url: string, more: readonly string[] = [], env: Record<string, string> = {}) {
  return startToolgate(['connect', url, ...more], {
    cwd: tempFolder(),
    env: childEnv({ HOME: tempFolder(), TOOLGATE_TOKEN: TOKEN.BEARER_TOKEN, ...env }),
    ending: 'stdin',
  });
}

/** On every restart, a call in flight gets one answer, later calls work, and list changes are announced. */
export async function outlast(era: 'legacy' | 'modern', restarts: number): Promise<void> {
  const port = await freePort();
  const cwd = tempFolder();
  let gateway = await startAt(port, cwd, { process: true });
  const child = connectTo(`http://127.0.0.1:${port}`);
  const pipe = era === 'legacy' ? openPipe(child) : await openModernPipe(child);
  if ('connect' in pipe) await pipe.connect();
  const { client } = pipe;
  const changes = () => pipe.changes('tools');
  const call = async (name: string, args: Record<string, unknown>) => {
    const result = await client.callTool({ name, arguments: args });
    return ((result as { content: { text: string }[] }).content[0]?.text ?? '') as string;
  };
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('a_echo');
  for (let i = 0; i < restarts; i++) {
    const before = changes();
    const underWay = call('slow_slow', { ms: 60_000 }).then(
      () => 'answered',
      (error: Error) => error.message,
    );
    await callsInFlight({ origin: gateway.origin, token: TOKEN.BEARER_TOKEN });
    gateway.signal('SIGKILL');
    await gateway.exited;
    expect(await underWay).toMatch(
      /was lost \(.*\) during this request\. The request may or may not have been carried out/,
    );
    // This call waits for the gateway.
    const waiting = call('a_echo', { i });
    gateway = await startAt(port, cwd, { process: true });
    expect(JSON.parse(await waiting)).toEqual({ i });
    await waitFor(() => changes() > before, 10_000);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('a_echo');
  }
  await gateway.stop();
}
