/** tools.toml in the working directory, and how its commands are run. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { callText, catalogLines, doorsOf, enter, promptNames, resourceUris, toolNames } from '../support/doors.ts';
import { fixture, server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const doors = doorsOf('activation-configuration');

interface Whoami {
  readonly name: string;
  readonly argv: string[];
  readonly cwd: string;
  readonly env: Record<string, string | null>;
}

describe.each(doors)('tools.toml over %s', (door) => {
  it('is read from the working directory and defines the servers and what is active', async () => {
    const { client, cwd } = await enter(door, {
      config: `
        active_toolsets = ["a_*"]

        [[servers]]
        namespace = "a"
        command = ${JSON.stringify(server('basic', '--name', 'first', '--tools', 'whoami', '--prompts', 'p'))}

        [[servers]]
        namespace = ""
        command = ${JSON.stringify(server('basic', '--name', 'second', '--tools', 'plain', '--resources', 'x://1'))}
      `,
    });
    expect(await toolNames(client)).toEqual(['a_whoami']);
    expect(await promptNames(client)).toEqual(['a_p']);
    expect(await catalogLines(client)).toEqual({
      tools: ['*a_whoami - Tool whoami', 'plain - Tool plain'],
      resources: ['x://1 - Resource x://1'],
    });
    expect(JSON.parse(await callText(client, 'a_whoami'))).toMatchObject({ name: 'first', cwd });
  });

  it('activates nothing without active_toolsets, and needs no servers', async () => {
    const one = await enter(door, { config: serversToml({ a: server('basic', '--resources', 'x://1') }) });
    expect(await toolNames(one.client)).toEqual([]);
    expect(await resourceUris(one.client)).toEqual([]);
    const none = await enter(door, { config: '' });
    expect(await toolNames(none.client)).toEqual([]);
    expect(await catalogLines(none.client)).toEqual({ tools: ['(none)'], resources: ['(none)'] });
  });
});

describe('the command of a server', () => {
  const node = process.execPath;
  const basic = fixture('basic');

  it.each<{ what: string; command: string; expected: Partial<Whoami> }>([
    {
      what: 'quotes of both kinds',
      command: `'${node}' "${basic}" --name "it's a" --tools 'whoami',"a b"`,
      expected: { argv: ['--name', "it's a", '--tools', 'whoami,a b'] },
    },
    { what: 'escaped blanks', command: `${node} ${basic} --name a\\ b\\"c`, expected: { name: 'a b"c' } },
    {
      what: 'a variable of the environment',
      command: `${node} ${basic} --name "$WHO is here"`,
      expected: { name: 'who * is here' },
    },
    {
      what: 'a variable with a default',
      command: `${node} ${basic} --name \${NOBODY:-someone}`,
      expected: { name: 'someone' },
    },
    {
      what: 'a variable in single quotes, which stays',
      command: `${node} ${basic} --name '$WHO'`,
      expected: { name: '$WHO' },
    },
    { what: 'an assignment in front', command: `WHO=me ${node} ${basic}`, expected: { env: { WHO: 'me' } } },
    {
      what: 'the output of another command',
      command: `${node} ${basic} --name "$(echo a; echo b)"`,
      expected: { name: 'a\nb' },
    },
    { what: 'pipes on both sides', command: `cat | ${node} ${basic} --name piped | cat`, expected: { name: 'piped' } },
    { what: 'two commands', command: `cd 'sub dir' && ${node} ${basic}`, expected: { cwd: 'sub dir' } },
    { what: 'a redirection', command: `${node} ${basic} --name loud 2>/dev/null`, expected: { name: 'loud' } },
    {
      what: 'a relative program with a glob for an argument',
      command: `./run ${basic} --name s*b\\ dir`,
      expected: { name: 'sub dir' },
    },
  ])('may contain $what', async ({ command, expected }) => {
    const cwd = tempFolder();
    mkdirSync(join(cwd, 'sub dir'));
    symlinkSync(node, join(cwd, 'run'));
    const config = `active_toolsets = ["*"]\n${serversToml({ x: command })}`;
    const { client } = await enter('stdio', { cwd, config, env: { WHO: 'who *' } });
    const { cwd: there, ...me } = JSON.parse(await callText(client, 'x_whoami', { env: ['WHO'] })) as Whoami;
    expect({ ...me, cwd: there.slice(cwd.length + 1) }).toMatchObject(expected);
  });
});

describe('an invalid configuration', () => {
  it.each([
    ['is missing', null, /no configuration in .*Create tools\.toml/s],
    ['is no TOML', 'servers = [', /tools\.toml.*1/s],
    ['has an unknown key', '[[servers]]\nnamespce = "a"\ncommand = "x"', /namespce.*namespace/s],
    ['has a server without a command', '[[servers]]\nnamespace = "a"', /command/],
    ['has a list for a command', '[[servers]]\ncommand = ["a", "b"]', /command/],
    ['has a quote that is never closed', '[[servers]]\ncommand = "echo \'a"', /quote.*never closed/],
    ['has a text for active_toolsets', 'active_toolsets = "*"', /active_toolsets/],
  ])('%s: the gateway reports it and does not start', async (_, config, said) => {
    const cwd = tempFolder(config === null ? {} : { 'tools.toml': config });
    const { code, stdout, stderr } = await runCli([], { cwd });
    expect(code).toBe(2);
    expect(stderr).toMatch(said);
    expect(stdout).toBe('');
  });
});
