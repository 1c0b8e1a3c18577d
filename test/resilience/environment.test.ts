/** Which part of the gateway's environment the process of a server gets. */
import { expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const own = {
  TOOLGATE_ANYTHING: 'ours',
  TOOLGATE_: 'ours',
  BEARER_TOKEN: 'ours',
  SECRETS_KEY: 'ours, and long enough',
};

it('passes on the environment without the variables of Toolgate, plus the declared ones', async () => {
  const entry = {
    namespace: 'b',
    command: server('basic'),
    env: {
      DECLARED: 'with spaces & $igns',
      FROM_OURS: '${GREETING} world',
      GREETING_TOO: 'x',
      SECRETS_KEY: 'declared',
    },
  };
  const { client } = await startStdio({ config: toml([entry]), env: { ...own, GREETING: 'hello', GREETING_TOO: 'y' } });
  const names = [...Object.keys(own), 'DECLARED', 'FROM_OURS', 'GREETING', 'GREETING_TOO', 'PATH'];
  const { env } = JSON.parse(await callText(client, 'b_whoami', { env: names }));
  expect(env).toEqual({
    TOOLGATE_ANYTHING: null,
    TOOLGATE_: null,
    BEARER_TOKEN: null,
    // Variables that the configuration declares are intended for the server.
    SECRETS_KEY: 'declared',
    DECLARED: 'with spaces & $igns',
    FROM_OURS: 'hello world',
    GREETING: 'hello',
    GREETING_TOO: 'x',
    PATH: process.env.PATH,
  });
});

it('hides the variables of Toolgate from servers behind the HTTP door too, including BEARER_TOKEN', async () => {
  const config = toml([{ namespace: 'b', command: server('basic') }]);
  const gateway = await startHttp({ config, env: { ...own, BEARER_TOKEN: 'secret' } });
  const { client } = await gateway.connect({ headers: { authorization: 'Bearer secret' } });
  const { env } = JSON.parse(await callText(client, 'b_whoami', { env: Object.keys(own) }));
  expect(new Set(Object.values(env))).toEqual(new Set([null]));
});

it('starts servers in the folder of the configuration or a cwd relative to it, not in the current folder', async () => {
  const config = toml([
    { namespace: 'here', command: server('basic') },
    { namespace: 'below', command: server('basic'), cwd: 'some/place' },
  ]);
  const folder = tempFolder({ 'project/tools.toml': config, 'project/some/place/file': '' });
  const { client } = await startStdio({ cwd: tempFolder(), args: ['--config', `${folder}/project/tools.toml`] });
  expect(JSON.parse(await callText(client, 'here_whoami')).cwd).toBe(`${folder}/project`);
  expect(JSON.parse(await callText(client, 'below_whoami')).cwd).toBe(`${folder}/project/some/place`);
});
