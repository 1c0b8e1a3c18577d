/** `toolgate init` imports the servers of other clients, points the clients at Toolgate, and undoes both exactly. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usualEntry } from '../../src/config/client-entry.ts';
import { clientFiles } from '../../src/config/client-files.ts';
import { loadConfig } from '../../src/config/load.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { runCli } from '../support/cli.ts';
import { toolsOf } from '../support/client-entries.ts';
import { isMissing } from '../support/needs.ts';
import { serverEntry } from '../support/server.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';
import { onTerminal } from '../support/terminal.ts';

const { command: NODE, args: ARGS } = serverEntry('basic', '--tools', 'x') as { command: string; args: string[] };
const json = (value: unknown, indent: string | number = 2) => `${JSON.stringify(value, null, indent)}\n`;
const program = (name = '0') => ({ command: NODE, args: [...ARGS, '--name', name] });

/** The files of one user, as the clients write them: with their own settings, comments, indentation and line ends. */
function home(cwd: string): Files {
  return {
    '.claude.json': json({
      numStartups: 41,
      mcpServers: { user: { type: 'stdio', ...program('1'), env: {} } },
      projects: { [cwd]: { allowedTools: [], mcpServers: { local: { type: 'stdio', ...program('2'), env: {} } } } },
      userID: 'x',
    }),
    '.config/Claude/claude_desktop_config.json': json({
      mcpServers: { desktop: program('3') },
      globalShortcut: 'Alt+Space',
    }),
    '.cursor/mcp.json': json({ mcpServers: { cursor: { ...program('4'), env: { LOOK: '${env:COLOUR}' } } } }, '\t'),
    '.config/Code/User/mcp.json':
      '{\n\t// mine\n\t"servers": {\n\t\t"code": { "type": "http", "url": "http://127.0.0.1:9/${workspaceFolderBasename}" }, // why\n\t\t"asks": { "command": "x", "env": { "K": "${input:key}" } },\n\t},\n\t"inputs": [{ "id": "key", "type": "promptString", "password": true }],\n}\n',
    '.config/Code/User/settings.json':
      '{\n  // editor\n  "editor.fontSize": 12,\n  "mcp": { "servers": { "old": { "command": "old-server" } } }\n}\n',
    '.copilot/mcp-config.json': json({ mcpServers: { copilot: { type: 'local', ...program('5'), tools: ['*'] } } }),
    '.codeium/windsurf/mcp_config.json': json({
      mcpServers: { surf: { serverUrl: 'http://127.0.0.1:9/surf', disabled: true } },
    }).replaceAll('\n', '\r\n'),
    '.codex/config.toml': `# mine\nmodel = "o4" # best\n\n[mcp_servers.codex]\ncommand = ${JSON.stringify(NODE)}\nargs = ${JSON.stringify([...ARGS, '--name', '6'])}\nstartup_timeout_sec = 20\n\n[mcp_servers.codex.env]\nA = "b"\n\n[mcp_servers.docs]\nurl = "http://127.0.0.1:9/docs"\nbearer_token_env_var = "DOCS_TOKEN"\n\n[tui]\ntheme = "dark"\n`,
    '.gemini/settings.json': json({
      security: { auth: { selectedType: 'x' } },
      mcpServers: { gemini: { httpUrl: 'http://127.0.0.1:9/$AREA', trust: true, timeout: 600000 } },
    }),
    '.config/opencode/opencode.json': json({
      $schema: 'https://opencode.ai/config.json',
      mcp: {
        open: {
          type: 'local',
          command: [NODE, ...ARGS, '--name', '7'],
          environment: { K: '{env:COLOUR}' },
          enabled: true,
        },
      },
    }),
    '.config/zed/settings.json':
      '// Zed\n{\n  "theme": "One",\n  "context_servers": {\n    "zed": { "source": "custom", "command": "zed-server", "args": [] },\n    "ext": { "source": "extension", "settings": {} },\n  },\n}\n',
    '.cline/data/settings/cline_mcp_settings.json': json({
      mcpServers: { cline: { ...program('8'), autoApprove: [], disabled: false, timeout: 60 } },
    }),
    '.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json': json({
      mcpServers: { roo: { type: 'streamable-http', url: 'http://127.0.0.1:9/roo', alwaysAllow: [] } },
    }),
    '.kiro/settings/mcp.json': json({ mcpServers: { kiro: { ...program('9'), disabledTools: ['y'] } } }),
    '.aws/amazonq/mcp.json': json({ mcpServers: { q: program('10') } }),
    '.lmstudio/mcp.json': json({ mcpServers: { studio: { url: 'http://127.0.0.1:9/studio' } } }),
  };
}

