/** toolgate list --stats: the metrics of a running gateway. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';

const config = `controls = []\n${serversToml({ a: server('basic', '--prompts', 'p') })}`;
const env = { BEARER_TOKEN: 'a-token' };
let gateway: HttpGateway;

beforeAll(async () => {
  gateway = await startHttp({ config, env });
  const { client } = await gateway.connect({ headers: { authorization: 'Bearer a-token' } });
  for (let i = 0; i < 3; i++) await client.callTool({ name: 'a_echo', arguments: {} });
  await client.callTool({ name: 'a_raw', arguments: { json: '{"content":[],"isError":true}' } });
  await client.callTool({ name: 'a_raw', arguments: {} }).catch(() => {});
  await client.getPrompt({ name: 'a_p' });
});

const stats = (args: readonly string[], more: Record<string, string> = env) =>
  runCli(['list', ...args, '--stats'], { env: more });

describe('toolgate list --stats', () => {
  it('prints a table, with the most-called tools first', async () => {
    const { code, stdout, stderr } = await stats(['tools', '--url', gateway.url]);
    expect([code, stderr]).toEqual([0, '']);
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^NAME +SERVER +CALLS +ERRORS +TOOL ERRORS +P50 +P99$/);
    expect(rows).toEqual([
      expect.stringMatching(/^echo +a +3 +0 +0 +[\d.]+ ms +[\d.]+ ms$/),
      expect.stringMatching(/^raw +a +2 +1 +1 +[\d.]+ ms +[\d.]+ ms$/),
    ]);
  });

  it('prints JSON, and the metrics of other kinds', async () => {
    const { stdout } = await stats(['prompts', '--url', gateway.origin, '--json']);
    expect(JSON.parse(stdout)).toEqual([
      {
        server: 'a',
        name: 'p',
        kind: 'prompt',
        calls: 1,
        outcomes: { ok: 1, tool_error: 0, error: 0, failed: 0, timeout: 0, cancelled: 0, cached: 0 },
        cacheMisses: 0,
        bytes: expect.any(Number),
        p50: expect.any(Number),
        p99: expect.any(Number),
      },
    ]);
    expect((await stats(['resources', '--url', gateway.origin])).stdout).toBe('Nothing has been called yet.\n');
  });

  it('prints the metrics of agents', async () => {
    const { stdout } = await stats(['agents', '--url', gateway.url]);
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^AGENT +CALLS +ERRORS +TOOL ERRORS +P50 +P99 +REFUSED$/);
    expect(rows).toEqual([expect.stringMatching(/^default +6 +1 +1 +[\d.]+ ms +[\d.]+ ms +0$/)]);
    const json = JSON.parse((await stats(['agents', '--url', gateway.url, '--json'])).stdout) as object[];
    expect(json).toEqual([expect.objectContaining({ agent: 'default', calls: 6, refused: 0, inFlight: 0 })]);
  });

  it('reports errors clearly', async () => {
    const failing = async (args: readonly string[], more?: Record<string, string>) => {
      const { code, stderr, stdout } = await stats(args, more);
      expect([code, stdout]).toEqual([2, '']);
      return stderr;
    };
    expect(await failing(['--url', gateway.url], {})).toContain('needs a token: set BEARER_TOKEN');
    expect(await failing(['--url', 'http://127.0.0.1:1'])).toMatch(
      /No gateway answers at http:\/\/127\.0\.0\.1:1 \(.+\)\. Start one with toolgate serve/,
    );
    expect(await failing(['--url', 'nowhere'])).toContain('--url is an address such as http://127.0.0.1:8808');
    expect(await failing(['servers', '--url', gateway.url])).toContain('There are no metrics for servers.');
    const other = createServer((_, response) => response.end('hello'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    atEnd(() => other.close());
    const { port } = other.address() as AddressInfo;
    expect(await failing(['--url', `http://127.0.0.1:${port}`])).toContain('it is not Toolgate, or an older version');
  });
});
