/** `watch`: which edits of the configuration are applied without being asked for. */
import { describe, expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { logged, logOf, replaceFile, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

const entry = (namespace: string) => ({
  namespace,
  command: server('basic', '--tools', 'echo,whoami', '--name', namespace),
});
const env = { MANAGER_INTERNAL_TOKEN: 'of-the-manager' };
const args = ['--log-level', 'info'];
const outcomes = (gateway: Parameters<typeof logOf>[0]) =>
  logOf(gateway).filter(({ message }) => message.startsWith('configuration: '));

async function open(settings: Record<string, unknown>) {
  const gateway = await startHttp({ config: toml([entry('a'), entry('b')], settings), env, args });
  const { client } = await gateway.connect();
  const reload = () =>
    fetch(new URL('/reload', gateway.url), { method: 'POST', headers: { 'x-manager-token': 'of-the-manager' } });
  return { gateway, client, reload };
}

const denied = { denied_tools: { a: ['whoami'] } };

describe('with watch = "confirm"', () => {
  it.each([
    ['adds a command', [entry('a'), entry('b'), entry('c')], denied, 'server "c"'],
    ['changes a command', [entry('a'), { ...entry('b'), command: server('basic') }], denied, 'server "b"'],
    ['removes policy', [entry('a'), entry('b')], {}, 'policy'],
    [
      'renames a server, so that no rule is about it any more',
      [{ ...entry('a'), namespace: 'x' }, entry('b')],
      denied,
      'server "x"',
    ],
  ])('an edit that %s waits for a reload', async (_, servers, rules, named) => {
    const { gateway, client, reload } = await open({ watch: 'confirm', ...denied });
    const before = await toolNames(client);
    replaceFile(gateway.cwd, toml(servers, { watch: 'confirm', ...rules }));
    const { message } = await logged(gateway, 'waits for SIGHUP or POST /reload');
    expect(message).toContain(named);
    expect(await toolNames(client)).toEqual(before);
    expect((await reload()).status).toBe(200);
    await logged(gateway, 'configuration: ');
    await expect.poll(() => toolNames(client), { timeout: 10_000 }).not.toEqual(before);
  });

  it('the edit that switches it off waits too', async () => {
    const { gateway, client } = await open({ watch: 'confirm', ...denied });
    replaceFile(gateway.cwd, toml([entry('a'), entry('b')], { watch: true }));
    expect((await logged(gateway, 'waits for SIGHUP')).message).toContain('watch');
    expect(await toolNames(client)).not.toContain('a_whoami');
  });

  it('an edit that only takes away, or only changes what is shown, is applied at once', async () => {
    const { gateway, client } = await open({ watch: 'confirm', ...denied });
    replaceFile(gateway.cwd, toml([entry('a')], { watch: 'confirm', ...denied }));
    await toolsToBe(client, ['a_echo']);
    replaceFile(gateway.cwd, toml([entry('a')], { watch: 'confirm', ...denied, active_toolsets: [] }));
    await toolsToBe(client, []);
  });
});

describe('with watch = false', () => {
  it('no edit is applied until a reload', async () => {
    const { gateway, client, reload } = await open({ watch: false });
    replaceFile(gateway.cwd, toml([entry('a')], { watch: false }));
    // Longer than a watched file takes.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(outcomes(gateway)).toEqual([]);
    expect(await toolNames(client)).toContain('b_echo');
    await reload();
    await toolsToBe(client, ['a_echo', 'a_whoami']);
  });
});
