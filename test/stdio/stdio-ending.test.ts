/** How a stdio gateway starts and stops: only messages on stdout, and every pending answer is printed. */
import { describe, expect, it } from 'vitest';
import { type Child, within } from '../support/child.ts';
import { startCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const initialize =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}';
const call = (id: number, name: string, args = '{}') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;

/** Writes everything at once, closes the input, and returns the answers. */
async function pipe(config: string, text: string, args: string[] = []): Promise<{ ids: unknown[]; child: Child }> {
  const child = startCli(args, { config });
  child.process.stdin.end(text);
  const exit = await within(15_000, child.exited);
  expect(exit).toEqual({ code: 0, signal: null });
  const lines = child.stdout().trimEnd().split('\n');
  return { ids: lines.map((line) => (JSON.parse(line) as { id: unknown }).id), child };
}

describe('a stdio gateway whose input ends', () => {
  it('prints pending answers, including those of a server that is still starting', async () => {
    const config = `controls = []\n${serversToml({ up: server('basic', '--slow-start', 400), slow: server('hang') })}`;
    const text = [
      initialize,
      call(1, 'slow_slow', '{"ms":500}'),
      call(2, 'up_echo'),
      '{"jsonrpc":"2.0","id":3,"method":"tools/list"}',
    ];
    const { ids, child } = await pipe(config, `${text.join('\n')}\n`);
    expect(ids.toSorted()).toEqual([0, 1, 2, 3]);
    expect(child.stdout()).toContain('up_whoami');
  });

  it('reads a last line without a line break', async () => {
    const { ids } = await pipe('', `${initialize}\n{"jsonrpc":"2.0","id":1,"method":"ping"}`);
    expect(ids).toEqual([0, 1]);
  });

  it('answers an incomplete message as a parse error', async () => {
    const { ids, child } = await pipe('', `${initialize}\n{"jsonrpc":"2.0","id":1,"met`);
    expect(ids).toEqual([0, null]);
    expect(child.stdout()).toContain('-32700');
  });

  it('prints a large answer completely', async () => {
    const config = `controls = []\n${serversToml({ up: server('flood') })}`;
    const { child } = await pipe(config, `${[initialize, call(1, 'up_big', '{"bytes":5000000}')].join('\n')}\n`);
    expect(child.stdout().length).toBeGreaterThan(5_000_000);
    expect(child.stdout().endsWith('}\n')).toBe(true);
  });

  it('does not wait for a call that never ends', async () => {
    const start = performance.now();
    const config = `controls = []\n${serversToml({ up: server('hang') })}`;
    const { ids } = await pipe(config, `${[initialize, call(1, 'up_hang')].join('\n')}\n`);
    expect(ids).toEqual([0]);
    // The call would end with its timeout, after 60 s.
    expect(performance.now() - start).toBeLessThan(patient(30_000));
  });

  it('exits if there was no input at all', async () => {
    const child = startCli(['stdio'], { config: '' });
    child.process.stdin.end();
    expect(await within(5000, child.exited)).toEqual({ code: 0, signal: null });
    expect(child.stdout()).toBe('');
  });
});

describe('stdout of the gateway', () => {
  it('contains only messages, whatever servers and the log print', async () => {
    // openPipe fails the test for any line that is not a message.
    const gateway = await startStdio({
      config: `controls = []\n${serversToml({
        noisy: server('flood', '--stderr', 200_000),
        garbage: server('garbage'),
        dead: server('dead'),
        absent: 'no-such-program-anywhere',
      })}`,
      files: { 'toolgate.json': '{}' },
      args: ['--log-level', 'debug'],
    });
    await gateway.client.callTool({ name: 'noisy_stderr', arguments: { bytes: 50_000 } });
    await gateway.client.callTool({ name: 'garbage_ok', arguments: {} });
    await gateway.client.listTools();
    await waitFor(() => gateway.stderr().includes('no-such-program-anywhere'));
    expect(gateway.lines.length).toBeGreaterThan(3);
    for (const line of gateway.stderr().trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');
  });

  it('stays empty if the configuration is invalid', async () => {
    const child = startCli([], { config: 'servers = 3\n' });
    expect(await within(5000, child.exited)).toEqual({ code: 2, signal: null });
    expect(child.stdout()).toBe('');
    expect(child.stderr()).toContain('tools.toml:1');
  });

  it('ends the gateway when it is closed by its reader', async () => {
    const child = startCli([], { config: '' });
    child.process.stdin.write(`${initialize}\n`);
    await waitFor(() => child.stdout().includes('"id":0'));
    child.process.stdout.destroy();
    for (let i = 0; i < 3; i++) child.process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect(await within(5000, child.exited)).toMatchObject({ code: 0 });
  });
});
