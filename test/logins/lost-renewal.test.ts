/** The gateway is killed while a token is being renewed: the old one is gone, and the new one is not kept yet. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { childEnv } from '../support/child.ts';
import { runCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';
import { KEY, logIn } from './login.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));
const KILL_AT = new URL('../support/kill-at.mjs', import.meta.url).href;
const OTHER = /^OTHER +global +set/;

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
  expect((await runCli(['secrets', 'list'], { cwd, env: KEY })).stdout).toMatch(OTHER);
  expect((await logIn(cwd, 'alice')).code).toBe(0);
  await waitFor(async () => {
    const answer = await second.client.callTool({ name: 'remote_whoami', arguments: {} });
    return (answer.content as { text: string }[])[0]!.text === 'done';
  });
});

it('works or asks for a login after kill -9 at any change of a file during a renewal', {
  timeout: 600_000,
}, async () => {
  const provider = await startProvider();
  const guarded = await startGuarded(provider.issuer);
  const cwd = tempFolder({ 'tools.toml': `controls = []\nshared = false\n[servers.remote]\nurl = "${guarded.url}"\n` });
  await runCli(['secrets', 'set', 'OTHER', '--stdin'], { cwd, env: KEY, input: 'another secret' });

  /** A call whose process ends at this moment. 0: it is not killed, and says how many moments there are. */
  const called = (moment: number) =>
    new Promise<string>((resolve) => {
      const args = ['--import', KILL_AT, PROGRAM, 'call', 'remote_whoami'];
      const env = childEnv({ ...KEY, HOME: cwd, KILL_AT: String(moment) });
      const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk));
      child.once('close', () => resolve(text));
    });

  /** Afterwards the server knows the token, and can refuse it. */
  const logInAndCall = async () => {
    expect((await logIn(cwd, 'alice')).code).toBe(0);
    expect(await called(0)).toContain('done');
  };
  await logInAndCall();
  guarded.expireAll();
  const before = provider.renewals;
  const whole = await called(0);
  expect(whole).toContain('done');
  expect(provider.renewals).toBe(before + 1);
  const most = Number(/moments: (\d+)/.exec(whole)?.[1]);
  expect(most).toBeGreaterThan(3);
  // The moments before each change: those after one are the same to the files.
  const all = Array.from({ length: Math.ceil(most / 2) }, (_, index) => 2 * index + 1);
  const outcomes = new Set<string>();
  for (const moment of some(all, [all[0]!, all[all.length >> 1]!, all.at(-1)!])) {
    guarded.expireAll();
    await called(moment);
    const after = await called(0);
    const outcome = /done|toolgate login remote/.exec(after)?.[0];
    expect(outcome, `killed at ${moment} of ${most}: ${after}`).toBeDefined();
    outcomes.add(outcome!);
    expect((await runCli(['secrets', 'list'], { cwd, env: KEY })).stdout, `killed at ${moment}`).toMatch(OTHER);
    if (outcome !== 'done') await logInAndCall();
  }
  expect(outcomes).toContain('done');
});
