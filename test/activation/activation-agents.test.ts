/**
 * Without sessions a selection belongs to the agent and is shared by all of its clients. Over HTTP, the bearer token
 * identifies the agent.
 */
import { describe, expect, it } from 'vitest';
import {
  activated,
  call,
  callText,
  enter,
  expectTold,
  ownError,
  promptNames,
  resourceUris,
  toolNames,
  visit,
  visitModern,
} from '../support/doors.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { isWide } from '../support/wide.ts';

const config = `active_toolsets = ["git_status"]\n${serversToml({
  git: server('basic', '--name', 'git', '--tools', 'status,push,whoami', '--resources', 'log://1,log://2'),
})}`;

describe('two clients of one agent', () => {
  it('see and can call what either of them has activated', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visitModern(gateway), await visitModern(gateway)];
    expect(ownError(await call(two.client, 'git_push')).code).toBe('item_inactive');
    await activated(one.client, { tools_on: ['git_push'], resources_on: ['git_log://1'] });
    expect(await toolNames(two.client)).toEqual(['git_status', 'git_push']);
    expect(await resourceUris(two.client)).toEqual(['git_log://1']);
    await callText(two.client, 'git_push');
    await activated(two.client, { tools_off: ['git_status'] });
    expect(ownError(await call(one.client, 'git_status')).code).toBe('item_inactive');
  });

  it('are both notified, once per changed list', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await visitModern(gateway), await visitModern(gateway)];
    await activated(one.client, { tools_on: ['git_push'] });
    await expectTold(one, 1, 0, 0);
    await expectTold(two, 1, 0, 0);
    await activated(two.client, { resources_on: ['git_*'] });
    await expectTold(one, 2, 1, 0);
    await expectTold(two, 2, 1, 0);
  });

  it('are both notified when a server changes', async () => {
    const gateway = await startHttp({ config: `active_toolsets = ["*"]\n${serversToml({ c: server('changing') })}` });
    const [one, two] = [await visitModern(gateway), await visitModern(gateway)];
    await callText(one.client, 'c_add_prompt', { name: 'x' });
    await waitFor(() => one.changes('prompts') === 1 && two.changes('prompts') === 1);
    expect(await promptNames(two.client)).toContain('c_x');
    await expectTold(one, 0, 0, 1);
    await expectTold(two, 0, 0, 1);
  });

  it('lose no change when they activate at the same time', async () => {
    const tools = Array.from({ length: 8 }, (_, i) => `t${i}`);
    const gateway = await startHttp({ config: serversToml({ a: server('basic', '--tools', tools.join()) }) });
    const guests = await Promise.all(tools.map(() => visitModern(gateway)));
    await Promise.all(
      guests.map(async ({ client }, i) => {
        const name = `a_t${i}`;
        for (let round = 0; round < (isWide ? 10 : 4); round++) {
          const on = round % 2 === 0;
          await activated(client, on ? { tools_on: [name] } : { tools_off: [name] });
          expect((await toolNames(client)).includes(name)).toBe(on);
          expect((await call(client, name)).isError === true).toBe(!on);
        }
        if (i % 2 === 0) await activated(client, { tools_on: [name] });
      }),
    );
    for (const { client } of guests) expect((await toolNames(client)).sort()).toEqual(['a_t0', 'a_t2', 'a_t4', 'a_t6']);
  });
});

describe('the selection of an agent', () => {
  it('is kept when the agent reconnects', async () => {
    const gateway = await startHttp({ config });
    const one = await visitModern(gateway);
    await activated(one.client, { tools_on: ['git_push'] });
    await one.client.close();
    const two = await visitModern(gateway);
    expect(await toolNames(two.client)).toEqual(['git_status', 'git_push']);
  });

  it('is independent of the selections of sessions', async () => {
    const gateway = await startHttp({ config });
    const [agent, session] = [await visitModern(gateway), await visit(gateway)];
    await activated(agent.client, { tools_on: ['git_push'] });
    await activated(session.client, { tools_on: ['git_whoami'], tools_off: ['git_status'] });
    expect(await toolNames(agent.client)).toEqual(['git_status', 'git_push']);
    expect(await toolNames(session.client)).toEqual(['git_whoami']);
    await expectTold(agent, 1, 0, 0);
    await expectTold(session, 1, 0, 0);
    expect(await toolNames((await visit(gateway)).client)).toEqual(['git_status']);
  });

  it('is shared by clients with the same token and refused to clients without it', async () => {
    const gateway = await startHttp({ config, env: { BEARER_TOKEN: 'open-sesame' } });
    const bearer = { authorization: 'Bearer open-sesame' };
    const [one, two] = [await visitModern(gateway, bearer), await visitModern(gateway, bearer)];
    await activated(one.client, { tools_on: ['git_push'] });
    expect(await toolNames(two.client)).toEqual(['git_status', 'git_push']);
    await expectTold(two, 1, 0, 0);
    for (const authorization of ['', 'Bearer open-simsim'])
      await expect(visitModern(gateway, { authorization })).rejects.toMatchObject({ status: 401 });
  });

  it('is the default selection on stdio, and is reset to active_toolsets when the gateway restarts', async () => {
    const first = await enter('modern stdio', { config });
    await activated(first.client, { tools_on: ['git_push'] });
    expect(await toolNames(first.client)).toEqual(['git_status', 'git_push']);
    await first.client.close();
    const second = await enter('modern stdio', { cwd: first.cwd });
    expect(await toolNames(second.client)).toEqual(['git_status']);
  });
});
