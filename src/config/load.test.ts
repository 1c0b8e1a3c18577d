import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asOtherUser } from '../../test/support/other-user.ts';
import { runs } from '../../test/support/wide.ts';
import { GatewayError } from '../base/errors.ts';
import type { Config } from './config.ts';
import { findConfig } from './find.ts';
import { configFromValue, loadConfig } from './load.ts';

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'toolgate-load-'));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const write = (name: string, content: string | Uint8Array) => writeFile(join(cwd, name), content);
const load = (env: Record<string, string> = {}, path?: string) => loadConfig({ cwd, env, path });

async function messageFor(name: string, content: string, env: Record<string, string> = {}): Promise<string> {
  await write(name, content);
  return load(env, name).then(
    () => 'no error',
    (error) => `${error.code}\n${error.message}`,
  );
}

describe('the file', () => {
  it('is the first of the usual names, and the others are mentioned', async () => {
    const names = ['.mcp.json', 'toolgate.json', 'toolgate.yml', 'toolgate.yaml', 'toolgate.toml', 'tools.toml'];
    const seen: string[] = [];
    for (const name of names) {
      await write(name, name.endsWith('json') ? '{"mcpServers":{}}' : '');
      const { file, others } = findConfig({ cwd, env: {} });
      expect(file).toBe(join(cwd, name));
      expect(others).toEqual(seen.toReversed());
      seen.push(name);
    }
    expect((await load()).notices).toEqual([
      'tools.toml is used, and toolgate.toml, toolgate.yaml, toolgate.yml, toolgate.json, .mcp.json are ignored. Choose one with --config.',
    ]);
  });

  it('is the one that the user names, before TOOLGATE_CONFIG, before all others', async () => {
    await write('tools.toml', '');
    await write('a.toml', 'start_wait = 1');
    await write('b.toml', 'start_wait = 2');
    expect((await load({ TOOLGATE_CONFIG: 'b.toml' }, 'a.toml')).startWait).toBe(1);
    expect(await load({ TOOLGATE_CONFIG: 'b.toml' })).toMatchObject({
      startWait: 2,
      notices: [],
      file: join(cwd, 'b.toml'),
    });
    expect((await load({ TOOLGATE_CONFIG: '' })).file).toBe(join(cwd, 'tools.toml'));
  });

  it('is config.yaml in DATA_DIR if the working directory has none', async () => {
    await mkdir(join(cwd, 'data'));
    await write('data/config.yaml', 'start_wait: 7');
    expect(await load({ DATA_DIR: 'data' })).toMatchObject({
      startWait: 7,
      file: join(cwd, 'data/config.yaml'),
      dataDir: join(cwd, 'data'),
    });
    await expect(load({})).rejects.toMatchObject({ code: 'config_missing' });
    await write('tools.toml', 'start_wait = 1');
    expect(await load({ DATA_DIR: 'data' })).toMatchObject({ startWait: 1, notices: [] });
  });

  it('is not needed if there is a data folder, and shows what is in it', async () => {
    const inData = { file: join(cwd, 'data/config.yaml'), dataDir: join(cwd, 'data'), controls: [], notices: [] };
    expect(await load({ DATA_DIR: 'data' })).toMatchObject(inData);
    await mkdir(join(cwd, '.toolgate/tools'), { recursive: true });
    const own = { file: join(cwd, '.toolgate/config.yaml'), dataDir: join(cwd, '.toolgate'), controls: [] };
    expect(await load()).toMatchObject(own);
    await write('.toolgate/config.yaml', 'start_wait: 7');
    expect(await load()).toMatchObject({ ...own, startWait: 7 });
  });

  it('that has no servers shows the tools of folders without a control', async () => {
    await write('tools.toml', '');
    expect((await load()).controls).toEqual(['activate']);
    await mkdir(join(cwd, '.toolgate/tools'), { recursive: true });
    expect((await load()).controls).toEqual([]);
    await write('tools.toml', 'active_toolsets = ["x_*"]');
    expect((await load()).controls).toEqual(['activate']);
    await write('tools.toml', '[[servers]]\ncommand = "x"');
    expect((await load()).controls).toEqual(['activate']);
  });

  it('may be reached by a symlink, and paths stay relative to the link', async () => {
    await mkdir(join(cwd, 'real'));
    await write('real/x.toml', '[[servers]]\ncommand = "x"\ncwd = "y"');
    await symlink(join(cwd, 'real/x.toml'), join(cwd, 'tools.toml'));
    expect((await load()).servers[0]?.launch).toMatchObject({ cwd: join(cwd, 'y') });
  });

  it('is explained by an example if there is none', async () => {
    await expect(load()).rejects.toMatchObject({
      code: 'config_missing',
      message: `There is no configuration in ${cwd}. Create tools.toml there, or name a file with --config. An example:

[[servers]]
namespace = "files"
command = "npx -y @modelcontextprotocol/server-filesystem ."
`,
    });
  });

  it('that is missing is reported with the option that names it', async () => {
    await expect(load({}, 'x.toml')).rejects.toMatchObject({
      code: 'config_missing',
      message: `There is no file ${join(cwd, 'x.toml')}, which --config names. Create it, or name another.`,
    });
    await expect(load({ TOOLGATE_CONFIG: 'x.toml' })).rejects.toThrow('which TOOLGATE_CONFIG names');
  });

  it('is refused if it is not a text file of a reasonable size', async () => {
    await mkdir(join(cwd, 'folder.toml'));
    await expect(load({}, 'folder.toml')).rejects.toThrow('folder.toml: is a folder. Name the file in it.');
    await write('latin1.toml', Uint8Array.from([0x61, 0x3d, 0xe9]));
    await expect(load({}, 'latin1.toml')).rejects.toThrow('latin1.toml: is not UTF-8 text. Save it in that encoding.');
    await write('large.toml', '#'.repeat(1024 * 1024 + 1));
    await expect(load({}, 'large.toml')).rejects.toThrow(
      'large.toml: is larger than 1 MiB. Make sure that it is the right file.',
    );
    await write('just.toml', '#'.repeat(1024 * 1024));
    await expect(load({}, 'just.toml')).resolves.toBeDefined();
    await expect(load({}, '/dev/null')).rejects.toThrow('/dev/null: is not a regular file. Name one.');
  });

  it('is refused if this user has no permission to read it', async () => {
    await write('tools.toml', '');
    await chmod(join(cwd, 'tools.toml'), 0);
    const message = 'tools.toml: cannot be read: permission denied. Give this user permission to read it.';
    await asOtherUser(cwd, () => expect(load()).rejects.toThrow(message));
  });

  it('may begin with a byte order mark', async () => {
    for (const [name, text] of [
      ['x.toml', 'start_wait = 7'],
      ['x.yaml', 'start_wait: 7'],
      ['x.json', '{"start_wait": 7}'],
    ] as const) {
      await write(name, `\uFEFF${text}`);
      expect((await load({}, name)).startWait).toBe(7);
    }
  });
});

