/** An edited, renamed or removed toolset reaches everybody who has it: their lists, their calls and a notification. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { logged, replaceFile } from '../support/running-gateway.ts';
import { control, equippedNames, refs, THREE, toolsetsToml } from '../support/toolsets.ts';

const written = (...tools: string[]) =>
  toolsetsToml(THREE, tools.length === 0 ? '' : `[toolsets.dev]\ntools = ${JSON.stringify(tools)}\n`);
const WRITTEN = written('git.status', 'git.log');

type Holder = Awaited<ReturnType<HttpGateway['connect']>> | Awaited<ReturnType<typeof connectModernHttp>>;

/** Clients of both eras that have the toolset `dev`: equipped, or by the URL, the query or a header. */
async function holders(gateway: HttpGateway): Promise<Map<string, Holder>> {
  const { origin } = gateway;
  const equipping = { session: await gateway.connect(), modern: await gateway.connectModern() };
  for (const { client } of Object.values(equipping)) await control(client, 'equip-toolset', { name: 'dev' });
  const all = new Map<string, Holder>([
    ['a session that equipped it', equipping.session],
    ['a client without a session that equipped it', equipping.modern],
    ['a session at its URL', await gateway.connect({ path: '/mcp/t/dev' })],
    ['a client without a session at its URL', await connectModernHttp(`${origin}/mcp/t/dev`)],
    ['a session with the query', await gateway.connect({ path: '/mcp?toolset=dev' })],
    ['a session with the header', await gateway.connect({ headers: { 'x-toolset': 'dev' } })],
    ['a client without a session with the header', await connectModernHttp(`${origin}/mcp`, { 'x-toolset': 'dev' })],
  ]);
  for (const { client } of all.values()) expect(await equippedNames(client)).toEqual(['git_status', 'git_log']);
  return all;
}

/** Runs `act`, and expects that each client is told once, has these tools and cannot call `git_log`. */
async function expectTold(all: ReadonlyMap<string, Holder>, names: readonly string[], act: () => unknown) {
  const before = new Map([...all].map(([who, { changes }]) => [who, changes('tools')]));
  await act();
  for (const [who, { client, changes }] of all) {
    await waitFor(() => changes('tools') > before.get(who)!).catch(() => expect.fail(`${who} was not told`));
    if (names.length > 0) expect(await equippedNames(client), who).toEqual(names);
    const called = await client.callTool({ name: 'git_log', arguments: {} }).catch((error: unknown) => String(error));
    expect(JSON.stringify(called), who).toMatch(/item_inactive|404|There is no toolset/);
  }
  for (const [who, { changes }] of all) expect(changes('tools'), who).toBe(before.get(who)! + 1);
}

describe('a toolset of the configuration', () => {
  it('that is edited reaches everybody who has it, once', async () => {
    const gateway = await startHttp({ config: WRITTEN });
    const all = await holders(gateway);
    await expectTold(all, ['git_status'], () => replaceFile(gateway.cwd, written('git.status')));
    await expectTold(all, ['git_status', 'docker_ps'], () =>
      replaceFile(gateway.cwd, written('git.status', 'docker.ps')),
    );
  });

  it('that is removed leaves them without its tools, and they have it again when it is back', async () => {
    const gateway = await startHttp({ config: WRITTEN });
    const all = await holders(gateway);
    await expectTold(all, [], () => replaceFile(gateway.cwd, written()));
    const at = (who: string) => all.get(who)!.client;
    expect(await equippedNames(at('a session at its URL'))).toEqual([]);
    expect(await equippedNames(at('a session that equipped it'))).toEqual([]);
    expect(await control(at('a session that equipped it'), 'get-active-toolset')).toMatchObject({
      equipped: false,
      warnings: [expect.stringContaining('The toolset "dev" was equipped, but it does not exist any more')],
    });
    await expectTold(all, ['git_status'], () => replaceFile(gateway.cwd, written('git.status')));
  });
});

describe('a saved toolset', () => {
  const start = async () => {
    const files = { '.toolgate/toolsets/dev.json': printed('git.status', 'git.log') };
    const gateway = await startHttp({ config: toolsetsToml(THREE), files });
    return { gateway, all: await holders(gateway), file: join(gateway.cwd, '.toolgate/toolsets/dev.json') };
  };
  const printed = (...names: string[]) => JSON.stringify({ name: 'dev', tools: refs(...names) });

  it('that is edited or deleted by hand reaches everybody who has it, once', async () => {
    const { all, file } = await start();
    await expectTold(all, ['git_status'], () => writeFileSync(file, printed('git.status')));
    await expectTold(all, [], () => rmSync(file));
  });

  it('that is damaged stays as it was, which the log says', async () => {
    const { gateway, all, file } = await start();
    const before = new Map([...all].map(([who, { changes }]) => [who, changes('tools')]));
    writeFileSync(file, '{"name": "dev", "tools": [');
    await logged(gateway, 'dev.json is not a toolset');
    for (const [who, { client, changes }] of all) {
      expect(await equippedNames(client), who).toEqual(['git_status', 'git_log']);
      expect(changes('tools'), who).toBe(before.get(who));
    }
    await expectTold(all, ['git_status'], () => writeFileSync(file, printed('git.status')));
  });

  it('that is edited or deleted with the command line reaches everybody who has it, once', async () => {
    const { gateway, all } = await start();
    const { cwd } = gateway;
    await expectTold(all, ['git_status'], () => runCli(['toolsets', 'edit', 'dev', '--remove', 'git.log'], { cwd }));
    await expectTold(all, [], () => runCli(['toolsets', 'delete', 'dev', '--yes'], { cwd }));
  });

  it('that a client deletes is gone for the others too', async () => {
    const { gateway, all } = await start();
    const { client } = await gateway.connect();
    await expectTold(all, [], () => control(client, 'delete-toolset', { name: 'dev', confirm: true }));
  });
});

it('an implicit toolset does not take the place of a removed toolset of the same name', async () => {
  const config = (more: string) => toolsetsToml(THREE, more);
  const gateway = await startStdio({ config: config('[toolsets.git]\ntools = ["git.status"]\n') });
  const { client, cwd, changes } = gateway;
  await control(client, 'equip-toolset', { name: 'git' });
  expect(await equippedNames(client)).toEqual(['git_status']);
  const before = changes('tools');
  replaceFile(cwd, config(''));
  await waitFor(() => changes('tools') > before);
  expect(await equippedNames(client)).toEqual([]);
});
