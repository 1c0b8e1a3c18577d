/** Every change goes through one queue: what it costs, the order in which changes run, and who learns of failures. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FULL_SCOPE } from '../../src/calls/caller.ts';
import { programIdentity } from '../../src/calls/identity.ts';
import { type Config, configFromValue, followConfig, type Gateway, loadConfig, openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway, openGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { toml } from '../support/running-gateway.ts';
import { server, serverEntry } from '../support/server.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

const entry = (namespace: string) => ({
  namespace,
  command: server('basic', '--tools', 'whoami', '--name', namespace),
});
const only = (...namespaces: string[]) => toml(namespaces.map(entry), { controls: [] });
const tool = 'export const say = { description: "Say", inputSchema: { type: "object" }, execute: () => "hi" };\n';
const env = { MANAGER_INTERNAL_TOKEN: 'of-the-manager' };

interface Open {
  readonly gateway: Gateway;
  readonly cwd: string;
  /** Events since the gateway is up: the name of each, with the message if it is about the configuration. */
  readonly heard: string[];
  edit(text: string): void;
  catalogs(): number;
}

/** A gateway that reads `tools.toml`, after every edit unless told otherwise. All of its servers are up. */
async function open(text: string, files: Files = {}, watches = true): Promise<Open> {
  const cwd = tempFolder({ 'tools.toml': text, ...files });
  const options = { cwd, env };
  const gateway = await openGateway(await loadConfig(options), { audit: false });
  atEnd(() => gateway.close());
  if (watches) atEnd(followConfig(gateway, options).close);
  else gateway.addApplier({ name: 'the test', load: () => loadConfig(options) });
  await gateway.tried();
  // Work that is still pending from the start is not counted.
  await gateway.change({});
  const heard: string[] = [];
  gateway.events.listen((name) => heard.push(name));
  gateway.events.on('config', ({ message }) => heard.push(message));
  return {
    gateway,
    cwd,
    heard,
    edit: (next) => writeFileSync(join(cwd, 'tools.toml'), next),
    catalogs: () => heard.filter((name) => name === 'catalog').length,
  };
}

const callerOf = (agent: string) => ({
  identity: programIdentity(agent),
  scope: FULL_SCOPE,
  door: 'local' as const,
});

const names = ({ catalog }: Gateway) => [...catalog.entries.tool.keys()];
const pids = (gateway: Gateway) => gateway.statuses().map(({ key, pid }) => `${key} ${pid}`);

describe('an edit of the configuration', () => {
  it.each([
    ['a new server', entry('b')],
    // Its last offer is on disk, under the same command: its names are known before it is up.
    ['a server that was known before', { ...entry('a'), namespace: 'b' }],
  ])('that adds %s builds one catalog, and a second one when the server is up', async (_, added) => {
    const { gateway, edit, catalogs } = await open(only('a'));
    const { version } = gateway.catalog;
    edit(toml([entry('a'), added], { controls: [] }));
    await waitFor(() => names(gateway).includes('b_whoami'));
    await gateway.tried();
    await sleep(50);
    expect([catalogs(), gateway.catalog.version - version]).toEqual([2, 2]);
  });

  it('of a comment or whitespace builds no catalog, restarts nothing and keeps every view', async () => {
    const { gateway, edit, heard, catalogs } = await open(only('a'));
    const { config, catalog } = gateway;
    const [caller, before] = [gateway.join(callerOf('x')), pids(gateway)];
    const view = caller.view();
    edit(`# a remark\n\n${only('a')}\n  \n`);
    await waitFor(() => heard.includes('nothing changed'));
    expect(catalogs()).toBe(0);
    expect([gateway.config === config, gateway.catalog === catalog, caller.view() === view]).toEqual([
      true,
      true,
      true,
    ]);
    expect(pids(gateway)).toEqual(before);
  });

  it('together with a change in a folder builds only one catalog', async () => {
    const files = { '.toolgate/tools/f/say.ts': tool };
    const { gateway, cwd, edit, catalogs } = await open(only('a', 'b'), files);
    expect(names(gateway)).toEqual(['a_whoami', 'b_whoami', 'f_say']);
    rmSync(join(cwd, '.toolgate/tools/f'), { recursive: true });
    edit(only('a'));
    await gateway.change({ config: 'file' });
    expect(names(gateway)).toEqual(['a_whoami']);
    // The file watchers of both notice it too, and find nothing left to do.
    await sleep(800);
    expect([names(gateway), catalogs()]).toEqual([['a_whoami'], 1]);
  });

  it('that follows another one wins, whichever file is read faster', async () => {
    const { gateway, edit } = await open(only('a'));
    for (const last of ['b', 'c', 'd']) {
      edit(only('a', 'x'));
      const first = gateway.change({ config: 'file' });
      edit(only('a', last));
      await Promise.all([first, gateway.change({ config: 'file' })]);
      expect(gateway.config.servers.map(({ key }) => key)).toEqual(['a', last]);
    }
  });

  it('that is still being read does not undo a configuration that a program applies meanwhile', async () => {
    const { gateway, cwd, edit } = await open(only('a'));
    edit(only('a', 'from-the-file'));
    const reading = gateway.change({ config: 'file' });
    const report = gateway.apply(
      configFromValue({ servers: { applied: serverEntry('basic') }, controls: [] }, { cwd, env }),
    );
    expect(report).toEqual({ started: ['applied'], replaced: [], stopped: ['a'], kept: [] });
    await reading;
    expect(gateway.config.servers.map(({ key }) => key)).toEqual(['applied']);
  });
});

