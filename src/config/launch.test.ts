import { describe, expect, it } from 'vitest';
import { createContext } from './context.ts';
import { issueText } from './issues.ts';
import { type Launch, launchHash, resolveLaunch } from './launch.ts';
import { serverSchema } from './servers.ts';

const env = { TOKEN: 's3cret; rm -rf /', HOST: 'h.example', BROKEN: 'a\nb', DIR: 'sub', EMPTY: '' };

function launchOf(server: object, isShellLine = true) {
  const context = createContext({ env, cwd: '/', folder: '/etc/app' }, ['servers', 0]);
  const launch = resolveLaunch(serverSchema.parse(server), isShellLine, context);
  return { launch, issues: context.issues.map(issueText) };
}

describe('a program', () => {
  it('is a shell line if it has no args, and the shell expands its variables', () => {
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

  it('is an executable if it has args, and its variables become text, never code', () => {
    expect(launchOf({ command: '${DIR}/my server', args: ['--token=${TOKEN}', '$(x)'] }).launch).toMatchObject({
      file: 'sub/my server',
      args: ['--token=s3cret; rm -rf /', '$(x)'],
    });
  });

  it('is always an executable in the form of MCP clients', () => {
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
        'servers[0].headers.A: contains a character that HTTP headers cannot have, such as a line break.',
        'servers[0].headers.C: contains a character that HTTP headers cannot have, such as a line break.',
      ],
    ],
    [
      { command: '${EMPTY}', args: [] },
      ['servers[0].command: is empty once its variables are expanded. Name the program to start.'],
    ],
    [
      { command: 'a "b' },
      [
        'servers[0].command: The quote " at character 3 of the command is never closed. Close it, or write \\" for the character itself.',
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

  it('differs if anything else does', () => {
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
