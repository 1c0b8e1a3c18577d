/** `toolgate connect`: a stdio server that forwards to a remote gateway. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { openPipe } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { openModernPipe } from '../support/modern.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { connectTo, outlast, startAt, TOKEN } from '../support/restarts.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const config = `controls = ["activate"]
active_toolsets = ["*"]
${serversToml({ a: server('basic', '--resources', 'r://1'), c: server('changing'), q: server('asking'), h: server('hang') })}`;

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config, env: TOKEN });
});

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;

describe('toolgate connect, for a client with a session', () => {
  it('exposes exactly what the gateway exposes', async () => {
    const pipe = openPipe(connectTo(gateway.origin), { elicitation: {} });
    pipe.client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { word: 'yes' } }));
    await pipe.connect();
    const direct = await gateway.connect({ headers: { authorization: `Bearer ${TOKEN.BEARER_TOKEN}` } });
    expect(pipe.client.getServerVersion()).toEqual(direct.client.getServerVersion());
    expect(pipe.client.getServerCapabilities()).toEqual(direct.client.getServerCapabilities());
    expect(await pipe.client.listTools()).toEqual(await direct.client.listTools());
    expect(await pipe.client.readResource({ uri: 'r://1' })).toEqual(
      await direct.client.readResource({ uri: 'r://1' }),
    );
    const slow = { name: 'h_slow', arguments: { ms: 50, steps: 3 } };
    await pipe.client.callTool(slow, undefined, { onprogress() {} });
    expect(JSON.stringify(pipe.notifications).split('notifications/progress').length - 1).toBe(3);
    expect(textOf(await pipe.client.callTool({ name: 'q_ask', arguments: { message: 'which' } }))).toContain('yes');
    await pipe.client.callTool({ name: 'c_add_tool', arguments: { name: 'more' } });
    await waitFor(() => pipe.changes('tools') > 0);
    // Its activations affect only its own session.
    const off = { tools_on: [], tools_off: ['a_echo'], resources_on: [], resources_off: [] };
    await pipe.client.callTool({ name: 'toolman_activate', arguments: off });
    const names = async (client: typeof pipe.client) => (await client.listTools()).tools.map(({ name }) => name);
    expect(await names(pipe.client)).not.toContain('a_echo');
    expect(await names(direct.client)).toContain('a_echo');
  });

  it('forwards the cancellation of a call', async () => {
    const pipe = openPipe(connectTo(gateway.origin));
    await pipe.connect();
    const abort = new AbortController();
    const calling = pipe.client.callTool({ name: 'h_hang', arguments: { tag: 'x' } }, undefined, {
      signal: abort.signal,
    });
    await callsInFlight({ origin: gateway.origin, token: TOKEN.BEARER_TOKEN });
    abort.abort();
    await expect(calling).rejects.toThrow();
    const cancelled = () => pipe.client.callTool({ name: 'h_cancelled', arguments: {} });
    await waitFor(async () => textOf(await cancelled()).includes('"x"'));
  });
});

describe('toolgate connect, for a client without a session', () => {
  it('forwards lists, calls and list changes', async () => {
    const { client, changes } = await openModernPipe(connectTo(gateway.origin));
    expect((await client.listTools()).tools.length).toBeGreaterThan(5);
    expect(textOf(await client.callTool({ name: 'a_echo', arguments: { é: '✓' } }))).toBe('{"é":"✓"}');
    await client.callTool({ name: 'c_add_tool', arguments: { name: 'another' } });
    await waitFor(() => changes('tools') > 0);
  });
});

describe('the credential of toolgate connect', () => {
  it('is the token from the environment, or from a file that is read again when replaced', async () => {
    const file = join(tempFolder(), 'token');
    writeFileSync(file, `${TOKEN.BEARER_TOKEN}\n`);
    const pipe = openPipe(connectTo(gateway.origin, [], { TOOLGATE_TOKEN: '', TOOLGATE_TOKEN_FILE: file }));
    await pipe.connect();
    await pipe.client.listTools();
    writeFileSync(file, 'another');
    await expect(pipe.client.callTool({ name: 'a_echo', arguments: {} })).rejects.toThrow(
      /requires an agent's token: set TOOLGATE_TOKEN/,
    );
    writeFileSync(file, TOKEN.BEARER_TOKEN);
    expect(textOf(await pipe.client.callTool({ name: 'a_echo', arguments: { a: 1 } }))).toBe('{"a":1}');
  });

  it('is sent together with other headers, such as X-Namespace', async () => {
    const pipe = openPipe(connectTo(gateway.origin, ['--header', 'X-Namespace: a']));
    await pipe.connect();
    expect((await pipe.client.listTools()).tools.map(({ name }) => name)).toContain('echo');
  });
});

it('toolgate connect reports an invalid or unreachable address', async () => {
  expect((await runCli(['connect'])).stderr).toContain('needs one address');
  expect((await runCli(['connect', 'ftp://x'])).stderr).toContain(
    'URL is an address such as http://127.0.0.1:8808, not "ftp://x"',
  );
  expect((await runCli(['connect', gateway.origin, '--header', 'x'])).stderr).toContain('written "Name: value"');
  const port = await freePort();
  const pipe = openPipe(connectTo(`http://127.0.0.1:${port}`, ['--timeout', '1s']));
  await expect(pipe.connect()).rejects.toThrow(/cannot be reached \(refused the connection/);
});

it.each(['legacy', 'modern'] as const)(
  'toolgate connect survives gateway restarts, for a %s client',
  async (era) => {
    await outlast(era, isWide ? 2 : 1);
  },
  60_000,
);

it('toolgate connect waits for a gateway that starts later, and toolgate wait waits until it is ready', async () => {
  const port = await freePort();
  const pipe = openPipe(connectTo(`http://127.0.0.1:${port}`));
  const connecting = pipe.connect();
  const waiting = runCli(['wait', `http://127.0.0.1:${port}`]);
  const late = await startAt(port, tempFolder());
  await connecting;
  expect((await waiting).code).toBe(0);
  const { code, stderr } = await runCli(['wait', `http://127.0.0.1:${await freePort()}`, '--timeout', '3s']);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/is not ready after 3 s: .*ECONNREFUSED/)]);
  await late.stop();
});