describe('a program that embeds the gateway', () => {
  it('changes nothing and causes no event by applying an equal configuration', async () => {
    const { gateway, heard } = await open(only('a', 'b'));
    const { config } = gateway;
    expect(gateway.apply({ ...config, servers: config.servers.map((one) => ({ ...one })) })).toEqual({
      started: [],
      replaced: [],
      stopped: [],
      kept: ['a', 'b'],
    });
    expect([gateway.config === config, heard]).toEqual([true, []]);
  });

  it('can name other folders, which are served after a queued scan', async () => {
    const { gateway, cwd } = await open('controls = []\n', { 'tools/say.ts': tool });
    const value = { controls: [], servers: { mine: { folder: join(cwd, 'tools') } } };
    gateway.apply(configFromValue(value, { cwd, env }));
    await gateway.change({});
    await gateway.tried();
    expect(names(gateway)).toEqual(['mine_say']);
  });
});

describe('a list_changed notification of a server', () => {
  it('builds no catalog if the list is the same', async () => {
    const { gateway, catalogs } = await open(toml([{ namespace: 'f', command: server('flood') }], { controls: [] }));
    const { catalog } = gateway;
    const { isError } = await gateway.call('f_flood', { changed: 5 });
    expect(isError).not.toBe(true);
    await sleep(500);
    expect([catalogs(), gateway.catalog === catalog]).toEqual([0, true]);
  });
});

describe('a part of the gateway that fails to apply a change', () => {
  it('is named in the report, the log and the /reload reply; other parts apply it, and it is retried', async () => {
    const { gateway, edit, heard } = await open(only('a'), {}, false);
    const failures: string[] = [];
    gateway.events.on('failure', ({ where, error }) => failures.push(`${where}: ${(error as Error).message}`));
    const seen: Config[] = [];
    let isBroken = true;
    gateway.addApplier({
      name: 'a broken part',
      apply() {
        if (isBroken) throw new Error('it is broken');
      },
    });
    gateway.addApplier({ name: 'another', apply: (config) => seen.push(config) });
    const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: 'of-the-client' });
    atEnd(() => door.close());
    const headers = { authorization: 'Bearer of-the-client', 'x-manager-token': 'of-the-manager' };
    const reload = async () =>
      (await fetch(`http://127.0.0.1:${door.port}/reload`, { method: 'POST', headers })).json();

    edit(only('a', 'b'));
    expect(await reload()).toEqual({
      reloaded: true,
      namespaces: ['a', 'b'],
      workers_restarted: [],
      deps_synced: [],
      problems: [{ source: 'a broken part', message: 'it is broken' }],
    });
    expect(failures).toEqual(['change of a broken part: it is broken']);
    expect(names(gateway)).toEqual(['a_whoami', 'b_whoami']);
    expect(seen).toEqual([gateway.config]);

    isBroken = false;
    expect(await reload()).not.toHaveProperty('problems');
    expect(seen).toHaveLength(2);
    expect(await reload()).not.toHaveProperty('problems');
    expect(seen).toHaveLength(2);

    edit('servers = [');
    expect(await reload()).toMatchObject({
      problems: [{ source: 'configuration', message: expect.stringContaining('tools.toml:1') }],
    });
    expect(heard.at(-2)).toContain('the new one is refused');
  });

  it('does not keep other callers from being notified', async () => {
    const gateway = createGateway(configFromValue({ controls: [] }, { cwd: tempFolder(), env }), { audit: false });
    atEnd(() => gateway.close());
    await gateway.tried();
    let told = 0;
    gateway.join({
      ...callerOf('x'),
      changed() {
        throw new Error('gone');
      },
    });
    gateway.join({ ...callerOf('y'), changed: () => told++ });
    gateway.apply(configFromValue({ controls: ['activate'] }, { cwd: tempFolder(), env }));
    expect(told).toBe(1);
  });
});

it('a problem in a folder is reported once, to listeners that were added at the start', async () => {
  const cwd = tempFolder({ 'tools.toml': 'controls = []\n', '.toolgate/tools/not a name/say.ts': tool });
  const gateway = await openGateway(await loadConfig({ cwd, env }), { audit: false });
  atEnd(() => gateway.close());
  const notes: string[] = [];
  gateway.events.on('note', ({ message }) => notes.push(message));
  const { problems } = await gateway.change({ folders: true });
  await gateway.change({ folders: true });
  writeFiles(cwd, { '.toolgate/tools/fine/say.ts': tool });
  await gateway.change({ folders: true });
  expect(notes.filter((message) => message.includes('"not a name"'))).toEqual(problems.map(({ message }) => message));
});