describe('an invalid file', () => {
  it('gets every problem listed with its line, in TOML', async () => {
    const message = await messageFor(
      'tools.toml',
      `active_toolsets = "git_*"
start_wiat = "5s"

[[servers]]
namespace = "a b"
command = "x"

[[servers]]
comand = "y"
timeout = "1 hour"

[servers.env]
PORT = 80

[http]
port = "80"
`,
    );
    expect(message).toBe(`config_invalid
tools.toml:1: active_toolsets: expected a list of strings, found a string.
tools.toml:2: start_wiat: unknown key. Did you mean "start_wait" or "start_timeout"?
tools.toml:5: servers[0].namespace: expected only letters, digits, "_", "." and "-", found "a b".
tools.toml:9: servers[1].comand: unknown key. Did you mean "command"?
tools.toml:10: servers[1].timeout: expected a duration such as "250ms", "30s", "10m" or "24h", or a number of milliseconds, found "1 hour".
tools.toml:13: servers[1].env.PORT: expected a string, found 80.
tools.toml:16: http.port: expected a whole number from 0 to 65535, found a string.`);
  });

  it('gets every problem listed with its line, in YAML', async () => {
    const message = await messageFor('toolgate.yaml', 'servers:\n  git:\n    comand: x\n  fs:\n    command: [npx]\n');
    expect(message).toBe(`config_invalid
toolgate.yaml:3: servers.git.comand: unknown key. Did you mean "command"?
toolgate.yaml:5: servers.fs.command: expected a string (arguments go in "args"), found a list.`);
  });

  it('gets every problem listed with its line, in JSON', async () => {
    const message = await messageFor(
      'toolgate.json',
      '{\n  // ours\n  "mcpServers": {\n    "git": {"comand": "x"},\n    "constructor": {"command": "x"}\n  },\n  "__proto__": {}\n}',
    );
    expect(message).toBe(`config_invalid
toolgate.json:4: mcpServers.git.comand: unknown key. Did you mean "command"?
toolgate.json:5: mcpServers.constructor: this key is not allowed. Rename it.
toolgate.json:7: __proto__: this key is not allowed. Rename it.`);
  });

  it('gets problems listed that appear only after variables are expanded', async () => {
    const message = await messageFor(
      'tools.toml',
      `[[servers]]
command = "a 'b"

[[servers]]
url = "\${URL}"
headers = { Authorization = "Bearer \${TOKEN}" }

[[servers]]
url = "\${SECRET}"
`,
      { SECRET: 's3cret', CORE_PORT: 's3cret' },
    );
    expect(message).toBe(`config_invalid
tools.toml: the environment variable CORE_PORT is not a port from 0 to 65535. Correct it.
tools.toml:2: servers[0].command: The quote ' at character 3 of the command is never closed. Close it, or write \\' for the character itself.
tools.toml:5: servers[1].url: the environment variable URL is not set. Set it, or give a default: \${URL:-default}.
tools.toml:6: servers[1].headers.Authorization: the environment variable TOKEN is not set. Set it, or give a default: \${TOKEN:-default}.
tools.toml:9: servers[2].url: is not an address that begins with http:// or https://.`);
  });

  it('is named by its absolute path if it is elsewhere', async () => {
    await write('x.toml', 'x = 1');
    const elsewhere = loadConfig({ cwd: '/usr', env: {}, path: join(cwd, 'x.toml') });
    await expect(elsewhere).rejects.toThrow(`${join(cwd, 'x.toml')}:1: x: unknown key.`);
  });
});

