import { describe, expect, it } from 'vitest';
import type { Launch } from './config.ts';
import { issueText } from './issues.ts';
import { fillLaunch, launchHash, resolveLaunch, secretsIn, secretsInArguments } from './launch.ts';
import { serverSchema } from './server-schema.ts';

const env = { TOKEN: 's3cret; rm -rf /', HOST: 'h.example', BROKEN: 'a\nb', DIR: 'sub', EMPTY: '' };

function launchOf(server: object, shellLine = true) {
  const entry = { path: ['servers', 0], name: null, server: serverSchema.parse(server), shellLine };
  const { launch, issues } = resolveLaunch(entry, '/etc/app', env);
  return { launch, issues: issues.map(issueText) };
}

describe('a program', () => {
  it('is a shell line where it has no args, and its variables are left to the shell', () => {
    expect(launchOf({ command: 'server "a b"' }).launch).toEqual({
      kind: 'stdio',
      file: 'server',
      args: ['a b'],
      env: {},
      cwd: '/etc/app',
    });
    expect(launchOf({ command: 'server ${TOKEN}' }).launch).toMatchObject({
      file: '/bin/sh',
      args: ['-c', 'exec server ${TOKEN}'],
    });
  });

  it('is an executable where it has args, and its variables become text, never code', () => {
    expect(launchOf({ command: '${DIR}/my server', args: ['--token=${TOKEN}', '$(x)'] }).launch).toMatchObject({
      file: 'sub/my server',
      args: ['--token=s3cret; rm -rf /', '$(x)'],
    });
  });

  it('is always an executable where clients write it', () => {
    expect(launchOf({ command: 'my server' }, false).launch).toMatchObject({ file: 'my server', args: [] });
  });

  it('has only the variables that are declared, expanded', () => {
    expect(launchOf({ command: 'x', env: { A: '${TOKEN}', B: '$TOKEN', C: '${NONE:-c}' } }).launch).toMatchObject({
      env: { A: env.TOKEN, B: '$TOKEN', C: 'c' },
    });
  });

  it.each([
    ['x', '/etc/app/x'],
    ['../${DIR}', '/etc/sub'],
    ['/var', '/var'],
  ])('runs in a folder relative to that of the file: %s', (cwd, expected) => {
    expect(launchOf({ command: 'x', cwd }).launch).toMatchObject({ cwd: expected });
  });
});

describe('an address', () => {
  it('is expanded with its headers', () => {
    expect(launchOf({ url: 'https://${HOST}/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } }).launch).toEqual({
      kind: 'http',
      url: 'https://h.example/mcp',
      headers: { Authorization: `Bearer ${env.TOKEN}` },
    });
  });
});

const unset = 'the environment variable NONE is not set. Set it, or give a default: ${NONE:-default}.';

describe('what cannot be resolved', () => {
  it.each<[server: object, issues: string[]]>([
    [
      { command: '${NONE}', args: ['a', '${NONE}'], env: { A: '${NONE}' }, cwd: '${NONE}' },
      [
        `servers[0].env.A: ${unset}`,
        `servers[0].cwd: ${unset}`,
        `servers[0].command: ${unset}`,
        `servers[0].args[1]: ${unset}`,
      ],
    ],
    [{ url: '${NONE}', headers: { A: '${NONE}' } }, [`servers[0].url: ${unset}`, `servers[0].headers.A: ${unset}`]],
    [{ url: '${HOST}' }, ['servers[0].url: is not an address that begins with http:// or https://.']],
    [{ url: 'ftp://x' }, ['servers[0].url: is not an address that begins with http:// or https://.']],
    [
      { url: 'http://x', headers: { A: '${BROKEN}', B: 'ü', C: '✓' } },
      [
        'servers[0].headers.A: holds what no HTTP header can carry, such as a line break.',
        'servers[0].headers.C: holds what no HTTP header can carry, such as a line break.',
      ],
    ],
    [
      { command: '${EMPTY}', args: [] },
      ['servers[0].command: is empty once its variables are expanded. Name the program to start.'],
    ],
    [
      { command: 'a "b' },
      [
        'servers[0].command: The quote " at character 3 of the command is never closed. Close it, or write \\" if it is meant as such.',
      ],
    ],
    [{ command: '  ' }, ['servers[0].command: The command names no program. Name the one to start.']],
  ])('is listed without any value: %j', (server, issues) => {
    const result = launchOf(server);
    expect(result.issues).toEqual(issues);
    expect(JSON.stringify(result.issues)).not.toContain('s3cret');
  });
});

describe('the hash of a launch', () => {
  const launch: Launch = { kind: 'stdio', file: 'x', args: ['a', 'b'], env: { A: '1', B: '2' }, cwd: '/' };

  it('is 32 hexadecimal digits that stay the same from release to release', () => {
    expect(launchHash(launch)).toBe('b359ecaf51c0dac2da62d452a8c51a02');
  });

  it('does not depend on the order of keys', () => {
    expect(launchHash({ cwd: '/', env: { B: '2', A: '1' }, args: ['a', 'b'], file: 'x', kind: 'stdio' })).toBe(
      launchHash(launch),
    );
  });

  it('differs where anything else does', () => {
    const others: Launch[] = [
      { ...launch, args: ['b', 'a'] },
      { ...launch, args: ['a b'] },
      { ...launch, env: { A: '1' } },
      { ...launch, cwd: '/x' },
      { kind: 'http', url: 'http://x', headers: {} },
    ];
    expect(new Set([launch, ...others].map(launchHash)).size).toBe(6);
  });
});

describe('secrets', () => {
  const values: Record<string, string> = {
    A: 'a; rm -rf / ${secret:B}',
    B: 'b',
    URL: 'https://x.example/mcp',
    LF: 'a\nb',
  };
  const fill = (launch: Launch | null) => fillLaunch(launch!, (name) => values[name]);

  it('are put in when a server is started, and are in nothing that is kept', () => {
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

  it('are no arguments where a shell line puts them into the environment', () => {
    const launch = (command: string) => launchOf({ command }).launch!;
    expect(secretsInArguments(launch('A="${secret:A}" B=${secret:B} server'))).toEqual([]);
    expect(secretsInArguments(launch('A=${secret:A} server --b=${secret:B}'))).toEqual(['B']);
  });

  it('may be an address, or a part of one, and of headers', () => {
    const whole = launchOf({ url: '${secret:URL}', headers: { Authorization: 'Bearer ${secret:B}' } });
    expect(whole.issues).toEqual([]);
    expect(fill(whole.launch)).toMatchObject({ url: values.URL, headers: { Authorization: 'Bearer b' } });
    expect(launchOf({ url: 'ftp://${secret:B}' }).issues).toHaveLength(1);
    expect(() => fill(launchOf({ url: '${secret:B}' }).launch)).toThrow('neither http:// nor https://');
    expect(() => fill(launchOf({ url: 'http://h', headers: { A: '${secret:LF}' } }).launch)).toThrow('a line break');
  });

  it('are no part of a folder, and not what the environment says', () => {
    expect(launchOf({ command: 'x', cwd: '${secret:A}' }).issues[0]).toContain('nowhere else');
    const tricky = { path: ['servers', 0], name: null, server: serverSchema.parse({ command: 'x', args: ['${V}'] }) };
    const { launch } = resolveLaunch({ ...tricky, shellLine: true }, '/', { V: '${secret:A}' });
    expect(secretsIn(launch!)).toEqual([]);
  });
});
