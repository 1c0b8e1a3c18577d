/** List-changed notifications: one for every actual change of a list, none if nothing changed. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  activate,
  activated,
  callText,
  catalogLines,
  doorsOf,
  enter,
  expectTold,
  type Guest,
  isPipe,
  promptNames,
  resourceUris,
  templateUris,
  toolNames,
} from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const doors = doorsOf('changes');

const growing = fileURLToPath(new URL('./growing.mjs', import.meta.url));
const git = server('basic', '--name', 'git', '--tools', 'status,push', '--resources', 'log://1', '--prompts', 'p');
const changing = serversToml({ c: server('changing') });

/** A client that has requested all lists. Only then does it get notifications about changes. */
async function attentive(...given: Parameters<typeof enter>): Promise<Guest> {
  const guest = await enter(...given);
  await toolNames(guest.client);
  await resourceUris(guest.client);
  await promptNames(guest.client);
  return guest;
}

describe.each(doors)('a client over %s', (door) => {
  it('is offered list-changed notifications for all three lists', async () => {
    const { client } = await enter(door, { config: '' });
    const listChanged = { listChanged: true };
    expect(client.getServerCapabilities()).toMatchObject({
      tools: listChanged,
      resources: listChanged,
      prompts: listChanged,
    });
  });

  it('is notified once per list that an activation changes, and the tool list changes with the catalog', async () => {
    const guest = await attentive(door, { config: serversToml({ git }) });
    await activated(guest.client, { tools_on: ['git_status', 'git_push'] });
    await expectTold(guest, 1, 0, 0);
    await activated(guest.client, { resources_on: ['git_log://1'] });
    await expectTold(guest, 2, 1, 0);
    await activated(guest.client, { tools_off: ['git_push'], resources_off: ['*'] });
    await expectTold(guest, 3, 2, 0);
  });

  it('is not notified if an activation is refused or changes nothing', async () => {
    const guest = await attentive(door, { config: `active_toolsets = ["git_status"]\n${serversToml({ git })}` });
    const { client } = guest;
    expect((await activate(client, { tools_on: ['git_push', 'git_pusch'] })).isError).toBe(true);
    expect((await activate(client, {})).isError).toBe(true);
    expect((await activate(client, { tools_on: ['git_push'], tools_off: ['git_*'] })).isError).toBe(true);
    await activated(client, { tools_on: ['git_status'], tools_off: ['git_push'], resources_off: ['git_*'] });
    await activated(client, { tools_on: ['git_s*'] });
    await expectTold(guest, 0, 0, 0);
  });

  it('is notified once per list that a server changes', async () => {
    const guest = await attentive(door, { config: `active_toolsets = ["*"]\n${changing}` });
    const change = (tool: string, args: Record<string, unknown>) => callText(guest.client, `c_${tool}`, args);
    await change('add_tool', { name: 'x' });
    await waitFor(() => guest.changes('tools') === 1);
    await change('add_prompt', { name: 'x' });
    await waitFor(() => guest.changes('prompts') === 1);
    await change('change_resource', { name: 'changing://first', description: 'new' });
    // The description of a resource is part of the catalog too.
    await waitFor(() => guest.changes('resources') === 1 && guest.changes('tools') === 2);
    await change('add_template', { name: 'changing://new/{x}' });
    await waitFor(() => guest.changes('resources') === 2 && guest.changes('tools') === 3);
    await expectTold(guest, 3, 2, 1);
    expect(await templateUris(guest.client)).toContain('c_changing://new/{x}');
  });

  it('is notified once for a burst of changes, and not if a server announces a change without one', async () => {
    const guest = await attentive(door, { config: `active_toolsets = ["*"]\n${changing}` });
    await callText(guest.client, 'c_add_tool', { name: 'x', times: 50 });
    await waitFor(() => guest.changes('tools') === 1);
    await callText(guest.client, 'c_remove_tool', { name: 'was never there', times: 20 });
    await callText(guest.client, 'c_remove_prompt', { name: 'was never there', times: 20 });
    await expectTold(guest, 1, 0, 0);
  });

  it('is notified only of changes it can see: the schema of an inactive tool is in no list', async () => {
    const guest = await attentive(door, { config: `active_toolsets = ["c_add_*", "c_change_*"]\n${changing}` });
    // Inactive, but part of the catalog.
    await callText(guest.client, 'c_change_tool', { name: 'first', description: 'other words' });
    await waitFor(() => guest.changes('tools') === 1);
    // Inactive, and the description is unchanged.
    await callText(guest.client, 'c_change_tool', { name: 'first', description: 'other  words\n' });
    await callText(guest.client, 'c_change_resource', {
      name: 'changing://first',
      description: 'Resource changing://first',
    });
    await expectTold(guest, 1, 0, 0);
  });

  it('sees a tool that its server added while it was still being listed at startup', async () => {
    const config = serversToml({ g: `${process.execPath} ${growing}` });
    const { client } = await enter(door, { config });
    await waitFor(async () => (await catalogLines(client)).tools.includes('g_late - Tool late'));
  });

  it('is notified once when the configuration changes what is active, and keeps its own switches', async () => {
    const cwd = tempFolder();
    const config = (globs: string[]) => `active_toolsets = ${JSON.stringify(globs)}\n${serversToml({ git })}`;
    const guest = await attentive(door, { cwd, config: config(['git_status']), args: ['--log-level', 'info'] });
    writeFiles(cwd, { 'tools.toml': config(['git_push']) });
    await waitFor(() => guest.changes('tools') === 1);
    expect(await toolNames(guest.client)).toEqual(['git_push']);
    await activated(guest.client, { tools_off: ['git_push'], resources_on: ['git_log://1'] });
    writeFiles(cwd, { 'tools.toml': config(['git_*']) });
    await waitFor(() => guest.changes('tools') === 3);
    expect(await toolNames(guest.client)).toEqual(['git_status']);
    await expectTold(guest, 3, 1, 0);
    // The same configuration written differently changes nothing.
    writeFiles(cwd, { 'tools.toml': `# remark\n${config(['git_s*', 'git_p*', 'git_l*'])}` });
    await waitFor(() => guest.stderr().split('configuration: applied').length === 4);
    await expectTold(guest, 3, 1, 0);
  });
});