it('turns any file into a configuration or an error that says what to do', async () => {
  const samples = {
    'x.toml': '[[servers]]\nnamespace = "a"\ncommand = "x ${Y}"\nenv = { A = "${B:-c}" }\n[http]\nport = 1\n',
    'x.yaml': 'servers:\n  a: &a\n    command: x\n    args: ["${Y}"]\n  b: *a\nhttp: {port: 1}\n',
    'x.json': '{"servers": [{"command": "x", "timeout": "1s"}], // y\n "limits": {"body": "1KB",},}',
    'x.mcp.json': '{"mcpServers": {"a": {"type": "http", "url": "http://x", "headers": {"A": "${B:-c}"}}}}',
  };
  const edit = fc.record({
    at: fc.nat(200),
    cut: fc.nat(12),
    put: fc.constantFrom(
      '',
      '"',
      "'",
      '{',
      '}',
      '[',
      ']',
      '\n',
      '${',
      '*',
      '&a',
      '-',
      ':',
      '=',
      'null',
      '1e999',
      '__proto__',
      '\\',
      '\0',
      '#',
    ),
  });
  const edited = fc.tuple(fc.constantFrom(...Object.entries(samples)), fc.array(edit, { minLength: 1, maxLength: 3 }));
  await fc.assert(
    fc.asyncProperty(edited, async ([[name, text], edits]) => {
      const broken = edits.reduce((now, { at, cut, put }) => now.slice(0, at) + put + now.slice(at + cut), text);
      await write(name, broken);
      const error = await load({}, name).then(
        () => null,
        (error: unknown) => error,
      );
      if (error !== null) expect(error).toBeInstanceOf(GatewayError);
    }),
    { numRuns: runs(500) },
  );
  expect(Object.keys(Object.prototype)).toEqual([]);
});

it('joins names in its own files, and uses flat names in files of other programs, unless told otherwise', async () => {
  const read = async (name: string, value: object) => {
    await write(name, JSON.stringify(value));
    const { names, nameLimit } = await load({}, name);
    return [names, nameLimit];
  };
  expect(await read('toolgate.json', {})).toEqual(['join', null]);
  expect(await read('toolgate.json', { names: 'flat', name_limit: 64 })).toEqual(['flat', 64]);
  expect(await read('.mcp.json', { mcpServers: {} })).toEqual(['flat', null]);
  expect(await read('.mcp.json', { mcpServers: {}, names: 'join', name_limit: 16 })).toEqual(['join', 16]);
});

