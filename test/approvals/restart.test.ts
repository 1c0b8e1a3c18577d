/** Calls that wait for an approval when the gateway stops: they are answered at once, and their ids say what happened. */
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, it } from 'vitest';
import { type ApprovalRequest, readApprovalRequests } from '../../src/index.ts';
import { waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callModern } from '../support/questions.ts';
import { server, serversToml } from '../support/server.ts';

const KEY = 'the-key-of-the-operator';
const env = { TOOLGATE_OPERATOR_KEY: KEY };
const config = `controls = ["request"]
exposed_tools = { a = ["count", "echo"] }
[security]
dangerous_tools = { a = ["count"] }
[http]
drain = "60s"
[audit]
enabled = true
${serversToml({ a: server('basic') })}`;

const waiting = (cwd: string, count = 1): Promise<ApprovalRequest[]> =>
  waitFor(async () => {
    const all = await readApprovalRequests(join(cwd, '.toolgate'));
    return all.length >= count && all;
  });
const call = async (client: Client, name: string, args: Record<string, unknown> = {}) =>
  ((await client.callTool({ name, arguments: args })).content as { text: string }[])[0]!.text;
const STOPPED = /source_unavailable.*is being stopped or restarted. It was not made. Call again/;

describe('when the gateway stops, a call that waits for a person', () => {
  it('does not hold the drain, and is answered over every door', async () => {
    const gateway = await startHttp({ config, env });
    const { client } = await gateway.connect();
    const legacy = call(client, 'a_count');
    const access = call(client, 'request_access', { tool: 'a.raw', reason: 'to see' });
    const modern = callModern(gateway, 'a_count');
    const rest = gateway.post('{}', {}, '/tools/a_count');
    const [{ id }] = (await waiting(gateway.cwd, 4)) as [ApprovalRequest];
    const from = performance.now();
    gateway.signal('SIGTERM');
    expect(await legacy).toMatch(STOPPED);
    expect(await access).toMatch(STOPPED);
    expect((await modern).result!.content![0]!.text).toMatch(STOPPED);
    const reply = await rest;
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '10']);
    expect(await reply.text()).toMatch(STOPPED);
    expect((await gateway.exited).code).toBe(0);
    // The drain would take a minute.
    expect(performance.now() - from).toBeLessThan(30_000);
    const lines = await waitForLines(gateway.cwd, 4, ({ act }) => act === 'approval_ended');
    expect(lines[0]!.detail).toContain('by the gateway: it is being stopped');
    // Nobody can decide on it any more, and the next gateway says so too.
    const ended = `The gateway was stopped or restarted while ${id} waited for a decision, so its call is over.`;
    const cli = (...args: string[]) => runCli(['approvals', ...args], { cwd: gateway.cwd, env });
    expect((await cli('list')).stdout).toBe('Nothing waits for an approval.\n');
    const late = await cli('approve', id);
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(ended)]);
    const next = await startHttp({ config, env, cwd: gateway.cwd });
    const posted = await next.post(
      '{"decision":"approve"}',
      { authorization: `Bearer ${KEY}` },
      `/admin/approvals/${id}`,
    );
    expect([posted.status, await posted.text()]).toEqual([404, expect.stringContaining(ended)]);
  });

  it('is answered on stdio too', async () => {
    const gateway = await startStdio({ config, env });
    const calling = call(gateway.client as Client, 'a_count');
    await waiting(gateway.cwd);
    gateway.signal('SIGTERM');
    expect(await calling).toMatch(STOPPED);
  });
});
