/** `/admin/commands`: what is wrong in a request is said, whatever was sent, and nothing is changed. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type CommandRequest, type GatewayCommand, gatewayCommands } from '../../src/doors/commands/commands.ts';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const KEY = 'an-operator-key-for-this-test';

/** A right request for every command. */
const RIGHT: { readonly [Name in GatewayCommand]: CommandRequest<Name> } = {
  list: { kinds: ['tool'], agent: 'ann', tokens: true },
  explain: { name: 'a_x', agent: 'ann' },
  plan: {
    task: { service: '', type: '', description: 'x', profile: '' },
    agent: 'ann',
    format: 'json',
    search: true,
    name: 'x',
  },
  search: { query: 'x', limit: 3, server: 'a', agent: 'ann', tokens: true },
  'search-examples': {},
  'search-forget': {},
  tokens: {},
  macros: {},
  lock: { names: ['a'] },
  'lock-approve': { names: ['a'], hash: 'x' },
  'toolsets-list': {},
  'toolsets-show': { name: 'one' },
  'toolsets-choices': { chosen: ['a.x'] },
  'toolsets-create': { name: 'made', description: '', tools: ['a.x'], place: 'project' },
  'toolsets-import': { toolset: { tools: [] }, name: 'made', place: 'project' },
  'toolsets-edit': { name: 'one', description: 'x', add: [], remove: [], tools: ['a.x'] },
  'toolsets-rename': { name: 'one', to: 'two' },
  'toolsets-delete': { name: 'one' },
  'toolsets-equip': { name: 'one', who: { agent: 'ann' } },
};

const WRONG_VALUES: readonly unknown[] = [
  null,
  true,
  7,
  -0.5,
  '',
  'no\u0000thing',
  'x'.repeat(70_000),
  '\ud800',
  '../..',
];
const WRONG_SHAPES: readonly unknown[] = [[], {}, [null], [[]], [{}], [7], { x: 1 }, ['\u0000'], { session: 7 }];
const WRONG_BODIES = ['', ' ', '[]', 'null', '"x"', '7', '{', '[[[', '\u0000', '{"a":', '{"__proto__":{"name":"one"}}'];

it('says what is wrong in a request of every command, and never fails itself', async () => {
  const config = `controls = ["equip"]\n${serversToml({ a: server('basic', '--tools', 'x') })}\n[toolsets.one]\ntools = ["a.x"]\n`;
  const { origin, cwd, stderr } = await startHttp({ config, env: { TOOLGATE_OPERATOR_KEY: KEY } });
  const send = async (command: string, body: string) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const response = await fetch(`${origin}/admin/commands/${command}`, { method: 'POST', headers, body });
    return { status: response.status, text: await response.text() };
  };
  for (const [command, right] of Object.entries(RIGHT)) {
    const isEmpty = Object.keys(right).length === 0;
    for (const body of WRONG_BODIES) {
      const { status, text } = await send(command, body);
      expect(status, `${command} ${body} ${text}`).toBe(400);
      expect(JSON.parse(text).message, `${command} ${body}`).not.toBe('');
    }
    if (!isEmpty) {
      const { status, text } = await send(command, '{}');
      expect([status, text], command).toEqual([
        400,
        expect.stringContaining(`the command \\"${command}\\" is not right`),
      ]);
    }
    const unknown = await send(command, JSON.stringify({ ...right, unknwon: 1 }));
    expect([unknown.status, unknown.text], command).toEqual([400, expect.stringContaining('unknwon: unknown key')]);
    for (const key of Object.keys(right))
      for (const value of onePart(3, [...WRONG_VALUES, ...WRONG_SHAPES])) {
        const { status, text } = await send(command, JSON.stringify({ ...right, [key]: value }));
        const where = `${command} ${key} ${JSON.stringify(value).slice(0, 100)} ${text.slice(0, 300)}`;
        expect(status, where).toBeLessThan(500);
        if (status >= 400) expect(JSON.parse(text).message, where).not.toBe('');
        const isOfWrongType = typeof value !== typeof (right as Record<string, unknown>)[key];
        if (isOfWrongType && value !== null && key !== 'toolset')
          expect([status, text], where).toEqual([400, expect.stringContaining(key)]);
      }
  }
  expect(stderr()).not.toContain('"level":"error"');
  expect(readdirSync(join(cwd, '.toolgate/toolsets')).filter((name) => !/^(made|two|one)\.json$/.test(name))).toEqual(
    [],
  );
  expect((await send('list', JSON.stringify(RIGHT.list))).status).toBe(200);
  expect(Object.keys(RIGHT).sort()).toEqual(Object.keys(gatewayCommands).sort());
});

it('answers 404 for a command that it does not have, and for nobody but the operator', async () => {
  const { origin } = await startHttp({ config: 'controls = []\n', env: { TOOLGATE_OPERATOR_KEY: KEY } });
  const send = (name: string, key: string) =>
    fetch(`${origin}/admin/commands/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{}',
    });
  for (const name of ['toString', '__proto__', 'none', '%00', 'list/x']) {
    const { status } = await send(name, KEY);
    expect([400, 404], name).toContain(status);
  }
  expect((await send('macros', 'another-operator-key')).status).toBe(403);
});