describe('one bad entry', () => {
  const problems = ({ broken }: Config) => broken.map(({ key, problem }) => [key, problem]);
  const keys = ({ servers }: Config) => servers.map(({ key }) => key);

  it('is left out with its line, and the rest is read, in TOML', async () => {
    await write(
      'tools.toml',
      `[[servers]]
namespace = "first"
command = "x"

[[servers]]
namespace = "same"
comand = "y"

[[servers]]
namespace = "same"
command = "z"

[[servers]]
url = "http://localhost:1"
headers = { A = "\${TOKEN}" }

[[servers]]
command = "last"

[toolsets.wrong]
tool = []

[toolsets.right]
tools = ["a"]
`,
    );
    const config = await load();
    // A broken entry keeps its name, so that policies for it apply to no other server.
    const made = expect.stringMatching(/^server-[0-9a-f]{8}$/);
    expect(keys(config)).toEqual(['first', made, made]);
    expect(config.toolsets.map(({ name }) => name)).toEqual(['right']);
    expect(problems(config)).toEqual([
      ['same', 'tools.toml:7: servers[1].comand: unknown key. Did you mean "command"?'],
      [
        made,
        'tools.toml:15: servers[3].headers.A: the environment variable TOKEN is not set. Set it, or give a default: ${TOKEN:-default}.',
      ],
      [
        'wrong',
        `tools.toml:20: toolsets.wrong.tools: expected a list of strings, found nothing.
tools.toml:21: toolsets.wrong.tool: unknown key. Did you mean "tools"?`,
      ],
    ]);
  });

  it('is left out in YAML and JSON, and of a map too', async () => {
    await write('x.yaml', 'servers:\n  bad: {command: [a]}\n  "a b": {command: x}\n  good: {command: x}\n');
    const yaml = await load({}, 'x.yaml');
    expect(keys(yaml)).toEqual(['good']);
    expect(problems(yaml).map(([key]) => key)).toEqual(['bad', 'a b']);
    await write('x.json', '{"mcpServers": {"bad": {"url": 1}, "good": {"command": "x"}}}');
    const json = await load({}, 'x.json');
    expect(keys(json)).toEqual(['good']);
    expect(problems(json)).toEqual([['bad', 'x.json:1: mcpServers.bad.url: expected a string, found 1.']]);
  });

  it('refuses the file together with a mistake elsewhere, and if nothing else is left to serve', async () => {
    const servers = '[[servers]]\ncomand = "x"\n[[servers]]\ncommand = "y"\n';
    for (const other of ['[agents.a]\ntokn = "x"\n', '[http]\nprot = 1\n', '[agent_policies.a]\nallowed = []\n'])
      expect(await messageFor('tools.toml', servers + other)).toContain('servers[0].comand');
    expect(await messageFor('tools.toml', '[[servers]]\ncomand = "x"\n')).toContain('servers[0].comand');
    await mkdir(join(cwd, '.toolgate/tools'), { recursive: true });
    expect(keys(await load({}, 'tools.toml'))).toEqual([]);
  });
});

describe('a file of another program', () => {
  it('is served as far as it is valid, with notices about the rest', async () => {
    await write(
      '.mcp.json',
      JSON.stringify({
        mcpServers: {
          good: { command: 'my server', args: ['${HOME}'], disabledTools: [] },
          bad: {},
          unset: { url: 'https://x', headers: { Authorization: '${TOKEN}' } },
          off: { command: '${TOKEN}', disabled: true },
          toolgate: { command: 'npx', args: ['-y', 'toolgate'] },
        },
      }),
    );
    const config = await load({ HOME: '/home/me' });
    expect(config.controls).toEqual(['equip']);
    expect(config.names).toBe('flat');
    expect(
      config.servers.map(({ key, enabled, launch }) => [key, enabled, launch.kind === 'stdio' && launch.file]),
    ).toEqual([
      ['good', true, 'my server'],
      ['off', false, '${TOKEN}'],
    ]);
    expect(config.notices).toEqual([
      '.mcp.json: mcpServers.good: ignored "disabledTools".',
      '.mcp.json: mcpServers.toolgate: left out: it would start Toolgate itself again.',
      expect.stringContaining('server "good" can reach "/home/me"'),
    ]);
    expect(config.broken.map(({ key, problem }) => [key, problem])).toEqual([
      [
        'bad',
        '.mcp.json:1: mcpServers.bad: needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files).',
      ],
      [
        'unset',
        '.mcp.json:1: mcpServers.unset.headers.Authorization: the environment variable TOKEN is not set. Set it, or give a default: ${TOKEN:-default}.',
      ],
    ]);
  });

  it('is an error only if it is not a map', async () => {
    expect(await messageFor('.mcp.json', '[]')).toBe('config_invalid\n.mcp.json: expected a map with "mcpServers".');
    expect(await messageFor('.mcp.json', '{')).toBe(
      'config_invalid\n.mcp.json:1:2: not valid JSON: close brace expected. Correct this line.',
    );
  });
});

