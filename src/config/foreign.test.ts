import { describe, expect, it } from 'vitest';
import { isClientFile, isForeign, readForeign } from './foreign.ts';
import { issueText } from './issues.ts';

function read(servers: Record<string, unknown>) {
  const { entries, notices } = readForeign({ mcpServers: servers }, '.mcp.json');
  return {
    servers: entries.flatMap((entry) => ('server' in entry ? entry.server : [])),
    wrong: entries.flatMap((entry) => ('issues' in entry ? entry.issues.map(issueText) : [])),
    notices,
  };
}

it.each([
  ['.mcp.json', true],
  ['/a/.vscode/mcp.json', true],
  ['/a/cursor.mcp.json', true],
  ['toolgate.json', false],
  ['mcp.json.toml', false],
  ['notmcp.json', false],
])('tells whether %s belongs to another program', (file, expected) => {
  expect(isForeign(file)).toBe(expected);
});

it('reads what Claude Code writes', () => {
  const { servers, notices } = read({
    gw: { type: 'http', url: 'http://localhost:1/mcp', headers: {} },
    gws: { type: 'stdio', command: 'gw', args: ['--stdio'], env: {} },
  });
  expect(servers).toMatchObject([
    { namespace: 'gw', transport: 'http', url: 'http://localhost:1/mcp', headers: {} },
    { namespace: 'gws', transport: 'stdio', command: 'gw', args: ['--stdio'], env: {} },
  ]);
  expect(notices).toEqual([]);
});

it('reads the file of VS Code', () => {
  const { entries, notices } = readForeign({ inputs: [], servers: { git: { command: 'x' } } }, 'mcp.json');
  expect(entries).toMatchObject([
    { path: ['servers', 'git'], name: 'git', isShellLine: false, server: { command: 'x' } },
  ]);
  expect(notices).toEqual(['mcp.json: ignored "inputs".']);
});

it('keeps the settings it knows', () => {
  const { settings, notices } = readForeign(
    { mcpServers: {}, controls: ['activate'], start_wait: 'soon', http: { prot: 1 } },
    '.mcp.json',
  );
  expect(settings).toMatchObject({ controls: ['activate'], startWait: 5000, http: { port: null } });
  expect(notices).toEqual([
    '.mcp.json: start_wait: ignored: expected a duration such as "250ms", "30s", "10m" or "24h", or a number of milliseconds, found "soon".',
    '.mcp.json: http.prot: ignored: unknown key. Did you mean "port"?',
  ]);
});

it('reports a file without servers', () => {
  expect(readForeign({}, '.mcp.json').notices).toEqual(['.mcp.json: has no "mcpServers" and no "servers".']);
  expect(readForeign({ mcpServers: [] }, '.mcp.json').notices).toEqual([
    '.mcp.json: mcpServers: left out: it is not a map of servers.',
  ]);
});

