/** `audit.before`: a line is on the disk before a server gets a call. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyAudit } from '../../src/index.ts';
import { auditOf, isCall, isDenial, type Line, readLines, waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { arrived, callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const isBegun = ({ kind }: Line) => kind === 'begun';
const echo = { name: 'a_echo', arguments: {} };
const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;

function configOf(audit: string, rest = '', flags: readonly string[] = []): string {
  const servers = serversToml({ a: server('basic', ...flags), h: server('hang') });
  return `active_toolsets = ["*"]\n${rest}\n${servers}\n[audit]\n${audit}\n`;
}

describe('with audit.before', () => {
  it('a call that was killed in the middle has a line, which tail and query show', async () => {
    const gateway = await startHttp({ config: configOf('before = true'), process: true });
    const { client } = await gateway.connect();
    await client.callTool(echo);
    const hanging = client.callTool({ name: 'h_hang', arguments: {} }).catch(() => {});
    await callsInFlight(gateway);
    gateway.process.kill('SIGKILL');
    await gateway.exited;
    await client.close();
    await hanging;
    const begun = readLines(auditOf(gateway.cwd)).filter(isBegun);
    expect(begun).toMatchObject([
      { name: 'a_echo', status: 'begun' },
      { agent: 'anonymous', door: 'http', method: 'tools/call', server: 'h', tool: 'hang', name: 'h_hang' },
    ]);
    expect((await verifyAudit(auditOf(gateway.cwd))).problems).toEqual([]);
    const run = async (...args: string[]) => (await runCli(['audit', ...args], { cwd: gateway.cwd })).stdout;
    for (const verb of ['tail', 'query']) expect(await run(verb)).toMatch(/begun +anonymous +h_hang +begun/);
    expect(JSON.parse(await run('query', '--json', '--kind', 'begun'))).toMatchObject({ name: 'h_hang' });
    expect(await run('usage')).not.toContain('h_hang');
  });

  it('its line is there when the server gets the call', async () => {
    const log = join(tempFolder({}), 'log');
    const gateway = await startHttp({ config: configOf('before = true', '', ['--log', log]) });
    const { client } = await gateway.connect();
    for (let i = 0; i < 5; i++) {
      const calling = client.callTool({ name: 'a_echo', arguments: { i } });
      await arrived(log, '"tools/call"', i + 1);
      expect(readLines(auditOf(gateway.cwd)).filter(isBegun)).toHaveLength(i + 1);
      await calling;
    }
  });

  it('counts a call once: in query, in usage and for the line with the outcome', async () => {
    const gateway = await startHttp({ config: configOf('before = true') });
    const { client } = await gateway.connect();
    await Promise.all(Array.from({ length: 20 }, () => client.callTool(echo)));
    const ended = await waitForLines(gateway.cwd, 20, isCall);
    const begun = readLines(auditOf(gateway.cwd)).filter(isBegun);
    expect(new Set(ended.map((line) => line.begun))).toEqual(new Set(begun.map(({ id }) => id)));
    const run = async (...args: string[]) => (await runCli(['audit', ...args], { cwd: gateway.cwd })).stdout;
    expect((await run('query', '--tool', 'a_echo', '--json')).trimEnd().split('\n')).toHaveLength(20);
    expect(JSON.parse(await run('usage', '--json'))).toMatchObject([{ name: 'a_echo', calls: 20, errors: 0 }]);
    expect(await verifyAudit(auditOf(gateway.cwd))).toMatchObject({ problems: [] });
  });

  it('a call that is denied has one line', async () => {
    const gateway = await startHttp({
      config: configOf('before = true', 'denied_tools = { a = ["echo"] }'),
    });
    const { client } = await gateway.connect();
    expect((await client.callTool(echo)).isError).toBe(true);
    await waitForLines(gateway.cwd, 1, isDenial);
    expect(readLines(auditOf(gateway.cwd)).filter(({ kind }) => kind !== 'admin')).toHaveLength(1);
  });

  it('a call whose line cannot be written is refused with on_failure = "stop" and goes on with "continue"', async () => {
    for (const [onFailure, isRefused] of [
      ['stop', true],
      ['continue', false],
    ] as const) {
      const config = configOf(`before = true\ndir = "logs"\non_failure = "${onFailure}"`);
      const gateway = await startHttp({ config });
      const { client } = await gateway.connect();
      expect(textOf(await client.callTool(echo))).toBe('{}');
      await waitFor(() => readLines(join(gateway.cwd, 'logs')).some(isCall));
      // The folder goes away between two calls: only the write before the second call can find that out.
      rmSync(join(gateway.cwd, 'logs'), { recursive: true });
      writeFileSync(join(gateway.cwd, 'logs'), 'a file where a folder should be');
      await new Promise((resolve) => setTimeout(resolve, 60));
      const second = await client.callTool(echo);
      expect(second.isError === true).toBe(isRefused);
      if (isRefused) expect(JSON.parse(textOf(second))).toMatchObject({ code: 'audit_unavailable' });
      rmSync(join(gateway.cwd, 'logs'));
      await waitFor(() => readLines(join(gateway.cwd, 'logs')).some(isBegun));
    }
  });

  it('an edit switches it on and off', async () => {
    const gateway = await startHttp({ config: configOf('before = false') });
    const { client } = await gateway.connect();
    await client.callTool(echo);
    await waitForLines(gateway.cwd, 1, isCall);
    expect(readLines(auditOf(gateway.cwd)).filter(isBegun)).toEqual([]);
    writeFileSync(join(gateway.cwd, 'tools.toml'), configOf('before = true'));
    await waitForLines(gateway.cwd, 1, ({ act }) => act === 'config_applied');
    await client.callTool(echo);
    expect(readLines(auditOf(gateway.cwd)).filter(isBegun)).toHaveLength(1);
  });
});