describe('a configuration given in code', () => {
  it('is checked as strictly as a file', () => {
    expect(() => configFromValue({ servers: [{ comand: 'x' }] }, { cwd: '/', env: {} })).toThrow(
      'configuration: servers[0].comand: unknown key. Did you mean "command"?',
    );
  });

  it('has paths relative to the working directory, and no file', () => {
    const config = configFromValue({ servers: [{ command: 'x', cwd: 'y' }] }, { cwd: '/a', env: {} });
    expect(config).toMatchObject({
      file: null,
      dataDir: '/a/.toolgate',
      controls: [],
      names: 'join',
      servers: [{ launch: { cwd: '/a/y' } }],
    });
  });

  it('does not freeze or change the value it was given', () => {
    const value = { servers: [{ command: 'x', args: ['y'], env: { A: '${B}' } }], http: { allowed_hosts: ['z'] } };
    const copy = structuredClone(value);
    configFromValue(value, { cwd: '/', env: { B: 'b' } });
    expect(value).toEqual(copy);
    expect(Object.isFrozen(value.servers[0]?.args)).toBe(false);
    expect(Object.isFrozen(value.http.allowed_hosts)).toBe(false);
  });
});

describe('a setting of the whole file below [[servers]]', () => {
  it.each([
    'active_toolsets = ["a_*"]',
    'controls = []',
    'data_dir = "x"',
    'denied_tools = { a = ["x"] }',
    'http = { port = 1 }',
    'toolsets = { x = { tools = ["a.b"] } }',
  ])('%s refuses the file and says where it belongs', async (line) => {
    const good = '[[servers]]\nnamespace = "good"\ncommand = "x"\n';
    const message = await messageFor('tools.toml', `${good}[[servers]]\nnamespace = "a"\ncommand = "x"\n${line}\n`);
    const key = line.split(' ')[0];
    expect(message).toBe(
      `config_invalid\ntools.toml:7: servers[1].${key}: a setting of the whole file, not of servers[1]. It belongs before the first [[servers]].`,
    );
  });

  it('is told in the words of the language, and below other headers too', async () => {
    expect(await messageFor('x.yaml', 'servers:\n  - command: x\n    controls: []\n')).toContain(
      'It belongs at the top level of the file.',
    );
    expect(await messageFor('x.toml', '[http]\nport = 1\ncontrols = []\n')).toContain(
      'http.controls: a setting of the whole file, not of http. It belongs before the first header in brackets.',
    );
  });

  it('has a counterpart: keys of a server at the top', async () => {
    expect(await messageFor('x.toml', 'command = "x"\n')).toContain(
      'command: unknown key. It belongs to a server: write it below [[servers]].',
    );
  });
});

it('reads the file of a client under its own name: what is known is used, toolsets are equipped, the rest is for the client', async () => {
  const file = {
    globalShortcut: 'Ctrl+Space',
    mcpServers: { a: { command: 'x', args: ['${env:HOME}'], env: { PORT: 8080 } }, b: { command: '${input:key}' } },
  };
  await write('claude_desktop_config.json', JSON.stringify(file));
  const { servers, controls, names, notices, broken } = await load({ HOME: '/h' }, 'claude_desktop_config.json');
  expect(servers).toMatchObject([{ key: 'a', launch: { args: ['/h'], env: { PORT: '8080' } } }]);
  expect([controls, names]).toEqual([['equip'], 'flat']);
  expect(notices).toEqual([expect.stringContaining('server "a" can reach "/h"')]);
  expect(broken).toMatchObject([{ key: 'b', problem: expect.stringContaining('which Toolgate does not know') }]);
});

it('takes the folder and the variables of the process if a program gives none', () => {
  expect(configFromValue({}).dataDir).toBe(join(process.cwd(), '.toolgate'));
});