const PROJECT: Files = {
  '.mcp.json': json({ mcpServers: { team: program('11') } }),
  '.cursor/mcp.json': json({ mcpServers: { cursor2: { command: 'c', cwd: '${workspaceFolder}/sub' } } }),
  '.vscode/mcp.json': json({ servers: { same: program('11') } }),
  '.vscode/settings.json': json({ mcp: { servers: { vs: { command: 'v' } } } }),
  '.codex/config.toml': '[mcp_servers]\nproj = { command = "p", args = [] } # one\n',
  '.gemini/settings.json': json({ mcpServers: { gproj: { command: 'g' } } }),
  'opencode.jsonc': '{\n  // mine\n  "mcp": { "oproj": { "type": "remote", "url": "http://127.0.0.1:9/o" } },\n}\n',
  '.zed/settings.json': json({ context_servers: { zproj: { command: { path: 'z', args: ['1'], env: {} } } } }),
  '.roo/mcp.json': json({ mcpServers: { rproj: { command: 'r' } } }),
  '.kiro/settings/mcp.json': json({ mcpServers: { kproj: { command: 'k' } } }),
};

function machine(own?: Files, project: Files = PROJECT) {
  const cwd = tempFolder(project);
  const files = own ?? home(cwd);
  const folder = tempFolder(files);
  const env = { HOME: folder, TOOLGATE_TRUST: '', COLOUR: 'red', AREA: 'here', DOCS_TOKEN: 't' };
  const run = (...args: string[]) => runCli(['init', ...args], { cwd, env });
  const config = () => readFileSync(join(cwd, 'tools.toml'), 'utf8');
  /** Every file that is there, by path, except Toolgate's own. */
  const state = () =>
    Object.fromEntries(
      [cwd, folder].flatMap((root) =>
        readdirSync(root, { recursive: true, encoding: 'utf8' })
          .map((path) => join(root, path))
          .filter((path) => statSync(path).isFile() && !/\.config\/toolgate|\/\.toolgate\//.test(path))
          .map((path) => [path, readFileSync(path).toString('hex')]),
      ),
    );
  return { cwd, home: folder, env, run, config, state };
}

describe('every client', () => {
  it('is imported, pointed at Toolgate, used and restored byte for byte', async () => {
    const { cwd, home: folder, env, run, config, state } = machine();
    const before = state();
    const { code, stdout, stderr } = await run('--yes', '--point');
    expect(code, stderr).toBe(0);
    const { value } = await parseConfig(config(), 'tools.toml');
    const servers = Object.fromEntries(
      (value as { servers: { namespace: string }[] }).servers.map(({ namespace, ...rest }) => [namespace, rest]),
    );
    expect(Object.keys(servers).sort()).toEqual(
      'cline code codex copilot cursor cursor2 desktop docs gemini gproj kiro kproj local old open oproj proj q roo rproj studio surf team user vs zed zproj'.split(
        ' ',
      ),
    );
    expect(servers).toMatchObject({
      cursor: { ...program('4'), env: { LOOK: '${COLOUR}' } },
      code: { url: `http://127.0.0.1:9/${cwd.split('/').at(-1)}` },
      cursor2: { command: 'c', cwd: `${cwd}/sub` },
      codex: { ...program('6'), env: { A: 'b' }, start_timeout: '20000ms' },
      docs: { url: 'http://127.0.0.1:9/docs', headers: { Authorization: 'Bearer ${DOCS_TOKEN}' } },
      gemini: { url: 'http://127.0.0.1:9/${AREA}', timeout: 600000 },
      open: { ...program('7'), env: { K: '${COLOUR}' } },
      surf: { url: 'http://127.0.0.1:9/surf', enabled: false },
      zproj: { command: 'z', args: ['1'] },
    });
    expect(config()).toContain('# from Claude Code ("team" in ');
    expect(config()).toContain(`VS Code ("same" in ${join(cwd, '.vscode/mcp.json')})`);
    expect(stdout).toMatch(/asks \(VS Code.*asks the user of that client/);
    expect(stdout).toMatch(/ext \(Zed.*needs "command"/);

    const pointed = clientFiles(cwd, { ...env, XDG_CONFIG_HOME: '' }, 'linux').filter(({ file }) => existsSync(file));
    expect(pointed).toHaveLength(Object.keys(home(cwd)).length + Object.keys(PROJECT).length + 1);
    const entries = await Promise.all(
      pointed.map(async ({ file, at }) => {
        const parsed = (await parseConfig(readFileSync(file, 'utf8'), file)).value;
        return (
          at.reduce((inner, key) => (inner as Record<string, never>)[key]!, parsed) as Record<
            string,
            Record<string, unknown>
          >
        ).toolgate!;
      }),
    );
    const [first] = entries.map((entry) => usualEntry(entry)) as { command: string; args: string[] }[];
    for (const entry of entries)
      expect(usualEntry(entry)).toMatchObject({ command: first!.command, args: first!.args });
    // What clients know besides servers stays, comments included.
    expect(readFileSync(join(folder, '.config/Code/User/mcp.json'), 'utf8')).toMatch(
      /\/\/ mine[\s\S]*"asks"[\s\S]*"inputs"/,
    );
    expect(readFileSync(join(folder, '.codex/config.toml'), 'utf8')).toMatch(
      /^# mine\nmodel = "o4" # best\n[\s\S]*\[tui\]/,
    );
    expect(readFileSync(join(folder, '.codeium/windsurf/mcp_config.json'), 'utf8')).not.toMatch(/[^\r]\n/);

    const tools = await toolsOf(
      { command: first!.command, args: first!.args },
      { ...process.env, ...env } as Record<string, string>,
      '',
    );
    // They are few, so all of them are shown.
    expect(tools).toContain('team_x');
    expect(tools).not.toContain('toolman_activate');
    const { stdout: states } = await runCli(['list', 'servers', '--json'], { cwd, env });
    const states_ = Object.fromEntries(
      (JSON.parse(states) as { key: string; state: string }[]).map(({ key, state: one }) => [key, one]),
    );
    expect(states_).toMatchObject({ team: 'up', codex: 'up', open: 'up', user: 'up', local: 'up' });
    rmSync(join(cwd, '.toolgate'), { recursive: true, force: true });

    // Another init finds only what was left out.
    expect((await run('--yes')).stdout).toContain('There is nothing to import');
    const undone = await run('--undo');
    expect(undone.code, undone.stdout).toBe(0);
    expect(state()).toEqual(before);
    expect((await run('--undo')).stdout).toContain('to undo.');
  }, 120_000);

  it('has its own place on macOS and Windows', () => {
    const at = (platform: NodeJS.Platform, env: Record<string, string>, client: string) =>
      clientFiles('/p', env, platform)
        .filter((one) => one.client === client && one.level === 'user')
        .map(({ file }) => file.replaceAll('\\', '/'));
    expect(at('darwin', { HOME: '/Users/a' }, 'Claude Desktop')).toEqual([
      '/Users/a/Library/Application Support/Claude/claude_desktop_config.json',
    ]);
    const windows = { USERPROFILE: 'C:/Users/a', APPDATA: 'C:/Users/a/AppData/Roaming' };
    expect(at('win32', windows, 'Claude Desktop')).toEqual([
      'C:/Users/a/AppData/Roaming/Claude/claude_desktop_config.json',
    ]);
    expect(at('win32', windows, 'VS Code')[0]).toBe('C:/Users/a/AppData/Roaming/Code/User/mcp.json');
    expect(at('win32', windows, 'Codex')).toEqual(['C:/Users/a/.codex/config.toml']);
    expect(at('linux', { HOME: '/home/a', CODEX_HOME: '/c' }, 'Codex')).toEqual(['/c/config.toml']);
  });
});

const one: Files = { '.cursor/mcp.json': json({ mcpServers: { a: program() } }) };

describe('init', () => {
  it.each([[['--dry-run', '--yes', '--point']], [[]]])(
    'changes nothing with %j and without a terminal',
    async (args) => {
      const { run, state } = machine(one, {});
      const before = state();
      const { code, stdout } = await run(...args);
      expect([code, stdout]).toEqual([0, expect.stringContaining('Nothing was changed.')]);
      expect(state()).toEqual(before);
    },
  );

  it('imports the same server once, and two of one name under different names', async () => {
    const { run, config } = machine(
      {
        ...one,
        '.kiro/settings/mcp.json': json({ mcpServers: { b: { ...program(), env: {} }, a: program('other') } }),
      },
      { '.mcp.json': json({ mcpServers: { a: program('third') } }) },
    );
    await run('--yes');
    expect([...config().matchAll(/namespace = "(.*)"/g)].map(([, name]) => name)).toEqual(['a', 'a-cursor', 'a-kiro']);
  });

  it.each([[[]], [['--move-secrets']]])(
    'with %j, can point the clients later, and imports nothing twice',
    async (args) => {
      const keyed = { ...program('k'), env: { API_TOKEN: 's3cret-value-4' } };
      const {
        run,
        config,
        state,
        home: folder,
      } = machine({ '.cursor/mcp.json': json({ mcpServers: { a: program(), keyed } }) }, {});
      await run('--yes', ...args);
      const imported = config();
      const before = state();
      const shown = await run('--yes');
      expect(shown.stdout).toContain('tools.toml has it already');
      expect(state()).toEqual(before);
      const { code, stdout } = await run('--yes', '--point');
      expect([code, stdout]).toEqual([0, expect.stringContaining('Toolgate is now the server of: ')]);
      expect(stdout).not.toContain('Wrote ');
      expect(config()).toBe(imported);
      const pointed = JSON.parse(readFileSync(join(folder, '.cursor/mcp.json'), 'utf8')) as { mcpServers: object };
      expect(Object.keys(pointed.mcpServers)).toEqual(['toolgate']);
      expect((await run('--undo')).code).toBe(0);
      expect(state()).toEqual(before);
    },
  );

  it('adds to a configuration that is there, and keeps its comments', async () => {
    const text = '# mine\n[servers.a] # one\ncommand = "true"\n';
    const { run, config } = machine(one, { 'tools.toml': text });
    await run('--yes');
    expect(config().startsWith(text)).toBe(true);
    expect(config()).toContain('[servers.a-cursor]');
    await run('--undo');
    expect(config()).toBe(text);
  });

  it('reads one file with --from, and trusts what it imports and nothing else', async () => {
    const { run, cwd, env } = machine(one, {
      'their.json': json({ mcpServers: { mine: program() } }),
      'toolgate.yaml': `servers:\n  cloned: { command: "true" }\n`,
    });
    await run('--from', 'their.json', '--yes');
    const { stdout } = await runCli(['list', 'servers', '--json'], { cwd, env });
    expect((JSON.parse(stdout) as { key: string; state: string }[]).map(({ key, state }) => `${key} ${state}`)).toEqual(
      ['mine up', 'cloned untrusted'],
    );
    expect((await run('--from', 'missing.json')).stderr).toContain('There is no file');
  });

  it('leaves out one bad file or entry, and imports the rest', async () => {
    const { run, config } = machine(
      {
        ...one,
        '.kiro/settings/mcp.json': '{ "mcpServers": ',
        '.lmstudio/mcp.json': json({
          mcpServers: { bad: 7, odd: { type: 'pipe' }, good: { url: 'http://127.0.0.1:9' } },
        }),
      },
      {},
    );
    const { code, stdout } = await run('--yes');
    expect(code).toBe(0);
    expect(stdout).toMatch(/Not imported:\n {2}bad .*not a map.*\n {2}odd /);
    expect(stdout).toMatch(/Could not be read:\n {2}.*\.kiro/);
    expect(config()).toContain('"good"');
  });

  it('points out secrets without showing them, and moves them on request', async () => {
    const entry = { ...program(), env: { API_TOKEN: 's3cret-value-2' } };
    const keyed = { command: 'none', args: ['--api-key', 's3cret-value-1'] };
    const { cwd, env, config, run } = machine({ '.cursor/mcp.json': json({ mcpServers: { a: entry, keyed } }) }, {});
    const shown = await run();
    expect(shown.stdout).toMatch(/Secrets in plain text.*\n {2}a: env\.API_TOKEN\n {2}keyed: args\[1\]/);
    expect(shown.stdout).not.toContain('s3cret');
    const withKey = { cwd, env: { ...env, SECRETS_KEY: 'a-key-that-is-long-enough' } };
    expect((await runCli(['init', '--yes', '--move-secrets', '--point'], withKey)).code).toBe(0);
    expect(config()).toContain('API_TOKEN = "${secret:API_TOKEN}"');
    expect(config()).not.toContain('s3cret');
    expect((await runCli(['secrets', 'check'], withKey)).code).toBe(0);
    expect((await runCli(['call', 'a_x'], withKey)).code).toBe(0);
    expect((await runCli(['init', '--undo'], withKey)).code).toBe(0);
    expect(
      (await runCli(['secrets', 'list'], withKey)).stdout + (await runCli(['secrets', 'list'], withKey)).stderr,
    ).not.toContain('API_TOKEN');
    expect(readFileSync(join(env.HOME, '.cursor/mcp.json'), 'utf8')).toBe(json({ mcpServers: { a: entry, keyed } }));
  });

  it('makes a key for the secrets that it moves, if there is none, and says where it is', async () => {
    const files = (token: string) => ({
      '.cursor/mcp.json': json({ mcpServers: { a: { ...program(), env: { API_TOKEN: token } } } }),
    });
    const { cwd, env, home: folder, config, state, run } = machine(files('s3cret-value-3'), {});
    const before = state();
    const key = join(folder, '.config/toolgate/secrets.key');
    const { code, stdout } = await run('--yes', '--move-secrets', '--point');
    expect(code).toBe(0);
    expect(stdout).toContain(`The secrets are encrypted with a new key: ${key}. Keep a copy elsewhere`);
    expect(config()).toContain('key_file = "${HOME}/.config/toolgate/secrets.key"');
    expect(statSync(key).mode & 0o777).toBe(0o600);
    expect((await runCli(['secrets', 'check'], { cwd, env })).code).toBe(0);
    expect((await runCli(['call', 'a_x'], { cwd, env })).code).toBe(0);
    const bytes = readFileSync(key);
    // The next configuration of this user gets the same key.
    const other = tempFolder({
      '.mcp.json': json({ mcpServers: { b: { ...program(), env: { TOKEN: 's3cret-4' } } } }),
    });
    const second = await runCli(['init', '--yes', '--move-secrets', '--from', '.mcp.json'], { cwd: other, env });
    expect(second.stdout).toContain(`The secrets are encrypted with your key: ${key}`);
    const undone = await run('--undo');
    expect(undone.stdout).toContain(`${key}: the key of the secrets stays`);
    expect(state()).toEqual(before);
    expect(readFileSync(key)).toEqual(bytes);
    expect((await runCli(['secrets', 'check'], { cwd: other, env })).code).toBe(0);
  });

  it('takes back only its own part of a file that was changed since, and leaves what it cannot', async () => {
    const { run, home: folder, cwd } = machine(one, {});
    await run('--yes', '--point');
    const file = join(folder, '.cursor/mcp.json');
    const pointed = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: object };
    writeFiles(folder, { '.cursor/mcp.json': json({ ...pointed, later: true }) });
    writeFiles(cwd, { 'tools.toml': '# changed\n' });
    const { code, stdout } = await run('--undo');
    expect(code).toBe(1);
    expect(stdout).toContain('changed since, so only what Toolgate wrote was taken back');
    expect(stdout).toContain('tools.toml: changed since, and left as it is');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ mcpServers: { a: program() }, later: true });
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8')).toBe('# changed\n');
  });

  it('that was killed half-way can be undone', async () => {
    const { run, state, home: folder, cwd } = machine();
    const before = state();
    await run('--yes', '--point');
    // As if it had been killed after its first file: the others are as they were.
    for (const [path, bytes] of Object.entries(before)) writeFiles('/', { [path]: Buffer.from(bytes, 'hex') });
    expect((await run('--undo')).code).toBe(0);
    expect(state()).toEqual(before);
    expect(existsSync(join(cwd, 'tools.toml'))).toBe(false);
    // And as if it had been killed before the journal was complete.
    const [journals] = readdirSync(join(folder, '.config/toolgate/init'));
    writeFiles(join(folder, '.config/toolgate/init', journals!, '1'), { '0.before': 'x' });
    expect((await run('--undo')).stdout).toContain('to undo.');
  });

  it('keeps its copies where only the user can read them', async () => {
    const { run, home: folder } = machine(one, {});
    await run('--yes', '--point');
    const root = join(folder, '.config/toolgate/init');
    for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      const { mode } = statSync(join(root, path));
      expect(mode & 0o077, path).toBe(statSync(join(root, path)).isDirectory() ? mode & 0o077 : 0);
    }
  });
});