describe('a server of another program', () => {
  it.each<[what: string, entry: object, server: object, notices: string[]]>([
    ['without a type', { url: 'http://x' }, { url: 'http://x' }, []],
    ['streamable-http', { type: 'streamable-http', url: 'http://x' }, { transport: 'http' }, []],
    ['sse', { type: 'sse', url: 'http://x' }, { transport: 'sse' }, []],
    ['switched off', { command: 'x', disabled: true }, { enabled: false }, []],
    ['switched on', { command: 'x', disabled: false }, { enabled: true }, []],
    [
      'numbers and booleans in env',
      { command: 'x', env: { A: 1, B: true, C: 'c' } },
      { env: { A: '1', B: 'true', C: 'c' } },
      [],
    ],
    ['null and empty maps', { command: 'x', args: null, env: null, url: null, headers: {} }, { command: 'x' }, []],
    [
      'unknown keys',
      { command: 'x', disabledTools: [], alwaysAllow: [] },
      { command: 'x' },
      ['ignored "disabledTools".', 'ignored "alwaysAllow".'],
    ],
    [
      'a list of tools of another program',
      { command: 'x', tools: ['*'] },
      { command: 'x' },
      ['ignored "tools", which is not a map of limits.'],
    ],
    [
      'a map of tools of another program',
      { command: 'x', tools: { a: { approve: 'never' } } },
      { command: 'x' },
      ['ignored "tools", which is not a map of limits.'],
    ],
    ['keys of the other kind', { url: 'http://x', env: { A: '1' } }, { url: 'http://x' }, ['ignored "env".']],
    ['an address in addition to a command', { command: 'x', url: 'http://x' }, { command: 'x' }, ['ignored "url".']],
    [
      'a command in addition to an address',
      { type: 'http', command: 'x', url: 'http://x' },
      { url: 'http://x' },
      ['ignored "command".'],
    ],
    ['a duration in words', { command: 'x', timeout: '60s' }, { timeout: 60_000 }, []],
    ['a long timeout', { command: 'x', timeout: 60_000 }, { timeout: 60_000 }, []],
    [
      'a short timeout',
      { command: 'x', timeout: 60 },
      { command: 'x' },
      ['ignored "timeout", because some programs mean seconds by 60 and some milliseconds. Write "60s" or "60ms".'],
    ],
  ])('is kept: %s', (_, entry, server, messages) => {
    const { servers, notices } = read({ git: entry });
    expect(servers).toMatchObject([server]);
    expect(notices).toEqual(messages.map((one) => `.mcp.json: mcpServers.git: ${one}`));
  });

  it('gets a namespace that is valid in tool names', () => {
    const { servers, notices } = read({ 'my server/1': { command: 'x' }, ours: { command: 'x', namespace: '' } });
    expect(servers.map((server) => server.namespace)).toEqual(['my_server_1', '']);
    expect(notices).toEqual(['.mcp.json: mcpServers["my server/1"]: its namespace is "my_server_1".']);
  });

  it.each<[what: string, entry: unknown, ...reasons: string[]]>([
    ['no map', 'x', ': it is not a map.'],
    [
      'neither command nor url',
      {},
      ': needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files).',
    ],
    ['an unknown type', { type: 'dxt', path: 'x' }, ': its "type" is not "stdio", "http", "streamable-http" or "sse".'],
    [
      'a type that does not fit',
      { type: 'http', command: 'x' },
      '.transport: "http" needs "url". Use "stdio" or leave it out.',
    ],
    [
      'wrong types',
      { command: 1, args: 'x' },
      '.command: expected a string (arguments go in "args"), found 1.',
      '.args: expected a list of strings, found a string.',
    ],
    ['a wrong variable', { command: 'x', env: { A: [] } }, '.env.A: expected a string, found a list.'],
    [
      'a forbidden key',
      JSON.parse('{"command":"x","env":{"__proto__":"y"}}'),
      '.env.__proto__: this key is not allowed. Rename it.',
    ],
  ])('is set apart with what is wrong: %s', (_, entry, ...reasons) => {
    const { servers, wrong, notices } = read({ git: entry, other: { command: 'x' } });
    expect(servers).toMatchObject([{ namespace: 'other' }]);
    expect(wrong).toEqual(reasons.map((reason) => `mcpServers.git${reason}`));
    expect(notices).toEqual([]);
  });

  it('is set apart if its name reaches into prototypes', () => {
    const { servers, wrong } = read(JSON.parse('{"__proto__":{"command":"x"}}'));
    expect(servers).toEqual([]);
    expect(wrong).toEqual(['mcpServers.__proto__: this key is not allowed. Rename it.']);
  });
});

describe('files of clients under other names', () => {
  it.each([
    ['claude_desktop_config.json', { mcpServers: {}, globalShortcut: 'x' }, true],
    ['settings.json', { mcpServers: {} }, true],
    ['toolgate.json', { mcpServers: {} }, false],
    ['ours.json', { mcpServers: {}, controls: [] }, false],
    ['other.json', { servers: {} }, false],
    ['x.yaml', { mcpServers: {} }, false],
  ])('%s', (file, root, expected) => {
    expect(isClientFile(file, root)).toBe(expected);
  });

  it('may have a key that is nearly one of ours, which is pointed out', () => {
    const { notices } = readForeign({ mcpServers: {}, exposed_tool: {}, globalShortcut: 'x' }, '.mcp.json');
    expect(notices).toEqual([
      '.mcp.json: ignored "exposed_tool". Did you mean "exposed_tools"?',
      '.mcp.json: ignored "globalShortcut".',
    ]);
  });
});

describe('variables of other clients', () => {
  const entry = (server: object, file = '/p/.vscode/mcp.json') => {
    const [only] = readForeign({ servers: { a: server } }, 'mcp.json', file).entries;
    return only!;
  };

  it.each([
    ['${env:HOME}/x', '${HOME}/x'],
    ['${userHome}/x', '${HOME}/x'],
    ['${workspaceFolder}/x', '/p/x'],
    ['${workspaceFolderBasename}', 'p'],
    ['${NAME:-x} ${secret:KEY}', '${NAME:-x} ${secret:KEY}'],
  ])('%s is read as %s', (written, read) => {
    const server = { command: written, args: [written], env: { A: written, B: 1 }, cwd: written };
    expect(entry(server)).toMatchObject({
      server: { command: read, args: [read], env: { A: read, B: '1' }, cwd: read },
    });
  });

  it('are about the folder of the file if that is not the folder of an editor', () => {
    expect(entry({ command: '${workspaceFolder}' }, '/p/q/.mcp.json')).toMatchObject({ server: { command: '/p/q' } });
  });

  it.each(['input', 'command', 'config'])('${%s:x} leaves out the entry, and the reason is given', (name) => {
    const left = entry({ command: 'x', env: { TOKEN: `\${${name}:x}` } });
    expect('issues' in left ? left.issues.map(issueText) : []).toEqual([
      expect.stringMatching(`^servers.a.env.TOKEN: "\\$\\{${name}:…\\}" .*which Toolgate does not know. Write`),
    ]);
    expect(entry({ command: 'x', disabled: true, env: { TOKEN: `\${${name}:x}` } })).toHaveProperty('server');
  });
});
