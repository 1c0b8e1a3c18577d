import { describe, expect, it } from 'vitest';
import { createContext } from './context.ts';
import { issueText } from './issues.ts';
import { type Launch, resolveLaunch } from './launch.ts';
import { fillLaunch, secretsIn, secretsInArguments } from './launch-secrets.ts';
import { configFromValue } from './load.ts';
import { serverSchema } from './servers.ts';

const env = { HOST: 'h.example', TRICKY: '${secret:A}' };

function launchOf(server: object) {
  const context = createContext({ env, cwd: '/', folder: '/etc/app' }, ['servers', 0]);
  const launch = resolveLaunch(serverSchema.parse(server), true, context);
  return { launch, issues: context.issues.map(issueText) };
}

describe('secrets of a launch', () => {
  const values: Record<string, string> = {
    A: 'a; rm -rf / ${secret:B}',
    B: 'b',
    URL: 'https://x.example/mcp',
    LF: 'a\nb',
  };
  const fill = (launch: Launch | null) => fillLaunch(launch!, (name) => values[name]);

  it('are filled in when a server starts, and are never kept', () => {
    const { launch, issues } = launchOf({
      command: 'server',
      args: ['${secret:A}', '${HOST}'],
      env: { KEY: 'x ${secret:B}' },
    });
    expect(issues).toEqual([]);
    expect(secretsIn(launch!)).toEqual(['A', 'B']);
    expect(secretsInArguments(launch!)).toEqual(['A']);
    expect(fill(launch)).toMatchObject({ args: [values.A, 'h.example'], env: { KEY: 'x b' } });
    expect(JSON.stringify(launch)).not.toContain('rm -rf');
  });

  it('reach a shell line as variables, never as code', () => {
    const { launch } = launchOf({ command: 'X=1 server "${secret:A}" | tee ${HOME}' });
    expect(launch).toMatchObject({ args: ['-c', 'X=1 server "${TOOLGATE_SECRET_A}" | tee ${HOME}'] });
    expect(secretsIn(launch!)).toEqual(['A']);
    expect(secretsInArguments(launch!)).toEqual(['A']);
    expect(fill(launch)).toMatchObject({ env: { TOOLGATE_SECRET_A: values.A } });
  });

  it('are not arguments if a shell line puts them into the environment', () => {
    const launch = (command: string) => launchOf({ command }).launch!;
    expect(secretsInArguments(launch('A="${secret:A}" B=${secret:B} server'))).toEqual([]);
    expect(secretsInArguments(launch('A=${secret:A} server --b=${secret:B}'))).toEqual(['B']);
  });

  it('may be a URL, a part of one, or a part of a header', () => {
    const entire = launchOf({ url: '${secret:URL}', headers: { Authorization: 'Bearer ${secret:B}' } });
    expect(entire.issues).toEqual([]);
    expect(fill(entire.launch)).toMatchObject({ url: values.URL, headers: { Authorization: 'Bearer b' } });
    expect(launchOf({ url: 'ftp://${secret:B}' }).issues).toHaveLength(1);
    expect(() => fill(launchOf({ url: '${secret:B}' }).launch)).toThrow('neither http:// nor https://');
    expect(() => fill(launchOf({ url: 'http://h', headers: { A: '${secret:LF}' } }).launch)).toThrow('a line break');
  });

  it('are not allowed in `cwd`, and not found in values of the environment', () => {
    expect(launchOf({ command: 'x', cwd: '${secret:A}' }).issues[0]).toContain('nowhere else');
    const { launch } = launchOf({ command: 'x', args: ['${TRICKY}'] });
    expect(secretsIn(launch!)).toEqual([]);
  });
});

describe('the secret values of a configuration', () => {
  const secretEnv = { TOKEN_X: 'token-value', PLAIN: 'plain-value', HOME: '/home/me', DEPLOY_KEY: 'deploy-value' };

  function secrets(server: Record<string, unknown>): readonly string[] {
    return configFromValue({ servers: [server] }, { cwd: '/', env: secretEnv }).secrets();
  }

  it('include variables with secret names', () => {
    expect(secrets({ command: 'x' })).toEqual(['token-value', 'deploy-value']);
  });

  it('include what a server gets from the environment, and values with secret names', () => {
    const given = secrets({
      command: 'x',
      env: { A: 'with ${PLAIN}', B: '${HOME}/data', C: '${MISSING:-default-value}', API_KEY: 'written', D: 'open' },
    });
    expect(given.slice(2)).toEqual(['with plain-value', 'plain-value', 'written']);
  });

  it('include headers, and the credentials in a URL', () => {
    const given = secrets({
      url: 'https://u:pass-word@h/?api_key=${PLAIN}&page=1',
      headers: { Authorization: 'Bearer ${TOKEN_X}', Accept: 'text/plain' },
    });
    expect(given).toEqual(['token-value', 'deploy-value', 'Bearer token-value', 'pass-word', 'plain-value']);
  });

  it('are not printed with the configuration', () => {
    const config = configFromValue({}, { cwd: '/', env: secretEnv });
    expect(JSON.stringify(config)).not.toContain('token-value');
  });
});
