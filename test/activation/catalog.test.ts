/** The catalog in the description of toolman_activate. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { activated, call, callText, catalogLines, doorsOf, enter, toolNames } from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const doors = doorsOf('catalog');

const all = 'active_toolsets = ["*"]\n';

/** A server whose tools t0, t1, … have these descriptions. */
function described(...descriptions: unknown[]) {
  const definitions = descriptions.map((description, i) => ({
    name: `t${i}`,
    ...(description !== undefined && { description }),
    inputSchema: { type: 'object' },
  }));
  const cwd = tempFolder({ 'tools.json': JSON.stringify(definitions) });
  return {
    cwd,
    config: `catalog = "full"\n${serversToml({ a: server('basic', '--raw-tools', join(cwd, 'tools.json')) })}`,
  };
}

describe.each(doors)('a catalog line over %s', (door) => {
  it('limits the description to 132 characters, regardless of their size in bytes', async () => {
    const chars = ['a', 'é', '漢', '😀', '\u{1f468}\u{200d}\u{1f469}', '\u0301'];
    const texts = chars.flatMap((char) => [131, 132, 133, 500].map((count) => `.${char.repeat(count)}`));
    const { client } = await enter(door, described(...texts));
    const { tools } = await catalogLines(client);
    expect(tools).toEqual(texts.map((text, i) => `a_t${i} - ${[...text].slice(0, 132).join('')}`));
    expect(tools.map((line) => [...line.slice(line.indexOf(' - ') + 3)].length)).toContain(132);
    // The tool definition itself is not truncated.
    await activated(client, { tools_on: ['a_t3'] });
    const { tools: listed } = await client.listTools();
    expect(listed[1]?.description).toBe(texts[3]);
  });

  it('collapses white space, and is just the name if there is no description', async () => {
    const { client } = await enter(
      door,
      described('Reads\n*a_t1 - all\r\n\r\n  of\u2028 it\t. ', '', undefined, ' \n\t ', `${'word \n '.repeat(60)}`),
    );
    const { tools } = await catalogLines(client);
    expect(tools).toEqual([
      'a_t0 - Reads *a_t1 - all of it .',
      'a_t1',
      'a_t2',
      'a_t3',
      `a_t4 - ${'word '.repeat(27).slice(0, 132)}`,
    ]);
  });

  it('exists for resources and templates too, but not for prompts', async () => {
    const offer = ['--tools', 't', '--resources', 'r://1', '--templates', 'r://{id}/{+rest}', '--prompts', 'p'];
    const { client } = await enter(door, { config: all + serversToml({ '': server('basic', ...offer) }) });
    expect(await catalogLines(client)).toEqual({
      tools: ['*t - Tool t'],
      resources: ['*r://1 - Resource r://1', '*r://{id}/{+rest} - Template r://{id}/{+rest}'],
    });
  });
});

describe.each(doors)('the catalog over %s', (door) => {
  it('follows what a server adds, changes and removes', async () => {
    const { client, changes } = await enter(door, { config: all + serversToml({ c: server('changing') }) });
    const lines = async (kind: 'tools' | 'resources', name: string) =>
      (await catalogLines(client))[kind].filter((line) => line.includes(name));
    await callText(client, 'c_add_tool', { name: 'new_one', description: 'Is new' });
    await waitFor(() => changes('tools') === 1);
    expect(await lines('tools', 'new_one')).toEqual(['*c_new_one - Is new']);
    await callText(client, 'c_change_tool', { name: 'new_one', description: 'Is\nnewer' });
    await waitFor(() => changes('tools') === 2);
    expect(await lines('tools', 'new_one')).toEqual(['*c_new_one - Is newer']);
    // The order matters: the server does not announce the removal, so it is noticed with the next announced change.
    await callText(client, 'c_remove_template', { name: 'changing://first/{id}', times: 0 });
    await callText(client, 'c_add_resource', { name: 'changing://new', description: 'A resource' });
    await waitFor(() => changes('resources') === 1);
    expect(await lines('resources', 'changing://')).toEqual([
      '*c_changing://first - Resource changing://first',
      '*c_changing://new - A resource',
    ]);
    await callText(client, 'c_remove_tool', { name: 'new_one' });
    await waitFor(async () => (await lines('tools', 'new_one')).length === 0);
    expect(await toolNames(client)).not.toContain('c_new_one');
  });

  it('drops the items of a crashed server and restores them unchanged when it comes back', async () => {
    const cwd = tempFolder({ up: '' });
    const config = serversToml({
      a: `[ -e up ] && exec ${server('crash')}`,
      b: server('basic', '--tools', 'x'),
    });
    const { client, changes } = await enter(door, { cwd, config });
    // A client that has not listed anything yet gets no notification.
    expect(await toolNames(client)).toEqual([]);
    await activated(client, { tools_on: ['a_ok', 'a_crash'] });
    const before = await catalogLines(client);
    expect(before.tools).toEqual(['*a_ok - Tool ok', '*a_crash - Tool crash', 'a_half - Tool half', 'b_x - Tool x']);
    const told = await waitFor(() => changes('tools') === 1 && 1);
    rmSync(join(cwd, 'up'));
    await call(client, 'a_crash');
    await waitFor(() => changes('tools') > told);
    expect(await catalogLines(client)).toEqual({ tools: ['b_x - Tool x'], resources: ['(none)'] });
    expect(await toolNames(client)).toEqual([]);
    writeFileSync(join(cwd, 'up'), '');
    await waitFor(() => changes('tools') > told + 1);
    expect(await catalogLines(client)).toEqual(before);
    expect(await toolNames(client)).toEqual(['a_ok', 'a_crash']);
    expect(changes('tools')).toBe(told + 2);
  });

  it('contains the items of every server, in configuration order', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
    const slowest = (i: number) => (8 - i) * 40;
    const config = serversToml(
      Object.fromEntries(names.map((name, i) => [name, server('basic', '--tools', 'b,a', '--slow-start', slowest(i))])),
    );
    const { client } = await enter(door, { config });
    const { tools } = await catalogLines(client);
    expect(tools).toEqual(names.flatMap((name) => [`${name}_b - Tool b`, `${name}_a - Tool a`]));
  });
});
