/** Single URIs behind a template: denied by their own names, explained, and known to doctor. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { runDoctor } from '../support/doctor.ts';
import { server, serversToml } from '../support/server.ts';

const notes = serversToml({ notes: server('basic', '--templates', 'notes://{name}') });
const CONFIG = `controls = []
denied_resources = { notes = ["notes://secret", "notes://private-*"] }
[agent_policies.reader]
limits = { rate = "5/s" }
${notes}tools.echo = { timeout = "2s" }
`;

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
