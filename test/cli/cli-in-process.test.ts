/** Several commands in one process: each has its own folder, environment, streams, signals and exit code. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { callText } from '../support/doors.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const config = `controls = []\n${serversToml({ up: server('basic', '--tools', 'whoami') })}`;

describe('two gateways in one process', () => {
  it('pass their own environments to their servers, without the variables that are meant for Toolgate', async () => {
    const seen = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const env = { XDG_COLOUR: name, BEARER_TOKEN: `token-of-${name}`, HOME: tempFolder() };
        const gateway = await startHttp({ config, env, process: false });
        const headers = { authorization: `Bearer ${env.BEARER_TOKEN}` };
        const { client } = await gateway.connect({ headers });
        const answer = await callText(client, 'up_whoami', { env: ['XDG_COLOUR', 'BEARER_TOKEN', 'HOME'] });
        expect(JSON.parse(answer)).toMatchObject({ env: { XDG_COLOUR: name, BEARER_TOKEN: null, HOME: env.HOME } });
        return { gateway, headers };
      }),
    );
    const [one, two] = seen as [(typeof seen)[0], (typeof seen)[0]];
    expect((await one.gateway.post('{}', two.headers)).status).toBe(401);
  });

  it('have their own operator keys, in their own homes', async () => {
    const homes = [tempFolder(), tempFolder()];
    for (const HOME of homes)
      await runCli(['approvals', 'approve', 'none'], { config: '', env: { HOME }, process: false });
    for (const home of homes) expect(existsSync(join(home, '.config/toolgate/operator.key'))).toBe(true);
  });

  it('can be connected: one is a server of the other', async () => {
    const inner = await startHttp({ config, process: false });
    const outer = await startHttp({
      config: `controls = []\n[[servers]]\nnamespace = "in"\nurl = "${inner.url}"\n`,
      process: false,
    });
    const { client } = await outer.connect();
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['in_up_whoami']);
  });

  it('do not accept themselves as a server', async () => {
    const gateway = await startHttp({ config: '', process: false });
    writeFiles(gateway.cwd, { 'tools.toml': `[[servers]]\nnamespace = "me"\nurl = "${gateway.url}"\n` });
    await waitFor(() => gateway.stderr().includes('A gateway cannot be its own server'));
  });

  it('stop separately, each with its own exit code', async () => {
    const [one, two] = await Promise.all([
      startHttp({ config: '', process: false }),
      startHttp({ config: '', process: false }),
    ]);
    expect(await one.stop('SIGINT')).toEqual({ code: 0, signal: null });
    expect((await fetch(`${two.origin}/ready`)).status).toBe(200);
    const failed = await runCli(['list'], { config: 'nonsense = 1\n', process: false });
    expect(failed).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('nonsense') });
    expect(two.stderr()).toBe('');
  });
});
