/** Single URIs behind a template: denied by their own names, explained, and known to doctor. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { runDoctor } from '../support/doctor.ts';
import { enter } from '../support/doors.ts';
import { server, serversToml } from '../support/server.ts';

const notes = serversToml({ notes: server('basic', '--templates', 'notes://{name}') });
const CONFIG = `controls = []
denied_resources = { notes = ["notes://secret", "notes://private-*"] }
[agent_policies.reader]
limits = { rate = "5/s" }
${notes}tools.echo = { timeout = "2s" }
`;

const SPELLINGS = [
  'notes://%73ecret',
  'notes://%2573ecret',
  'notes://secret?',
  'notes://secret?x=1',
  'notes://secret#',
  'notes://secret#x',
  'notes://secret/',
  'notes://./secret',
  'notes://SECRET',
  'NOTES://secret',
  'notes://x/../secret',
  'notes://sec\tret',
  ' notes://secret',
];

describe('a denied URI', () => {
  const SERVER = [
    '--whole',
    '--name',
    'notes',
    '--resources',
    'notes://first',
    '--templates',
    'notes://{+name},file:///a/{+path}',
  ];
  const denying = (rules: string) => `controls = []\n${rules}\n${serversToml({ notes: server('basic', ...SERVER) })}`;
  const DENIED = denying(
    'denied_resources = { notes = ["notes://secret", "file:///a/secret.txt", "file:///a/b/*.key"] }',
  );

  it.each(['http', 'modern stdio'] as const)('stays denied in every spelling, at the door %s', async (door) => {
    const { raw } = await enter(door, { config: DENIED });
    const files = [
      './secret.txt',
      '/secret.txt',
      'x/../secret.txt',
      '%2e/secret.txt',
      '%2Fsecret.txt',
      'secret.txt/',
      'secret%2Etxt',
      'b/x/..%2Fmy.key',
      'b/my.key/',
      '.\\secret.txt',
    ];
    const uris = [...SPELLINGS, 'notes://secret', 'file:///a/secret.txt', ...files.map((path) => `file:///a/${path}`)];
    const methods = door === 'http' ? ['resources/read', 'resources/subscribe'] : ['resources/read'];
    for (const uri of uris)
      for (const prefix of ['notes_', 'notes+', '']) {
        for (const method of methods) {
          const { result, error } = await raw(method, JSON.stringify({ uri: `${prefix}${uri}` }));
          expect([result, error], `${method} ${prefix}${uri}`).toEqual([
            undefined,
            expect.stringContaining('There is no resource'),
          ]);
        }
        const ref = { type: 'ref/resource', uri: `${prefix}${uri}` };
        const { result } = await raw(
          'completion/complete',
          JSON.stringify({ ref, argument: { name: 'name', value: 's' } }),
        );
        expect(result, `completion of ${prefix}${uri}`).toBeUndefined();
      }
    for (const uri of ['notes://public', 'notes://Other', 'file:///a/b/c%20d.txt', 'notes://q?x=1'])
      expect((await raw('resources/read', JSON.stringify({ uri: `notes_${uri}` }))).result, uri).toContain(uri);
  });

  it('is not reached through a resource that another rule hides, either', async () => {
    const { raw } = await enter('http', { config: denying('exposed_resources = { notes = ["notes://{+name}"] }') });
    for (const uri of ['notes://first', 'notes://%66irst', 'notes://first?', 'notes://x/../first'])
      expect((await raw('resources/read', JSON.stringify({ uri: `notes_${uri}` }))).error, uri).toContain(
        'There is no resource',
      );
    expect((await raw('resources/read', JSON.stringify({ uri: 'notes_notes://second' }))).result).toContain('second');
  });

  it('may be the only one that is allowed: its template is not', async () => {
    const config = denying(
      '[agent_policies."*"]\nresource_overrides = { notes = ["notes://public", "file:///a/open/*"] }\n[agent_policies."*".tool_overrides]\nnotes = ["*"]',
    );
    const { raw, client } = await enter('http', { config });
    const read = (uri: string) => raw('resources/read', JSON.stringify({ uri }));
    for (const uri of ['notes_notes://public', 'notes+notes://public', 'notes://public', 'notes_file:///a/open/x%20y'])
      expect((await read(uri)).result, uri).toContain('from notes');
    const closed = [
      'notes_notes://other',
      'notes_notes://public/x',
      'notes_notes://%70ublic',
      'notes_file:///a/open/../b',
      'notes_file:///a/open/..%2Fb',
      'notes_file:///a/b',
    ];
    for (const uri of closed) expect((await read(uri)).error, uri).toContain('There is no resource');
    expect((await client.listResourceTemplates()).resourceTemplates).toEqual([]);
  });
});

describe('a URI that a template makes', () => {
  it('is explained, with the exit code that fits', async () => {
    const explain = (name: string) => runCli(['explain', name, '--agent', 'reader'], { config: CONFIG });
    expect((await explain('notes_notes://public')).code).toBe(0);
    for (const uri of ['notes_notes://secret', 'notes://private-one']) {
      const { code, stdout } = await explain(uri);
      expect([code, stdout]).toEqual([1, expect.stringContaining('denied_resources.notes')]);
    }
    expect((await explain('other://secret')).code).toBe(2);
  });

  it('is no unknown name for doctor if it is denied', async () => {
    expect(await runDoctor(CONFIG)).toMatchObject({ code: 0, wrong: [] });
    expect(await runDoctor(CONFIG.replace('notes://secret', 'note://secret'))).toMatchObject({ code: 1 });
  });
});

it('explain shows the limits of the agent and the tool', async () => {
  const { stdout } = await runCli(['explain', 'notes_echo', '--agent', 'reader'], { config: CONFIG });
  expect(stdout).toContain('  Limits of the agent: rate 5/s.\n  Limits of the tool: timeout 2000 ms.');
  const json = await runCli(['explain', 'notes_echo', '--agent', 'reader', '--json'], { config: CONFIG });
  expect(JSON.parse(json.stdout)).toMatchObject([
    { limits: { 'the agent': { rate: '5/s' }, 'the tool': { timeout: 2000 } } },
  ]);
});
