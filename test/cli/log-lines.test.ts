/** What the log says by default: accepted edits, and each failure once. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { logged, logOf, replaceFile, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const basic = (namespace: string) => ({ namespace, command: server('basic', '--tools', 'echo', '--name', namespace) });

it('says in one line what an accepted edit did', async () => {
  const gateway = await startStdio({ config: toml([basic('a')]) });
  await toolNames(gateway.client);
  replaceFile(gateway.cwd, toml([basic('b'), basic('c')]));
  await toolsToBe(gateway.client, ['b_echo', 'c_echo']);
  const line = await logged(gateway, 'configuration: applied');
  expect(line).toMatchObject({
    level: 'info',
    message: 'configuration: applied: 2 servers added (b, c), 1 server removed (a)',
  });
});

it('logs a server that cannot be started once, and goes on trying', async () => {
  const gateway = await startStdio({ config: toml([{ namespace: 'gone', command: 'no-such-program-at-all' }]) });
  const lines = () => logOf(gateway).filter(({ source }) => source === 'gone');
  await logged(gateway, 'was not found');
  // An edit makes it fail in another way: everything before that has been logged.
  replaceFile(gateway.cwd, toml([{ namespace: 'gone', command: 'no-other-program' }]));
  await logged(gateway, 'no-other-program');
  expect(lines().filter(({ message }) => message.includes('no-such-program-at-all'))).toHaveLength(1);
});

it('logs a server that ends for the same reason once, although it prints the time', async () => {
  const starts = join(tempFolder(), 'starts');
  const command = `echo x >> "${starts}"; echo "failed at $(date +%s%N)" >&2; exit 3`;
  const gateway = await startStdio({ config: toml([{ namespace: 'late', command }]) });
  await arrived(starts, '\n', 3);
  const lines = logOf(gateway).filter(({ source }) => source === 'late');
  expect(lines).toHaveLength(1);
  expect(lines[0]!.message).toMatch(/^down: exited with code 3.*\(it said: failed at \d+\)$/);
});
