/** `toolgate policy test`: tables of expected decisions, without any server. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const CONFIG = `
controls = []
denied_tools = { shop = ["drop"] }
denied_resources = { shop = ["doc://secret"] }

[[conditions]]
tools = ["shop.pay"]
when = 'claims.team == "ops" && args.amount < 100'

[[conditions]]
tools = ["shop.find"]
between = ["08:00", "18:00"]
dry_run = true

[agent_policies.guest]
allowed_servers = ["other"]

[agent_policies."*"]

[[security.confirm]]
tools = ["shop.send"]
when = 'args.to != "me"'

[task_profiles.reading]
types = ["reading"]
tools = { shop = ["find"] }

[default_policy]
allow_unknown_tools = true
`;
// A program that fails at once: nothing may be started.
const SERVERS =
  '[[servers]]\nnamespace = "shop"\ncommand = "false"\n[[servers]]\nnamespace = "other"\ncommand = "false"\n';

const rows = {
  tests: [
    {
      name: 'ops pay a little',
      agent: 'ann',
      tool: 'shop.pay',
      claims: { team: 'ops' },
      arguments: { amount: 5 },
      expect: 'allow',
    },
    {
      agent: 'ann',
      tool: 'shop.pay',
      claims: { team: 'ops' },
      arguments: { amount: 500 },
      expect: 'deny',
      rule: 'conditions[0]',
    },
    { agent: 'ann', tool: 'shop.pay', arguments: { amount: 5 }, expect: 'deny' },
    { agent: 'ann', tool: 'shop_drop', expect: 'deny', rule: 'denied_tools.shop' },
    { agent: 'ann', tool: 'shop.drop', expect: 'deny', rule: 'denied_tools.shop' },
    { agent: 'guest', tool: 'shop.pay', expect: 'deny', rule: 'agent_policies.guest.allowed_servers' },
    { agent: 'ann', tool: 'shop.find', time: '2026-11-16T20:00:00Z', expect: 'deny', rule: 'conditions[1]' },
    { agent: 'ann', tool: 'shop.find', time: '2026-11-16T12:00:00Z', expect: 'allow' },
    { agent: 'ann', tool: 'shop.send', arguments: { to: 'all' }, expect: 'confirm', rule: 'security.confirm[0]' },
    { agent: 'ann', tool: 'shop.send', arguments: { to: 'me' }, expect: 'allow' },
    { agent: 'ann', tool: 'shop.send', task: { type: 'reading' }, expect: 'deny', rule: 'task' },
    { agent: 'ann', resource: 'shop.doc://secret', expect: 'deny', rule: 'denied_resources.shop' },
    { agent: 'ann', resource: 'shop.doc://open', expect: 'allow' },
    { agent: 'guest', prompt: 'shop.ask', expect: 'deny' },
    { agent: 'ann', prompt: 'shop.ask', expect: 'allow' },
  ],
};

const test = (tests: unknown, more: string[] = [], name = 'table.json', config = CONFIG + SERVERS) =>
  runCli(['policy', 'test', name, ...more], {
    config,
    files: { [name]: typeof tests === 'string' ? tests : JSON.stringify(tests) },
  });

describe('toolgate policy test', () => {
  it('prints every decision, and exits with 0 if all are as expected', async () => {
    const { code, stdout, stderr } = await test(rows);
    expect(stdout).toContain('✓ 1. ops pay a little (ann: shop.pay): allow');
    expect(stdout).toContain('15 decisions as expected');
    expect([code, stderr]).toEqual([0, '']);
  });

  it('says what differs, and exits with 1', async () => {
    const tests = [
      { agent: 'ann', tool: 'shop.drop', expect: 'allow' },
      { agent: 'ann', tool: 'shop.drop', expect: 'deny', rule: 'conditions[0]' },
      { agent: 'ann', tool: 'nowhere.find', expect: 'allow' },
    ];
    const { code, stdout } = await test({ tests });
    expect(stdout).toContain('✗ 1. ann: shop.drop: expected allow, but it is deny by denied_tools.shop');
    expect(stdout).toContain(
      '✗ 2. ann: shop.drop: expected deny by conditions[0], but it is deny by denied_tools.shop',
    );
    expect(stdout).toContain(
      '✗ 3. ann: nowhere.find: expected allow, but it is unknown: There is no tool "nowhere.find"',
    );
    expect(stdout).toContain('3 of 3 decisions differ');
    expect(code).toBe(1);
    const json = await test({ tests }, ['--json']);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([
      1,
      expect.objectContaining({
        failed: 3,
        tests: expect.arrayContaining([
          expect.objectContaining({
            tool: 'shop.drop',
            expect: 'allow',
            decision: 'deny',
            by: 'denied_tools.shop',
            ok: false,
          }),
        ]),
      }),
    ]);
  });

  it('reads TOML and YAML too', async () => {
    const toml = '[[tests]]\nagent = "ann"\ntool = "shop.find"\ntime = 2026-11-16T12:00:00Z\nexpect = "allow"\n';
    expect((await test(toml, [], 'table.toml')).stdout).toContain('1 decision as expected');
    const yaml = 'tests:\n  - { agent: ann, tool: shop.drop, expect: deny }\n';
    expect((await test(yaml, [], 'table.yaml')).stdout).toContain('1 decision as expected');
  });

  it.each([
    ['[[tests]]\ntool = "a.b"\n', 'table.toml:1: tests[0].expect: '],
    ['[[tests]]\ntool = "a.b"\nexpect = "maybe"\n', 'expected "allow", "deny" or "confirm"'],
    ['[[tests]]\nexpect = "deny"\n', 'tests[0]: names one of tool, resource and prompt'],
    ['[[tests]]\ntool = "a.b"\nexpect = "deny"\ntime = "soon"\n', 'expected a time such as'],
    ['[[tests]]\ntool = "a.b"\nexpect = "deny"\nagnet = "x"\n', 'Did you mean "agent"?'],
    ['tests = []\n', 'has no tests'],
    ['[[tests]]\ntool = "a.b"\nexpect = "deny"\ntask = { kind = "x" }\n', 'its task has an unknown key "kind"'],
  ])('refuses a bad table %j', async (text, problem) => {
    const { code, stderr } = await test(text, [], 'table.toml');
    expect(stderr).toContain(problem);
    expect(code).not.toBe(0);
  });

  it('refuses a missing file and an unknown verb', async () => {
    const run = (args: string[]) => runCli(['policy', ...args], { config: CONFIG + SERVERS });
    expect((await run(['test', 'gone.toml'])).stderr).toContain('there is no such file');
    expect((await run(['test'])).code).not.toBe(0);
    expect((await run(['check', 'x'])).stderr).toContain('toolgate policy has no "check"');
  });

  it('uses what servers offered last, if that is known', async () => {
    const cwd = tempFolder();
    await runCli(['list', 'tools', '--config', 'tools.toml'], {
      cwd,
      config: serversToml({ s: server('basic', '--tools', 'echo') }),
    });
    const tests = ['echo', 'invented'].map((name) => ({ tool: `s.${name}`, expect: 'allow' }));
    const files = { 'table.json': JSON.stringify({ tests }) };
    const { stdout } = await runCli(['policy', 'test', 'table.json'], { cwd, files });
    expect(stdout).toContain('✓ 1. default: s.echo: allow');
    expect(stdout).toContain('✗ 2. default: s.invented: expected allow, but it is unknown');
  });
});
