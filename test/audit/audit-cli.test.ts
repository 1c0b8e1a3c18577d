/** toolgate audit: reads the audit, for people and for programs. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Line, waitForLines } from '../support/audit-records.ts';
import { runCli, startCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `active_toolsets = ["*"]\n${serversToml({ a: server('basic') })}`;
let gateway: HttpGateway;

beforeAll(async () => {
  gateway = await startHttp({ config });
  const { client } = await gateway.connect();
  for (let i = 0; i < 3; i++) await client.callTool({ name: 'a_echo', arguments: { i } });
  await client.callTool({ name: 'a_raw', arguments: { json: '{"content":[],"isError":true}' } });
  await client.callTool({ name: 'a_nothing', arguments: {} });
  await waitForLines(gateway.cwd, 6, () => true);
});

const run = (...args: string[]) => runCli(['audit', ...args], { cwd: gateway.cwd });
const lines = (text: string) => text.trimEnd().split('\n');

describe('toolgate audit tail and query', () => {
  it('print a table', async () => {
    const { code, stdout, stderr } = await run('tail', '-n', '3');
    expect([code, stderr]).toEqual([0, '']);
    const [head, ...rows] = lines(stdout);
    expect(head).toMatch(/^TIME +KIND +AGENT +WHAT +STATUS +TOOK$/);
    expect(rows).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d [\d:.]+ +call +anonymous +a_echo +ok +[\d.]+ ms$/),
      expect.stringMatching(/^\d{4}-\d\d-\d\d [\d:.]+ +call +anonymous +a_raw +tool_error +[\d.]+ ms$/),
      expect.stringMatching(/^\d{4}-\d\d-\d\d [\d:.]+ +denial +anonymous +a_nothing +item_unknown$/),
    ]);
  });

  it.each<[string[], number]>([
    [[], 6],
    [['--kind', 'call'], 4],
    [['--kind', 'denial'], 1],
    [['--tool', 'a_*'], 5],
    [['--tool', 'echo'], 3],
    [['--server', 'a', '--status', 'ok'], 3],
    [['--agent', 'anonymous'], 5],
    [['--agent', 'nobody'], 0],
    [['--limit', '2'], 2],
    [['--since', '1h'], 6],
    [['--since', '2999-01-01'], 0],
    [['--until', '2020-01-01T00:00:00Z'], 0],
  ])('query %j finds %i', async (args, count) => {
    const { code, stdout, stderr } = await run('query', '--json', ...args);
    expect([code, stderr]).toEqual([0, '']);
    const found = stdout === '' ? [] : lines(stdout).map((line) => JSON.parse(line) as Line);
    expect(found).toHaveLength(count);
  });

  it('follow new lines', async () => {
    const child = startCli(['audit', 'tail', '--follow', '--kind', 'call', '-n', '1'], { cwd: gateway.cwd });
    await waitFor(() => lines(child.stdout()).length === 1 && child.stdout() !== '');
    const { client } = await gateway.connect();
    await client.callTool({ name: 'a_count', arguments: {} });
    await waitFor(() => child.stdout().includes('a_count'));
    await child.stop('SIGINT');
    expect(child.stderr()).toBe('');
  });

  it('report an empty audit, and skip damaged lines', async () => {
    const cwd = tempFolder({
      'tools.toml': config,
      '.toolgate/logs/2026-11-16.jsonl':
        '{"time":"2026-11-16T00:00:00.000Z","kind":"admin","act":"start","status":"ok"}\n{"ti\n\n7\n',
    });
    const { stdout, stderr } = await runCli(['audit', 'query'], { cwd });
    expect(lines(stdout)).toHaveLength(2);
    expect(stderr).toBe('warning: 2 damaged lines skipped\n');
    const none = await runCli(['audit', 'query', '--kind', 'call'], { cwd });
    expect(none.stdout).toMatch(/^.*logs has no matching records\.\n$/);
  });

  it.each([
    [['nonsense'], 'toolgate audit has no "nonsense". Choose from tail, query, usage, verify, seal.'],
    [
      ['query', '--since', 'yesterday'],
      '--since is like 30m, 24h, 7d, 2026-11-16 or 2026-11-16T08:00:00Z, not "yesterday".',
    ],
    [['query', '--kind', 'x'], '--kind is call, begun, denial or admin, not "x".'],
    [['tail', '-n', 'x'], '--limit is a number of lines, not "x".'],
    [['query', '--follow'], '--follow is for toolgate audit tail.'],
  ])('explain %j', async (args, message) => {
    const { code, stderr } = await run(...args);
    expect([code, stderr]).toEqual([2, `toolgate: ${message}\n`]);
  });
});

describe('toolgate audit usage', () => {
  it('sums calls by agent and tool', async () => {
    const { stdout } = await run('usage', '--until', '2999-01-01');
    const [head, ...rows] = lines(stdout);
    expect(head).toMatch(/^AGENT +NAME +SERVER +CALLS +ERRORS +DENIALS +P50 +P99 +IN +OUT$/);
    expect(rows).toContainEqual(
      expect.stringMatching(/^anonymous +a_echo +a +3 +0 +0 +[\d.]+ ms +[\d.]+ ms +\d+ B +\d+ B$/),
    );
    expect(rows).toContainEqual(
      expect.stringMatching(/^anonymous +a_raw +a +1 +1 +0 +[\d.]+ ms +[\d.]+ ms +\d+ B +\d+ B$/),
    );
    expect(rows).toContainEqual(expect.stringMatching(/^anonymous +a_nothing +- +0 +0 +1 +- +- +\d+ B +0 B$/));
    const { stdout: json } = await run('usage', '--json', '--tool', 'a_echo');
    expect(JSON.parse(json)).toEqual([
      expect.objectContaining({ agent: 'anonymous', server: 'a', name: 'a_echo', calls: 3, errors: 0, denials: 0 }),
    ]);
  });
});

describe('toolgate audit verify', () => {
  it('accepts unchanged files, and names changed ones', async () => {
    const well = await run('verify');
    expect([well.code, well.stdout]).toEqual([0, expect.stringMatching(/^✓ \d+ lines in 1 file unaltered\n$/)]);
    const line = '{"time":"2026-11-16T00:00:00.000Z","kind":"admin","act":"start","status":"ok"}\n';
    const cwd = tempFolder({ 'tools.toml': config, '.toolgate/logs/2026-11-16.jsonl': line });
    const { code, stdout } = await runCli(['audit', 'verify'], { cwd });
    expect(code).toBe(1);
    expect(stdout).toContain('✗ 2026-11-16.jsonl:1: 1 line is without a seal: added, or cut off');
  });
});
