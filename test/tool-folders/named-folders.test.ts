/** Folders of tools named in the configuration: served as their entries say, from any location. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { passMidnight } from '../support/midnight.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const tool = (name: string, body: string) => `export const ${name} = {
  description: 'Tool ${name}',
  inputSchema: { type: 'object' },
  async execute(input: any, ctx: any) { ${body} },
};
`;
const files = {
  'loud/shout.ts': tool('shout', 'return `${process.env.FROM_FILE} ${process.env.FROM_ENTRY} ${process.env.LOUD}`;'),
  'loud/wait.ts': tool('wait', 'await new Promise((done) => setTimeout(done, input.ms)); return "waited";'),
  'loud/tooldock.yaml': 'description: From the file\nenv:\n  FROM_FILE: file\n  LOUD: file\n',
  '.toolgate/tools/dropped/a.ts': tool('a', 'return "a";'),
  '.toolgate/tools/renamed/b.ts': tool('b', 'return "b";'),
  '.toolgate/tools/off/c.ts': tool('c', 'return "c";'),
  '.toolgate/tools/empty/notes.md': 'nothing',
};
const config = `controls = []
folders.timeout = "20s"
[servers.loud]
folder = "loud"
env = { FROM_ENTRY = "entry", LOUD = "entry" }
timeout = "1500ms"
required = true
tools.shout = { calls_per_day = 3 }
[servers.Other]
folder = ".toolgate/tools/renamed"
description = "From the entry"
[servers.off]
folder = ".toolgate/tools/off"
enabled = false
`;

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config, cwd: tempFolder(files), args: ['--log-level', 'info'] });
});

const configure = (text: string) => replaceFile(gateway.cwd, text);

type Client = Awaited<ReturnType<HttpGateway['connect']>>['client'];
const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).sort();
const text = async (client: Client, name: string, args: Record<string, unknown> = {}) =>
  ((await client.callTool({ name, arguments: args })).content as { text: string }[])[0]!.text;
const served = ['Other_b', 'dropped_a', 'loud_shout', 'loud_wait'];

describe('folders named in the configuration', () => {
  it('are served together with those of the data folder, each once, unless disabled', async () => {
    const { client } = await gateway.connect();
    expect(await names(client)).toEqual(served);
    expect(await text(client, 'Other_b')).toBe('b');
    expect((await fetch(`${gateway.origin}/ready`)).status).toBe(200);
  });

  it('get the variables of their metadata, overridden by those of their entry, and the limits of the entry', async () => {
    await passMidnight();
    const { client } = await gateway.connect();
    for (let i = 0; i < 3; i++) expect(await text(client, 'loud_shout')).toBe('file entry entry');
    expect(await text(client, 'loud_shout')).toContain('"code":"rate_limited"');
    expect(await text(client, 'loud_wait', { ms: 20 })).toBe('waited');
    expect(await text(client, 'loud_wait', { ms: 20_000 })).toContain('"code":"execution_timeout"');
  });

  it('are namespaces of their own, even if empty', async () => {
    for (const [namespace, expected] of Object.entries({ loud: ['shout', 'wait'], Other: ['b'], empty: [] })) {
      const { client } = await gateway.connect({ path: `/ns/${namespace}/mcp` });
      expect(await names(client)).toEqual(expected);
    }
    for (const namespace of ['off', 'renamed', 'loudly'])
      await expect(gateway.connect({ path: `/ns/${namespace}/mcp` })).rejects.toThrow(/404|no namespace/);
  });

  it('follow edits of the folder and of the configuration', async () => {
    const { client } = await gateway.connect();
    writeFileSync(join(gateway.cwd, 'loud/more.ts'), tool('more', 'return "more";'));
    await waitFor(async () => (await names(client)).includes('loud_more'));
    mkdirSync(join(gateway.cwd, 'late'));
    writeFileSync(join(gateway.cwd, 'late/d.ts'), tool('d', 'return "d";'));
    configure(`${config.replace('enabled = false', '')}[servers.late]\nfolder = "late"\n`);
    await waitFor(
      async () => (await names(client)).includes('late_d') && (await names(client)).includes('off_c'),
      10_000,
    );
    configure(config);
    rmSync(join(gateway.cwd, 'loud/more.ts'));
    await waitFor(async () => (await names(client)).join() === served.join());
    expect(await text(client, 'dropped_a')).toBe('a');
  });
});

it('folders named in the configuration are in the first tool list on stdio', async () => {
  const { client } = await startStdio({ config, cwd: tempFolder(files) });
  expect(await names(client as Client)).toEqual(served);
});

describe('folders named in the configuration, on the command line', () => {
  const toolgate = (cwd: string, args: string[]) => runCli(args, { cwd });

  it('are listed with their files, and can be deleted only if they are in the data folder', async () => {
    const cwd = tempFolder({ ...files, 'tools.toml': config });
    const { stdout } = await toolgate(cwd, ['namespaces']);
    expect(stdout.split('\n').map((line) => line.split(/\s+/, 2).join(' '))).toEqual([
      'dropped new',
      'empty empty',
      'loud new',
      'Other new',
      '',
    ]);
    expect((await toolgate(cwd, ['namespaces', 'delete', 'loud', '--yes'])).stderr).toContain(
      'remove its entry "loud"',
    );
    expect((await toolgate(cwd, ['namespaces', 'delete', 'Other', '--yes'])).stdout).toBe('Deleted "Other".\n');
  });

  it('show their isolation, and do not start if isolation is required but unavailable', async () => {
    const cwd = tempFolder({
      'loud/a.ts': tool('a', 'return "a";'),
      'tools.toml': '[servers.loud]\nfolder = "loud"\n',
    });
    const list = async (options: Partial<Parameters<typeof runCli>[1]> = {}) =>
      JSON.parse((await runCli(['list', 'servers', '--json'], { cwd, ...options })).stdout) as Record<
        string,
        unknown
      >[];
    const level = (await isWithoutIsolation()) ? 'process' : 'bubblewrap';
    expect(await list()).toMatchObject([{ key: 'loud', kind: 'folder', state: 'up', isolation: level }]);
    writeFileSync(join(cwd, 'tools.toml'), '[servers.loud]\nfolder = "loud"\nisolation = "off"\n');
    expect(await list()).toMatchObject([{ state: 'up', isolation: 'process' }]);
    writeFileSync(join(cwd, 'tools.toml'), '[folders]\nisolation = "required"\n[servers.loud]\nfolder = "loud"\n');
    // With a PATH that does not contain bubblewrap.
    const programs = tempFolder();
    symlinkSync(process.execPath, join(programs, 'node'));
    const PATH = [programs, dirname(process.execPath)].filter((one) => !one.startsWith('/usr')).join(delimiter);
    // As a process, because this one knows already that bubblewrap works.
    const [without] = await list({ env: { PATH }, process: true });
    expect(without).toMatchObject({ state: 'down', isolation: 'process' });
    expect(without!.detail).toContain(
      'isolation is "required", but bubblewrap does not work here (it is not installed). Install bubblewrap, or set',
    );
  });
});
