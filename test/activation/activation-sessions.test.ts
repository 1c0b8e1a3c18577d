/** The scope of a selection: over HTTP each session has its own, on stdio there is only the default one. */
import { describe, expect, it } from 'vitest';
import {
  activated,
  call,
  callText,
  catalogLines,
  enter,
  expectTold,
  type Guest,
  ownError,
  resourceUris,
  toolNames,
  visit,
} from '../support/doors.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { isWide } from '../support/wide.ts';

const config = `active_toolsets = ["git_status"]\n${serversToml({
  git: server('basic', '--name', 'git', '--tools', 'status,push,whoami', '--resources', 'log://1,log://2'),
})}`;

describe('two sessions', () => {
  it('activate different items without seeing each other’s', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visit(gateway), await visit(gateway)];
    await activated(one.client, { tools_on: ['git_push'], resources_on: ['git_log://1'] });
    await activated(two.client, { tools_on: ['git_whoami'], tools_off: ['git_status'], resources_on: ['git_log://2'] });
    expect(await toolNames(one.client)).toEqual(['git_status', 'git_push']);
    expect(await toolNames(two.client)).toEqual(['git_whoami']);
    expect(await resourceUris(one.client)).toEqual(['git_log://1']);
    expect(await resourceUris(two.client)).toEqual(['git_log://2']);
    expect((await catalogLines(one.client)).tools.map((line) => line.split(' ')[0])).toEqual([
      '*git_status',
      '*git_push',
      'git_whoami',
    ]);
    expect((await catalogLines(two.client)).tools.map((line) => line.split(' ')[0])).toEqual([
      'git_status',
      'git_push',
      '*git_whoami',
    ]);
  });

  it('can each call only what is active in their own selection', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visit(gateway), await visit(gateway)];
    await activated(one.client, { tools_on: ['git_push'] });
    await callText(one.client, 'git_push');
    expect(ownError(await call(two.client, 'git_push')).code).toBe('item_inactive');
    await activated(one.client, { tools_off: ['git_status'] });
    await callText(two.client, 'git_status');
  });

  it('are notified only of their own changes', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visit(gateway), await visit(gateway)];
    await activated(one.client, { tools_on: ['git_push'] });
    await expectTold(one, 1, 0, 0);
    await expectTold(two, 0, 0, 0);
  });

  it('share one process per server, regardless of what is active', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visit(gateway), await visit(gateway)];
    const pid = async ({ client }: Guest) => {
      await activated(client, { tools_on: ['git_whoami'] });
      return (JSON.parse(await callText(client, 'git_whoami')) as { pid: number }).pid;
    };
    expect(await pid(one)).toBe(await pid(two));
  });

  it('start from active_toolsets, regardless of what other sessions have activated', async () => {
    const gateway = await startHttp({ config });
    const one = await visit(gateway);
    await activated(one.client, { tools_on: ['*'] });
    await one.client.close();
    const two = await visit(gateway);
    expect(await toolNames(two.client)).toEqual(['git_status']);
  });

  it('are both notified when a server changes, each about its own lists', async () => {
    const gateway = await startHttp({ config: serversToml({ c: server('changing') }) });
    const [one, two] = [await visit(gateway), await visit(gateway)];
    await activated(one.client, { tools_on: ['*'], resources_on: ['*'] });
    await activated(two.client, { tools_on: ['c_first'] });
    await waitFor(() => one.changes('tools') === 1 && one.changes('resources') === 1 && two.changes('tools') === 1);
    await callText(one.client, 'c_change_tool', { name: 'first', description: 'new words' });
    await waitFor(() => one.changes('tools') === 2 && two.changes('tools') === 2);
    await callText(one.client, 'c_add_resource', { name: 'changing://new' });
    await waitFor(() => one.changes('tools') === 3 && two.changes('tools') === 3);
    // In both catalogs but in neither tool list: a pattern activates only the items that exist when it is given.
    await expectTold(one, 3, 1, 0);
    await expectTold(two, 3, 0, 0);
    expect(await resourceUris(one.client)).toEqual(['c_changing://first']);
  });

  it('are served concurrently without mixing', async () => {
    const gateway = await startHttp({ config });
    const guests = await Promise.all(Array.from({ length: 8 }, () => visit(gateway)));
    await Promise.all(
      guests.map(async ({ client }, i) => {
        for (let round = 0; round < (isWide ? 10 : 4); round++) {
          const on = (i + round) % 2 === 0;
          await activated(client, on ? { tools_on: ['git_push'] } : { tools_off: ['git_push'] });
          expect((await toolNames(client)).includes('git_push')).toBe(on);
          expect((await call(client, 'git_push')).isError === true).toBe(!on);
        }
      }),
    );
  });
});

describe('the selection on stdio', () => {
  it('is the default selection, and is reset to active_toolsets when the gateway restarts', async () => {
    const first = await enter('stdio', { config });
    await activated(first.client, { tools_on: ['git_push'] });
    expect(await toolNames(first.client)).toEqual(['git_status', 'git_push']);
    await first.client.close();
    const second = await enter('stdio', { cwd: first.cwd });
    expect(await toolNames(second.client)).toEqual(['git_status']);
  });
});
