import { describe, expect, it } from 'vitest';
import { configFromValue } from './load.ts';
import { reachText } from './reach.ts';

const own = [
  { what: 'the configuration', path: '/home/me/project/tools.toml' },
  { what: 'the data folder', path: '/home/me/project/.toolgate' },
];
const run = (file: string, ...args: string[]) => runIn('/home/me/project', file, ...args);
const runIn = (cwd: string, file: string, ...args: string[]) =>
  reachText({ kind: 'stdio', file, args, env: {}, cwd }, own, '/home/me', '/home/me/project');

describe('a server reaches the configuration', () => {
  it.each([
    [['.']],
    [['..']],
    [['/']],
    [['/home/me']],
    [['./']],
    [['docs/..']],
    [['~/project']],
    [['--root=.']],
    [['--allow-write=/home']],
    [['run', '-v', '.:/work', 'image']],
    [['-v', '/home/me:/work:rw', 'image']],
    [['/home/me/project/tools.toml']],
    [['.toolgate']],
  ])('through %j', (args) => {
    expect(run('files', ...args)).toMatch(/^".+", which contains the (configuration|data folder)/);
  });

  it('through a shell line', () => {
    expect(run('/bin/sh', '-c', 'exec files "$HOME"')).toContain('the configuration and the data folder');
    expect(run('/bin/sh', '-c', 'cd x && files .')).toContain('the configuration');
  });

  it('through its working directory, if that is another than usual', () => {
    expect(runIn('/home/me', 'files')).toBe('"/home/me", which contains the configuration and the data folder');
    expect(runIn('/home/me/project/.toolgate', 'files')).toContain('the data folder');
    expect(runIn('/home/me/project', 'files')).toBeNull();
    expect(runIn('/home/me/other', 'files')).toBeNull();
  });

  it('through a folder of tools around it', () => {
    expect(reachText({ folder: '/home/me' }, own, undefined, '/')).toContain('the configuration');
  });
});

describe('a server does not reach the configuration', () => {
  it.each([
    [[]],
    [['docs']],
    [['./docs', '/tmp']],
    [['-y', '@scope/package@1.2.3', 'notes']],
    [['--root', 'docs']],
    [['-v', '.:/work:ro', 'image']],
    [['https://example.com/.']],
    [['']],
    [['/home/me/project2']],
    [['server.mjs']],
  ])('through %j', (args) => {
    expect(run('files', ...args)).toBeNull();
  });
});

describe('security.reachable_config', () => {
  const value = (security: object) => ({
    servers: { files: { command: 'files', args: ['.'] } },
    security,
  });
  const surroundings = { cwd: '/home/me/project', env: {} };

  it('warns by default', () => {
    const { notices } = configFromValue(value({}), surroundings);
    expect(notices).toEqual([expect.stringContaining('server "files" can reach ".", which contains the data folder')]);
  });

  it('allows, or refuses the configuration', () => {
    expect(configFromValue(value({ reachable_config: 'allow' }), surroundings).notices).toEqual([]);
    expect(() => configFromValue(value({ reachable_config: 'refuse' }), surroundings)).toThrow('the data folder');
  });
});

it('the folder of the user, which says what is trusted, is out of reach too', () => {
  const notices = (env: Record<string, string>) =>
    configFromValue({ servers: [{ namespace: 'f', command: 'files', args: ['/home/me'] }] }, { cwd: '/srv/app', env })
      .notices;
  expect(notices({ HOME: '/home/me' })).toEqual([
    expect.stringContaining('server "f" can reach "/home/me", which contains the folder with what you trust'),
  ]);
  expect(notices({ HOME: '/home/me', XDG_CONFIG_HOME: '/home/me/settings' })).toHaveLength(1);
  expect(notices({ HOME: '/home/you' })).toEqual([]);
});
