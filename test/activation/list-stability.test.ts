/**
 * Lists are stable: the same bytes while nothing changed, and what is new at the end. A prompt cache of a client holds the
 * list of tools from its first byte to the first that differs.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runs } from '../support/wide.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const tools = (...names: string[]) => names.join(',');
const servers = serversToml({
  one: server('basic', '--name', 'one', '--tools', tools(...NAMES.slice(0, 3))),
  two: server('basic', '--name', 'two', '--tools', tools(...NAMES.slice(3))),
});
const ALL = NAMES.map((name, i) => `${i < 3 ? 'one' : 'two'}_${name}`);
const unmarked = `mark_active = false\n${servers}`;

/** The array of tools as it was sent, without its closing bracket. */
function arrayOf(line: Buffer): string {
  const text = line.toString();
  const start = text.indexOf('"tools":[') + '"tools":'.length;
  return text.slice(start, text.lastIndexOf(']'));
}

async function connect(config: string, cwd = tempFolder()) {
  const gateway = await startStdio({ config, cwd });
  const list = async () => arrayOf(await gateway.request('tools/list'));
  const activate = (on: readonly string[], off: readonly string[] = []) =>
    gateway.client.callTool({
      name: 'toolman_activate',
      arguments: { tools_on: on, tools_off: off, resources_on: [], resources_off: [] },
    });
  return { gateway, list, activate };
}

describe('a list of tools', () => {
  it('only grows at its end when tools are activated, in any order', async () => {
    const { list, activate } = await connect(unmarked);
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(ALL, { minLength: 1 }), async (order) => {
        await activate([], ALL);
        let before = await list();
        for (const name of order) {
          await activate([name]);
          const now = await list();
          expect(now.startsWith(before)).toBe(true);
          expect(now.slice(before.length)).toContain(`"name":"${name}"`);
          before = now;
        }
        expect(await list()).toBe(before);
      }),
      { numRuns: runs(100) },
    );
  });

  it('keeps what is left in its order when tools are deactivated, and shows them at the end when they are back', async () => {
    const { gateway, activate } = await connect(unmarked);
    const names = async () => (await gateway.client.listTools()).tools.map(({ name }) => name).slice(1);
    for (const name of ['two_d', 'one_b', 'one_a']) {
      await activate([name]);
      await names();
    }
    await activate([], ['one_b']);
    expect(await names()).toEqual(['two_d', 'one_a']);
    await activate(['one_b']);
    expect(await names()).toEqual(['two_d', 'one_a', 'one_b']);
  });

  it('has the same bytes after a restart, and after a reload that changes nothing', async () => {
    const cwd = tempFolder();
    const config = `controls = []\n${servers}`;
    const first = await connect(config, cwd);
    const before = await first.list();
    writeFileSync(join(cwd, 'tools.toml'), `# a comment\n${config}`);
    expect(await first.list()).toBe(before);
    expect(first.gateway.changes('tools')).toBe(0);
    await first.gateway.stop();
    expect(await (await connect(config, cwd)).list()).toBe(before);
  });

  it('has the same bytes when a server restarts and lists in another order, also in the next run', async () => {
    const folder = tempFolder();
    const file = join(folder, 'list.json');
    const definition = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`;
    const write = (...names: string[]) => writeFileSync(file, `[${names.map(definition).join(',')}]`);
    const config = `controls = []\n${serversToml({ git: server('basic', '--name', 'git', '--raw-tools', file) })}`;
    const cwd = tempFolder();
    write('x', 'y', 'z');
    const first = await connect(config, cwd);
    const before = await first.list();
    expect(before).toContain('git_x');
    await first.gateway.stop();
    write('z', 'x', 'y');
    const second = await connect(config, cwd);
    await waitFor(async () => (await second.list()) === before);
    await second.gateway.stop();
    write('new', 'y', 'x', 'z');
    const third = await connect(config, cwd);
    await waitFor(async () => (await third.list()).includes('git_new'));
    expect((await third.list()).startsWith(before)).toBe(true);
  });
});

it('what changed lists cost is in toolgate status and in the metrics', async () => {
  const env = { HOME: tempFolder() };
  const { cwd, origin, connect: join } = await startHttp({ config: unmarked, env });
  const { client } = await join();
  await client.listTools();
  for (const name of ['one_a', 'two_d']) {
    const lists = { tools_on: [name], tools_off: [], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    await client.listTools();
    await client.listTools();
  }
  const { stdout } = await runCli(['status', '--json'], { cwd, env });
  const [{ clients }] = (JSON.parse(stdout) as { gateways: [{ clients: object[] }] }).gateways;
  const lists = { changes: 2, sentAgain: 2, tokens: expect.any(Number) as number };
  expect(clients).toMatchObject([{ activated: ['one_a', 'two_d'], lists }]);
  const { tokens } = (clients[0] as { lists: { tokens: number } }).lists;
  expect(tokens).toBeGreaterThan(500);
  const metrics = readExposition(await (await fetch(`${origin}/metrics`)).text());
  const value = (name: string) => metrics.get(name)!.samples[0]!.value;
  expect(value('toolgate_lists_sent_again_total')).toBe(2);
  expect(value('toolgate_lists_sent_again_tokens_total')).toBe(tokens);
  expect(metrics.get('toolgate_list_changes_total')!.samples.find(({ labels }) => labels.list === 'tools')!.value).toBe(
    2,
  );
  expect((await runCli(['status'], { cwd, env })).stdout).toMatch(
    /list changed 2 times, sent again 2 times \(.*tokens\); results about \d+ tokens; activated one_a, two_d/,
  );
});
