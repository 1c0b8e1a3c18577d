/** A file that is saved in place is half written for a moment. No part of it is ever applied. */
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { call, logged, logOf, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const servers = [{ namespace: 'a', command: server('basic', '--tools', 'echo,whoami') }];
const name = 'tools.toml';
const text = `${toml(servers)}\n[denied_tools]\na = ["whoami"]\n`;

describe('a configuration that is saved in place with pauses', () => {
  it('stays in force until the last byte is written, and closes nothing that was open', {
    timeout: 60_000,
  }, async () => {
    const cwd = tempFolder({ [name]: text });
    const gateway = await startHttp({ cwd, args: ['--log-level', 'info'] });
    const { client } = await gateway.connect();
    const outcomes = () => logOf(gateway).filter(({ message }) => message.startsWith('configuration: '));
    const next = `# edited\n${text}# the end\n`;
    const fd = openSync(join(cwd, name), 'w');
    // At nothing, in the middle of the servers, between the servers and the rules, and in the middle of the rules.
    const ends = [0, 30, text.indexOf('[denied_tools]'), text.indexOf('[denied_tools]') + 12, text.length, next.length];
    let written = 0;
    for (const end of ends) {
      written += writeSync(fd, next.slice(written, end));
      await sleep(1000);
      expect((await call(client, 'a_whoami')).text).toContain('There is no tool');
      expect((await call(client, 'a_echo', { n: end })).text).toBe(`{"n":${end}}`);
    }
    expect(outcomes()).toEqual([]);
    closeSync(fd);
    await logged(gateway, 'configuration: ');
    expect(outcomes()).toHaveLength(1);
    expect((await call(client, 'a_whoami')).text).toContain('There is no tool');
  });

  it('is refused by a reload as long as a program has it open for writing', async () => {
    const cwd = tempFolder({ [name]: text });
    const gateway = await startHttp({ cwd, env: { MANAGER_INTERNAL_TOKEN: 'of-the-manager' } });
    const fd = openSync(join(cwd, name), 'w');
    writeSync(fd, toml(servers));
    const headers = { 'x-manager-token': 'of-the-manager' };
    const answer = await fetch(new URL('/reload', gateway.url), { method: 'POST', headers });
    expect(await answer.text()).toContain('open for writing');
    closeSync(fd);
    const { client } = await gateway.connect();
    expect((await call(client, 'a_whoami')).text).toContain('There is no tool');
    writeFileSync(join(cwd, name), text);
  });
});