describe.skipIf(isMissing('python'))('on a terminal', () => {
  it('asks before it writes, and before it points', async () => {
    const { cwd, env, config, home: folder } = machine(one, {});
    const { code, shown } = await onTerminal(
      ['init'],
      [
        ['Write ', 'y\r'],
        ['use Toolgate in place', 'n\r'],
      ],
      { cwd, env },
    );
    expect([code, shown]).toEqual([0, expect.stringContaining('Wrote 1 server to')]);
    expect(config()).toContain('namespace = "a"');
    expect(readFileSync(join(folder, '.cursor/mcp.json'), 'utf8')).toBe(one['.cursor/mcp.json']);
  });
});

describe('the file of a client', () => {
  const project = tempFolder();
  it.each(Object.entries({ ...home(project), ...PROJECT }))(
    '%s is read as a configuration with --config',
    async (path, text) => {
      const cwd = tempFolder({ [path]: text });
      const config = await loadConfig({ cwd, env: { COLOUR: 'red', AREA: 'here', DOCS_TOKEN: 't' }, path });
      expect(config.servers.length).toBeGreaterThan(0);
      // Only what nobody but the client can know is left out.
      expect(config.broken.map(({ key }) => key).filter((key) => key !== 'asks' && key !== 'ext')).toEqual([]);
    },
  );
});
