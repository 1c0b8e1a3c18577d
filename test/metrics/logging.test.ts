/** logCalls, and its use by the command line. */
import { describe, expect, it } from 'vitest';
import { GatewayError, logCalls, openLocalDoor } from '../../src/index.ts';
import { startStdio } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { basic, hanging, open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

describe('logCalls', () => {
  it('writes one line for each call, without arguments and results', async () => {
    const { gateway } = await open({ a: basic(), h: { ...hanging, timeout: 200 }, w: hanging });
    const lines: string[] = [];
    gateway.use(logCalls((line) => lines.push(line)));
    const door = openLocalDoor(gateway);
    await door.callTool('a_echo', { password: 'hunter2' });
    await door.callTool('a_raw', { json: '{"content":[{"type":"text","text":"hunter2"}],"isError":true}' });
    await door.callTool('a_raw', {}).catch(() => {});
    await door.callTool('h_hang', {}).catch(() => {});
    const abort = new AbortController();
    const slow = door.callTool('w_slow', { ms: 60_000 }, { signal: abort.signal }).catch(() => {});
    await callsInFlight(gateway);
    abort.abort();
    await slow;
    gateway.use(() => {
      throw new GatewayError('forbidden', 'hunter2');
    });
    await door.callTool('a_echo', {}).catch(() => {});
    const took = String.raw`in \d+\.\d ms$`;
    expect(lines).toEqual([
      expect.stringMatching(`^tool "a_echo" of "a" for "local": ok ${took}`),
      expect.stringMatching(`^tool "a_raw" of "a" for "local": tool_error ${took}`),
      expect.stringMatching(`^tool "a_raw" of "a" for "local": error ${took}`),
      expect.stringMatching(`^tool "h_hang" of "h" for "local": source_timeout ${took}`),
      expect.stringMatching(`^tool "w_slow" of "w" for "local": cancelled ${took}`),
      expect.stringMatching(`^tool "a_echo" of "a" for "local": forbidden ${took}`),
    ]);
    expect(lines.join()).not.toContain('hunter2');
  });

  it('writes arguments and results if that is enabled', async () => {
    const { gateway } = await open({ a: basic() });
    const lines: string[] = [];
    gateway.use(logCalls((line) => lines.push(line), { arguments: true, results: true }));
    await openLocalDoor(gateway).callTool('a_echo', { x: 'one\ntwo' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(String.raw` arguments {"x":"one\ntwo"} result {"content":`);
    expect(lines[0]).not.toContain('\n');
  });
});

describe('toolgate --log-level', () => {
  const config = `controls = []\n${serversToml({ a: server('basic') })}`;

  it('debug logs each call', async () => {
    const gateway = await startStdio({ config, args: ['--log-level', 'debug'] });
    await gateway.client.callTool({ name: 'a_echo', arguments: { password: 'hunter2' } });
    const line = await waitFor(() => /^.*a_echo.*$/m.exec(gateway.stderr())?.[0]);
    expect(JSON.parse(line)).toMatchObject({
      level: 'debug',
      message: expect.stringMatching(/^tool "a_echo" of "a" for "default": ok in /),
    });
    expect(gateway.stderr()).not.toContain('hunter2');
  });

  it('info does not log calls', async () => {
    const gateway = await startStdio({ config, args: ['--log-level', 'info'] });
    await gateway.client.callTool({ name: 'a_echo', arguments: {} });
    expect(gateway.stderr()).not.toContain('a_echo');
  });
});
