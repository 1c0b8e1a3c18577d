/** `toolgate call`: one call from a shell, with its arguments converted to the types the tool declares. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const schema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    flag: { type: 'boolean' },
    list: { type: 'array' },
    object: { type: 'object' },
    maybe: { type: ['string', 'null'] },
    free: {},
  },
};
const definitions = join(
  tempFolder({
    'tools.json': JSON.stringify([
      { name: 'echo', inputSchema: schema },
      { name: 'raw', inputSchema: { type: 'object' } },
    ]),
  }),
  'tools.json',
);
const config = serversToml({
  up: server('basic', '--raw-tools', definitions),
  flaky: server('crash'),
});

async function echo(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runCli(['call', 'up_echo', ...args], { config });
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

describe('the arguments of toolgate call', () => {
  it('are converted to the type the tool declares', async () => {
    const given = [
      'text=5',
      'count=5',
      'ratio=0.5',
      'flag=true',
      'list=[1,"a"]',
      'object={"a":{}}',
      'free=7',
      'maybe=null',
    ];
    expect(await echo(...given)).toEqual({
      text: '5',
      count: 5,
      ratio: 0.5,
      flag: true,
      list: [1, 'a'],
      object: { a: {} },
      free: 7,
      maybe: null,
    });
  });

  it('are strings if they match no other declared type and may be strings', async () => {
    expect(await echo('free=plain words', 'unknown=x', 'text=', 'maybe=5')).toEqual({
      free: 'plain words',
      unknown: 'x',
      text: '',
      maybe: '5',
    });
  });

  it('may contain an equals sign, and keys of any name', async () => {
    expect(await echo('text=a=b=c', 'constructor=1', 'toString=x')).toEqual({
      text: 'a=b=c',
      constructor: 1,
      toString: 'x',
    });
  });

  it('may be one JSON object', async () => {
    expect(await echo('{"text":"a","deep":{"list":[1,null]}}')).toEqual({ text: 'a', deep: { list: [1, null] } });
    expect(await echo('  {}')).toEqual({});
    expect(await echo()).toEqual({});
  });

  it.each([
    [['count=five'], 'The value of count is not valid JSON'],
    [['novalue'], '"novalue" is not key=value'],
    [['=x'], '"=x" is not key=value'],
    [['{"a":'], 'The arguments is not valid JSON'],
    [['{}', 'a=1'], 'not both'],
  ])('that are invalid (%j) are refused before anything is called', async (args, why) => {
    const { code, stdout, stderr } = await runCli(['call', 'up_echo', ...args], { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(why);
  });
});

describe('the result of toolgate call', () => {
  it('is printed as the text of its content blocks', async () => {
    const result = {
      content: [
        { type: 'text', text: 'one\n\ttwo' },
        { type: 'image', data: '', mimeType: 'image/png' },
      ],
    };
    const { code, stdout } = await runCli(['call', 'up_raw', JSON.stringify({ json: JSON.stringify(result) })], {
      config,
    });
    expect(code).toBe(0);
    expect(stdout).toBe('one\n\ttwo\n[image; use --json to see it]\n');
  });

  it('is printed byte for byte with --json', async () => {
    const raw =
      '{"content":[ ],"structuredContent":{"n":9007199254740993,"f":1.0,"e":1e400,"s":"\\u00e9\\/é😀"}, "x":-0}';
    const { code, stdout } = await runCli(['call', '--json', 'up_raw', JSON.stringify({ json: raw })], { config });
    expect([code, stdout]).toEqual([0, `${raw}\n`]);
  });

  it('that is an error goes to stderr with exit code 1, or to stdout with --json', async () => {
    const raw = '{"content":[{"type":"text","text":"it went wrong"}],"isError":true}';
    const args = ['up_raw', JSON.stringify({ json: raw })];
    expect(await runCli(['call', ...args], { config })).toEqual({ code: 1, stdout: '', stderr: 'it went wrong\n' });
    expect(await runCli(['call', ...args, '--json'], { config })).toEqual({ code: 1, stdout: `${raw}\n`, stderr: '' });
  });

  it('that is a protocol error from the server prints its message with exit code 1', async () => {
    // The server lists `echo` but does not recognize it when called.
    const lying = { config: serversToml({ up: server('basic', '--raw-tools', definitions, '--tools', 'raw') }) };
    const message = 'Unknown tool: echo';
    expect(await runCli(['call', 'up_echo'], lying)).toEqual({ code: 1, stdout: '', stderr: `${message}\n` });
    const { code, stdout } = await runCli(['call', 'up_echo', '--json'], lying);
    expect([code, JSON.parse(stdout)]).toEqual([1, { error: { code: -32602, message } }]);
  });

  it('that is missing because the server died is reported', async () => {
    const { code, stdout, stderr } = await runCli(['call', 'flaky_crash'], { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Server "flaky" exited with code 1 before it answered');
  });
});

describe('the tool name in toolgate call', () => {
  it('with a typo gets a suggestion', async () => {
    const { code, stderr } = await runCli(['call', 'up_ehco'], { config });
    expect(code).toBe(2);
    expect(stderr).toContain('There is no tool "up_ehco". Did you mean "up_echo"');
  });

  it('may be that of an inactive tool', async () => {
    const run = await runCli(['call', 'up_echo'], { config: `active_toolsets = []\n${config}` });
    expect(run).toEqual({ code: 0, stdout: '{}\n', stderr: '' });
  });

  it('is required', async () => {
    const { code, stderr } = await runCli(['call'], { config });
    expect(code).toBe(2);
    expect(stderr).toContain('Which tool?');
  });
});

describe('the servers of toolgate call', () => {
  /** Servers that count their starts in a file. */
  function counting() {
    const folder = tempFolder();
    const file = (name: string) => join(folder, name);
    const one = (name: string) => server('crash', '--name', name, '--crash-times', file(name), '0');
    const starts = (name: string) => (existsSync(file(name)) ? Number(readFileSync(file(name), 'utf8')) : 0);
    return { config: serversToml({ one: one('one'), two: one('two') }), starts };
  }

  it('are only those that can have the tool, by its prefix', async () => {
    const { config, starts } = counting();
    const { code, stderr } = await runCli(['call', 'two_ok'], { config });
    expect([code, stderr]).toEqual([0, '']);
    expect([starts('one'), starts('two')]).toEqual([0, 1]);
  });

  it('are only the one that has the tool, by what servers offered before, also for other names of the tool', async () => {
    const { config, starts } = counting();
    const cwd = tempFolder();
    expect((await runCli(['list'], { config, cwd })).code).toBe(0);
    expect((await runCli(['call', 'two.ok'], { cwd })).code).toBe(0);
    expect((await runCli(['call', 'one_ok'], { cwd })).code).toBe(0);
    expect([starts('one'), starts('two')]).toEqual([2, 2]);
  });

  it('are all of them before a tool counts as unknown', async () => {
    const { config } = counting();
    const { code, stderr } = await runCli(['call', 'ona_ok'], { config });
    expect(code).toBe(2);
    expect(stderr).toContain('There is no tool "ona_ok". Did you mean "one_ok"');
  });

  it('are those of the gateway that runs, and none is started', async () => {
    const { config, starts } = counting();
    const env = { HOME: tempFolder() };
    const { cwd } = await startHttp({ config, env });
    const call = (...args: string[]) => runCli(['call', ...args], { cwd, env });
    expect(await call('two_ok', '--json')).toMatchObject({ code: 0, stderr: '' });
    expect([starts('one'), starts('two')]).toEqual([1, 1]);
    expect((await call('two_okk')).stderr).toContain('There is no tool "two_okk". Did you mean');
    expect(await call('two_crash', 'code=7')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('Server "two" exited with code 7 before it answered'),
    });
    expect(starts('one')).toBe(1);
  });

  it('are started for the command if the gateway that runs has another operator key', async () => {
    const { config, starts } = counting();
    const { cwd } = await startHttp({ config });
    const { code, stderr } = await runCli(['call', 'two_ok'], { cwd });
    expect([code, starts('two')]).toEqual([0, 2]);
    expect(stderr).toContain('The running gateway has another operator key.');
    expect(stderr).toContain('The servers are started again for this command.');
  });

  it('belong to the policy of the agent that is named, in the gateway that runs, too', async () => {
    const { config } = counting();
    const env = { HOME: tempFolder() };
    const policy = '\n[exposed_tools]\none = ["*"]\ntwo = ["*"]\n[agent_policies.ci]\nallowed_servers = ["one"]\n';
    const { cwd } = await startHttp({ config: config + policy, env });
    const call = (name: string) => runCli(['call', name, '--agent', 'ci'], { cwd, env });
    expect((await call('one_ok')).code).toBe(0);
    expect(await call('two_ok')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no tool "two_ok".'),
    });
  });

  it('answer byte for byte with --json, in the gateway that runs, too', async () => {
    const env = { HOME: tempFolder() };
    const { cwd } = await startHttp({ config, env });
    const raw = '{"content":[ ],"structuredContent":{"n":9007199254740993,"f":1.0},"x":-0}';
    const { stdout } = await runCli(['call', '--json', 'up_raw', JSON.stringify({ json: raw })], { cwd, env });
    expect(stdout).toBe(`${raw}\n`);
  });
});
