/** Paged lists of servers: all pages are read, but not endlessly. */
import { describe, expect, it } from 'vitest';
import { runDoctor } from '../support/doctor.ts';
import { startStdio } from '../support/gateway.ts';
import { callText, logged, timed, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

it('reads every page of all four lists, in order', async () => {
  const command = server('paged', '--pages', 7, '--per-page', 3);
  const { client } = await startStdio({ config: toml([{ namespace: 'p', command }]) });
  const numbers = Array.from({ length: 21 }, (_, n) => n);
  expect(await toolNames(client)).toEqual(numbers.map((n) => `p_item_${n}`));
  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual(numbers.map((n) => `p_paged://item/${n}`));
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(
    numbers.map((n) => `p_paged://template/${n}/{id}`),
  );
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(numbers.map((n) => `p_item_${n}`));
  expect(await callText(client, 'p_item_20')).toBe('item_20');
});

describe('a list of a server without an end', () => {
  const repeating = { namespace: 'again', command: server('paged', '--repeat-cursor', '--only', 'tools') };
  const endless = {
    namespace: 'endless',
    command: server('paged', '--endless', '--per-page', 1, '--only', 'tools'),
  };

  it('is cut off when a cursor repeats, and logged', async () => {
    const gateway = await startStdio({ config: toml([repeating]) });
    expect(await toolNames(gateway.client)).toEqual(['again_item_0', 'again_item_1']);
    const line = await logged(gateway, 'gave the cursor "again" twice');
    expect(line).toMatchObject({ level: 'warn', source: 'again' });
    expect(await callText(gateway.client, 'again_item_1')).toBe('item_1');
  });

  it('is cut off after 1,000 pages, which are kept, and logged', async () => {
    const gateway = await startStdio({ config: toml([endless], { start_wait: '20s' }) });
    const { value } = await timed(toolNames(gateway.client));
    expect(value).toHaveLength(1000);
    expect(value.at(-1)).toBe('endless_item_999');
    const line = await logged(gateway, 'tools/list has more than 1000 pages');
    expect(line).toMatchObject({ level: 'warn', source: 'endless' });
  });

  it('is a warning in the doctor', async () => {
    const { code, findings } = await runDoctor(toml([repeating, endless]));
    expect(code).toBe(1);
    const warnings = findings.filter(({ level }) => level === 'warning');
    expect(warnings).toContainEqual(
      expect.objectContaining({ about: 'again', message: expect.stringContaining('gave the cursor "again" twice') }),
    );
    expect(warnings).toContainEqual(
      expect.objectContaining({ about: 'endless', message: expect.stringContaining('more than 1000 pages') }),
    );
  });
});
