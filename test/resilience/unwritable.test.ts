/** A data folder that cannot be written: the model, the log and the commands are told why, and nothing claims success. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { asOtherUser } from '../support/other-user.ts';
import { waitFor } from '../support/processes.ts';
import { callError } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `controls = ["equip"]\n${serversToml({ git: server('basic', '--tools', 'status,log') })}\n[toolsets.few]\ntools = ["git.status"]\n`;

/** Runs the work as a user who may not write the data folder. */
function withoutPermission(work: (cwd: string, env: Record<string, string>) => Promise<void>): Promise<void> {
  const cwd = tempFolder({ 'tools.toml': config });
  const env = { HOME: join(cwd, 'home') };
  mkdirSync(env.HOME);
  mkdirSync(join(cwd, '.toolgate'));
  return asOtherUser(cwd, async () => {
    chmodSync(join(cwd, '.toolgate'), 0o500);
    try {
      await work(cwd, env);
    } finally {
      chmodSync(join(cwd, '.toolgate'), 0o700);
    }
  });
}

describe('a data folder without permission to write', () => {
  it('is told to the model and in the log, with the file, the cause and what to do', () =>
    withoutPermission(async (cwd, env) => {
      const gateway = await startHttp({ cwd, env });
      const { client } = await gateway.connect();
      const tools = [{ namespacedName: 'git.status' }];
      const refusal = await callError(client, 'build-toolset', { name: 'mine', tools });
      expect(refusal.code).toBe('storage_failed');
      expect(refusal.message).toMatch(
        /^The toolset "mine" could not be saved, and nothing was changed\. .*\.toolgate\/toolsets\/mine\.json cannot be written: permission denied \(EACCES\)\. Make its folder writable for this user\.$/,
      );
      const log = () => gateway.stderr();
      await waitFor(() => log().includes('The toolset \\"mine\\" could not be saved'));
      expect(log()).toContain('permission denied (EACCES)');
      await waitFor(() => log().includes('nothing is remembered for the next start'));
      expect(log().match(/nothing is remembered for the next start/g)).toHaveLength(1);
      expect(log()).not.toMatch(/\n? {4}at /);
      await gateway.stop();
    }));

  it.each([
    [['toolsets', 'create', 'mine', 'git.status']],
    [['toolsets', 'equip', 'few']],
    [['agents', 'add', 'ci']],
    [['namespaces', 'create', 'weather']],
  ])('makes toolgate %s fail in one line that has the cause', (args) =>
    withoutPermission(async (cwd, env) => {
      const { code, stdout, stderr } = await runCli(args, { cwd, env });
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('EACCES');
      expect(stderr).not.toMatch(/^ {4}at /m);
      const lines = stderr
        .trimEnd()
        .split('\n')
        .filter((line) => line.startsWith('toolgate:'));
      expect(lines).toHaveLength(1);
    }),
  );
});

it('a file in the place of a folder is told as such', async () => {
  const cwd = tempFolder({ 'tools.toml': config });
  mkdirSync(join(cwd, '.toolgate'));
  writeFileSync(join(cwd, '.toolgate/toolsets'), 'not a folder');
  const { code, stderr } = await runCli(['toolsets', 'create', 'mine', 'git.status'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toMatch(/mine\.json cannot be written: a file is in the place of a folder \(E(EXIST|NOTDIR)\)/);
});
