/** A gateway whose audit cannot be written, that is killed, or that shares its audit folder. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyAudit } from '../../src/index.ts';
import { auditOf, isCall, readLines, waitForLines } from '../support/audit-records.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { isWide } from '../support/wide.ts';

const servers = `active_toolsets = ["*"]\n${serversToml({ a: server('basic') })}`;
const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;
const echo = { name: 'a_echo', arguments: {} };

describe('a gateway whose audit cannot be written', () => {
  const broken = (onFailure: string) => ({
    config: `${servers}\n[audit]\ndir = "taken/audit"\non_failure = "${onFailure}"\n`,
    files: { taken: 'a file where a folder should be' },
  });

  it('keeps serving with on_failure = "continue", reports it once, and writes the lines later', async () => {
    const gateway = await startHttp(broken('continue'));
    const { client } = await gateway.connect();
    await waitFor(() => gateway.stderr().includes('the audit cannot be written'));
    for (let i = 0; i < 3; i++) expect(textOf(await client.callTool(echo))).toBe('{}');
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(gateway.stderr().match(/cannot be written/g)).toHaveLength(1);
    const metrics = async () => (await fetch(`${gateway.origin}/metrics`)).text();
    expect(await metrics()).toContain('\ntoolgate_audit_failing 1\n');
    rmSync(join(gateway.cwd, 'taken'));
    const folder = join(gateway.cwd, 'taken', 'audit');
    await waitFor(() => readLines(folder).filter(isCall).length === 3);
    expect(await metrics()).toMatch(/\ntoolgate_audit_failing 0\n[\s\S]*\ntoolgate_audit_lines_total [45]\n/);
  });

  it('refuses calls with on_failure = "stop" until a write succeeds again', async () => {
    const gateway = await startHttp(broken('stop'));
    const { client } = await gateway.connect();
    await waitFor(() => gateway.stderr().includes('the audit cannot be written'));
    const refused = await client.callTool(echo);
    expect(refused.isError).toBe(true);
    expect(JSON.parse(textOf(refused))).toMatchObject({ code: 'audit_unavailable' });
    const { client: modern } = await gateway.connectModern();
    expect((await modern.callTool(echo)).isError).toBe(true);
    rmSync(join(gateway.cwd, 'taken'));
    await waitFor(async () => (await client.callTool(echo)).isError !== true);
    const folder = join(gateway.cwd, 'taken', 'audit');
    await waitFor(() => readLines(folder).some(isCall));
    const denials = readLines(folder).filter(({ status }) => status === 'audit_unavailable');
    expect(denials.length).toBeGreaterThanOrEqual(2);
  });

  it('keeps serving when the audit folder is removed', async () => {
    const gateway = await startHttp({ config: servers });
    const { client } = await gateway.connect();
    await client.callTool(echo);
    await waitForLines(gateway.cwd, 1, isCall);
    rmSync(auditOf(gateway.cwd), { recursive: true });
    await waitFor(async () => {
      await client.callTool(echo);
      return readLines(auditOf(gateway.cwd)).some(isCall);
    });
  });
});

it('leaves only complete audit lines when the gateway is killed', async () => {
  const gateway = await startHttp({ config: servers, process: true });
  const { client } = await gateway.connect();
  const calls = (async () => {
    for (;;) await client.callTool(echo);
  })().catch(() => {});
  await waitForLines(gateway.cwd, 50, isCall);
  gateway.process.kill('SIGKILL');
  await gateway.exited;
  await client.close();
  await calls;
  const count = readLines(auditOf(gateway.cwd)).length;
  expect(count).toBeGreaterThan(50);
  expect(await verifyAudit(auditOf(gateway.cwd))).toMatchObject({ sound: count, problems: [] });
});

it('writes all audit lines before the gateway exits', async () => {
  const gateway = await startHttp({ config: servers });
  const { client } = await gateway.connect();
  await Promise.all(Array.from({ length: 40 }, () => client.callTool(echo)));
  await gateway.stop();
  const lines = readLines(auditOf(gateway.cwd));
  expect(lines.filter(isCall)).toHaveLength(40);
  expect(lines.at(-1)).toMatchObject({ act: 'stop' });
});

it('two gateways can share an audit folder', async () => {
  const first = await startHttp({ config: servers });
  const second = await startHttp({ cwd: first.cwd });
  const each = isWide ? 60 : 20;
  const clients = await Promise.all([first.connect(), second.connect()]);
  await Promise.all(clients.flatMap(({ client }) => Array.from({ length: each }, () => client.callTool(echo))));
  await Promise.all([first.stop(), second.stop()]);
  const calls = readLines(auditOf(first.cwd)).filter(isCall);
  expect(calls).toHaveLength(2 * each);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2 * each);
  expect((await verifyAudit(auditOf(first.cwd))).problems).toEqual([]);
});

it('removes old audit files after the retention set by the environment', async () => {
  const files = Object.fromEntries(['2020-01-01', '2020-01-02'].map((day) => [`.toolgate/logs/${day}.jsonl`, '']));
  const gateway = await startHttp({ config: servers, files, env: { LOG_RETENTION_DAYS: '7' } });
  await waitForLines(gateway.cwd, 1, ({ act }) => act === 'start');
  expect(readLines(auditOf(gateway.cwd))).toHaveLength(1);
  expect(readdirSync(auditOf(gateway.cwd))).toHaveLength(1);
});