describe.each(doors)('while servers are starting, a client over %s', (door) => {
  const starting = (ms: number, wait: string) =>
    `start_wait = "${wait}"\nactive_toolsets = ["*"]\n${serversToml({
      quick: server('basic', '--tools', 'x'),
      slow: server('basic', '--tools', 'x', '--resources', 's://1', '--prompts', 'p', '--slow-start', ms),
    })}`;

  it('waits for its first list and gets the complete list', async () => {
    const guest = await enter(door, { config: starting(600, '20s'), ready: false });
    expect(await toolNames(guest.client)).toEqual(['quick_x', 'slow_x']);
    expect(await resourceUris(guest.client)).toEqual(['slow_s://1']);
    await expectTold(guest, 0, 0, 0);
  });

  it('gets a partial list after start_wait and is notified when the rest arrives', async () => {
    const guest = await enter(door, { config: starting(6000, '3s'), ready: false });
    expect(await toolNames(guest.client)).toEqual(['quick_x']);
    expect(await resourceUris(guest.client)).toEqual([]);
    await waitFor(() => guest.changes('tools') === 1 && guest.changes('resources') === 1);
    expect(await toolNames(guest.client)).toEqual(['quick_x', 'slow_x']);
    expect(await resourceUris(guest.client)).toEqual(['slow_s://1']);
    // Prompts had not been listed, so there was nothing to correct.
    await expectTold(guest, 1, 1, 0);
  });

  it('activates over the complete catalog, in request order', async () => {
    const { client } = await enter(door, {
      config: starting(1800, '20s').replace('active_toolsets = ["*"]', ''),
      ready: false,
    });
    if (isPipe(door)) {
      const [, called, names] = await Promise.all([
        activated(client, { tools_on: ['*'] }),
        callText(client, 'quick_x'),
        toolNames(client),
      ]);
      expect(called).toContain('"tool":"x"');
      expect(names).toEqual(['quick_x', 'slow_x']);
    } else {
      await activated(client, { tools_on: ['*'] });
      expect(await toolNames(client)).toEqual(['quick_x', 'slow_x']);
    }
  });

  it('does not reach a faster server under a name that belongs to a slower server listed first', async () => {
    const config = `active_toolsets = ["*"]\n${serversToml({
      a: server('basic', '--name', 'first', '--tools', 'b_x', '--resources', 'r://1', '--slow-start', 600),
      a_b: server('basic', '--name', 'second', '--tools', 'x,y', '--resources', 'r://1'),
      c: server('basic', '--name', 'third', '--tools', 'x', '--slow-start', 300),
    })}`;
    const { client } = await enter(door, { config, ready: false });
    const [mine, other, refused] = await Promise.all([
      callText(client, 'a_b_x'),
      callText(client, 'c_x'),
      client.readResource({ uri: 'r://1' }).catch((error: Error) => error.message),
    ]);
    expect(JSON.parse(mine)).toMatchObject({ server: 'first', tool: 'b_x' });
    expect(JSON.parse(other)).toMatchObject({ server: 'third', tool: 'x' });
    expect(refused).toContain('Several servers have "r://1"');
  });
});
