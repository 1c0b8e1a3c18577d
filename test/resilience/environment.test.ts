/** Which part of the gateway's environment the process of a server gets. */
import { expect, it } from 'vitest';
import { environmentSecrets } from '../../src/secrets/secret-values.ts';
import { runCli } from '../support/cli.ts';
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

it('passes on few variables, none of them of Toolgate, plus the declared ones', async () => {
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
    GREETING: null,
    GREETING_TOO: 'x',
    PATH: process.env.PATH,
  });
});

const ours = {
  AWS_SECRET_ACCESS_KEY: 'of the gateway',
  AWS_REGION: 'eu',
  DATABASE_URL: 'postgres://me:hunter2hunter2@db/x',
  GITHUB_TOKEN: 'of another server',
  SSH_AUTH_SOCK: '/run/agent',
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abcdefgh12345678',
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-key=abcdefgh12345678',
  npm_config__authToken: 'of the registry',
};
const ordinary = {
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
  HTTPS_PROXY: 'http://proxy:3128',
  no_proxy: 'localhost',
  NODE_EXTRA_CA_CERTS: '/etc/ca.pem',
  SSL_CERT_FILE: '/etc/ca.pem',
  npm_config_registry: 'https://registry.example.com',
  UV_INDEX_URL: 'https://pypi.example.com',
  XDG_CACHE_HOME: '/tmp/cache',
};

async function environmentOf(entry: object, settings: object = {}, env: Record<string, string> = ours) {
  const config = toml([{ namespace: 'b', command: server('basic'), ...entry }], { ...settings });
  const { client } = await startStdio({ config, env: { ...env, ...own } });
  const asked = { env: [...Object.keys({ ...env, ...own }), 'HOME', 'PATH'] };
  const { env: got } = JSON.parse(await callText(client, 'b_whoami', asked));
  return Object.entries(got).flatMap(([name, value]) => (value === null ? [] : name));
}

it('passes on no credential, and what programs need to run', async () => {
  expect(await environmentOf({})).toEqual(['HOME', 'PATH']);
  expect(await environmentOf({}, {}, ordinary)).toEqual([...Object.keys(ordinary), 'HOME', 'PATH']);
});

it('passes on what inherit_env names, in the settings and in the entry', async () => {
  expect(await environmentOf({ inherit_env: ['AWS_*'] }, { inherit_env: ['GITHUB_TOKEN'] })).toEqual([
    'AWS_SECRET_ACCESS_KEY',
    'AWS_REGION',
    'GITHUB_TOKEN',
    'HOME',
    'PATH',
  ]);
});

it('passes on everything but what is meant for Toolgate with inherit_env = ["*"]', async () => {
  const got = await environmentOf({ inherit_env: ['*'] });
  expect(got).toEqual([...Object.keys(ours).filter((name) => !name.startsWith('OTEL')), 'HOME', 'PATH']);
});

it('passes on the variables that a shell line names', async () => {
  expect(await environmentOf({ command: `${server('basic')} --name "$GITHUB_TOKEN"` })).toEqual([
    'GITHUB_TOKEN',
    'HOME',
    'PATH',
  ]);
});

it('doctor says which variable a failing server asks for that is set but not passed on', async () => {
  const command = `sh -c 'echo "Please set GITHUB_TOKEN or OTHER_TOKEN" >&2; exit 1'`;
  const cwd = tempFolder({ 'tools.toml': toml([{ namespace: 'b', command }]) });
  const { stdout } = await runCli(['doctor'], { cwd, env: ours });
  expect(stdout).toContain('inherit_env = ["GITHUB_TOKEN"]');
  expect(stdout).not.toContain('of another server');
});

it('treats the headers of telemetry as secrets', async () => {
  const { OTEL_EXPORTER_OTLP_HEADERS } = ours;
  expect(environmentSecrets({ OTEL_EXPORTER_OTLP_HEADERS })).toEqual(
    expect.arrayContaining([OTEL_EXPORTER_OTLP_HEADERS, 'Bearer%20abcdefgh12345678', 'abcdefgh12345678']),
  );
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
