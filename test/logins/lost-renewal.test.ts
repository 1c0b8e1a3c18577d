/** The gateway is killed while a token is being renewed: the old one is gone, the new one was never received. */
import { expect, it } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { runCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { KEY, logIn } from './login.ts';

it('asks for a login after kill -9 in the middle of a renewal, and the secrets stay readable', async () => {
  const provider = await startProvider();
  const guarded = await startGuarded(provider.issuer);
  const config = `controls = []\nshared = false\n[servers.remote]\nurl = "${guarded.url}"\n`;
  const first = await startStdio({ config, env: KEY, process: true });
  const { cwd } = first;
  await runCli(['secrets', 'set', 'OTHER', '--stdin'], { cwd, env: KEY, input: 'another secret' });
  expect((await logIn(cwd, 'alice')).code).toBe(0);
  await waitFor(async () => (await first.client.listTools()).tools.length > 0);
  provider.losesAnswers = true;
  guarded.expireAll();
  const lost = first.client.callTool({ name: 'remote_whoami', arguments: {} }).catch(() => 'lost');
  await waitFor(() => provider.renewals === 1);
  await first.stop('SIGKILL');
  expect(await lost).toBe('lost');
  provider.losesAnswers = false;

  const second = await startStdio({ cwd, env: KEY });
  const { content } = await second.client.callTool({ name: 'remote_whoami', arguments: {} });
  expect((content as { text: string }[])[0]!.text).toContain('toolgate login remote');
  expect((await runCli(['secrets', 'list'], { cwd, env: KEY })).stdout).toMatch(/^OTHER +global +set/);
  expect((await logIn(cwd, 'alice')).code).toBe(0);
  await waitFor(async () => {
    const answer = await second.client.callTool({ name: 'remote_whoami', arguments: {} });
    return (answer.content as { text: string }[])[0]!.text === 'done';
  });
});
