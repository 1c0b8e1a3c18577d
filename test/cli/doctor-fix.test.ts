/** `toolgate doctor` finds what is wrong on disk, and `--fix` repairs what needs no decision. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/base/hash.ts';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

interface Finding {
  readonly level: string;
  readonly about: string;
  readonly message: string;
  readonly repairable?: boolean;
}

/** A project with these files, and a home with those. */
function project(files: Files = {}, inHome: Files = {}) {
  const [cwd, home] = [tempFolder(), tempFolder()];
  writeFiles(cwd, { 'tools.toml': serversToml({ up: server('basic') }), ...files });
  writeFiles(home, inHome);
  const run = (...args: string[]) => runCli(args, { cwd, env: { HOME: home, NO_COLOR: '1' } });
  const doctor = async (...args: string[]) => {
    const { code, stdout } = await run('doctor', '--json', ...args);
    return { code, findings: (JSON.parse(stdout) as { findings: Finding[] }).findings };
  };
  return { cwd, home, run, doctor, at: (path: string) => join(cwd, '.toolgate', path) };
}

/** What is found, repaired, and then fine. */
async function expectRepaired(
  doctor: (...args: string[]) => Promise<{ code: number | null; findings: Finding[] }>,
  about: string,
  problem: RegExp,
  fixed: RegExp,
  code = 1,
) {
  const found = await doctor();
  expect(found.findings).toContainEqual(
    expect.objectContaining({ about, message: expect.stringMatching(problem) as string, repairable: true }),
  );
  expect(found.code).toBe(code);
  const after = await doctor('--fix');
  expect(after.findings).toContainEqual({ level: 'ok', about, message: expect.stringMatching(fixed) as string });
  expect(after.code).toBe(0);
  expect((await doctor('--fix')).findings.filter(({ message }) => message.startsWith('fixed: '))).toEqual([]);
}

const dead = spawnSync(process.execPath, ['-e', '']).pid;

describe('toolgate doctor --fix', () => {
  it('removes the lock of a process that does not run any more, and no other lock', async () => {
    const { doctor, at } = project({
      '.toolgate/agents.json.lock': `${dead} ${hostname()} abc\n`,
      '.toolgate/toolsets/dev.json.lock': `${process.pid} ${hostname()} abc\n`,
    });
    // Its holder refreshes it.
    const later = new Date(Date.now() + 3_600_000);
    utimesSync(at('toolsets/dev.json.lock'), later, later);
    await expectRepaired(
      doctor,
      'data folder',
      /agents\.json\.lock is the lock of a process/,
      /^fixed: removed .*agents/,
    );
    expect(existsSync(at('agents.json.lock'))).toBe(false);
    expect(existsSync(at('toolsets/dev.json.lock'))).toBe(true);
  });

  it('removes the socket of a gateway that was killed, and not that of one that runs', async () => {
    const gateway = await startHttp({ config: serversToml({ up: server('basic') }) });
    const { cwd } = gateway;
    const folder = join(cwd, '.toolgate/run');
    const [running] = readdirSync(folder);
    const left = join(folder, `${running!.split('-')[0]}-${dead}-1.sock`);
    // A process that is killed leaves its socket.
    spawnSync(process.execPath, [
      '-e',
      `require('net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 9))`,
    ]);
    expect(existsSync(left)).toBe(true);
    const { stdout } = await runCli(['doctor', '--fix'], { cwd });
    expect(stdout).toContain(`fixed: removed ${left}, the socket of a gateway that does not run any more`);
    expect(readdirSync(folder)).toEqual([running]);
  });

  it.each([
    ['secrets', '.toolgate/secrets.enc', 0o644, 2],
    ['agents', '.toolgate/agents.json', 0o666, 1],
  ])('closes the file of %s to others', async (about, file, mode, code) => {
    const { cwd, doctor } = project({ [file]: '{"agents": []}' });
    chmodSync(join(cwd, file), mode);
    const found = await doctor();
    expect(found.code).toBe(code);
    expect(found.findings).toContainEqual(
      expect.objectContaining({
        about,
        repairable: true,
        message: expect.stringContaining('by others (mode 06') as string,
      }),
    );
    const { findings } = await doctor('--fix');
    expect(findings).toContainEqual(
      expect.objectContaining({
        about,
        message: expect.stringContaining('fixed: only you can read and write') as string,
      }),
    );
    expect(statSync(join(cwd, file)).mode & 0o777).toBe(0o600);
  });

  it('closes the trust of the user and the operator key to others', async () => {
    const { home, doctor } = project(
      {},
      { '.config/toolgate/operator.key': 'k'.repeat(40), '.config/toolgate/trust.json': '{}' },
    );
    chmodSync(join(home, '.config/toolgate/operator.key'), 0o644);
    chmodSync(join(home, '.config/toolgate/trust.json'), 0o622);
    const { findings } = await doctor('--fix', '--trust');
    const fixed = findings.filter(({ message }) => message.startsWith('fixed: only you'));
    expect(fixed.map(({ about }) => about)).toEqual(['operator key', 'trust']);
    for (const name of ['operator.key', 'trust.json'])
      expect(statSync(join(home, '.config/toolgate', name)).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['.toolgate/equipped.json', 2],
    ['.toolgate/names.json', 1],
    ['.toolgate/offers/abc.json', 1],
    ['.toolgate/approvals/abc.json', 2],
  ])('sets the damaged file %s aside', async (file, code) => {
    const { cwd, doctor } = project({ [file]: '{"half":' });
    await expectRepaired(
      doctor,
      'data folder',
      /is damaged \(it is not JSON\)/,
      /^fixed: .* set aside as .*\.damaged$/,
      code,
    );
    expect(readFileSync(join(cwd, `${file}.damaged`), 'utf8')).toBe('{"half":');
    writeFileSync(join(cwd, file), '{"other":');
    await doctor('--fix');
    expect(readFileSync(join(cwd, `${file}.damaged`), 'utf8')).toBe('{"half":');
    expect(readFileSync(join(cwd, `${file}.damaged-2`), 'utf8')).toBe('{"other":');
  });

  it('sets a damaged toolset and damaged trust aside', async () => {
    const { at, doctor, home } = project(
      { '.toolgate/toolsets/dev.json': '{"tools": 1}', '.toolgate/toolsets/fine.json': '{"tools": []}' },
      { '.config/toolgate/trust.json': 'x' },
    );
    const { findings } = await doctor('--fix', '--trust');
    expect(findings.filter(({ message }) => message.startsWith('fixed: ')).map(({ about }) => about)).toEqual([
      'trust',
      'toolsets',
    ]);
    expect(readdirSync(at('toolsets')).sort()).toEqual(['dev.json.damaged', 'fine.json']);
    expect(readdirSync(join(home, '.config/toolgate'))).toContain('trust.json.damaged');
  });

  it('never sets the tokens of agents aside, because the gateway would be open without them', async () => {
    const { at, doctor } = project({ '.toolgate/agents.json': '{"half":' });
    const { code, findings } = await doctor('--fix');
    expect(code).toBe(2);
    expect(findings.find(({ level }) => level === 'broken')).toMatchObject({
      about: 'agents',
      message: expect.stringContaining('is not a list of agents') as string,
    });
    expect(readFileSync(at('agents.json'), 'utf8')).toBe('{"half":');
  });

  it('removes the pins of what is gone, keeps the others, and keeps the old file', async () => {
    const { cwd, run, doctor } = project();
    const two = { up: server('basic', '--tools', 'a,b'), old: server('basic', '--tools', 'c') };
    writeFileSync(join(cwd, 'tools.toml'), serversToml(two));
    await run('lock', 'approve', '--yes');
    const before = readFileSync(join(cwd, 'tools.lock'), 'utf8');
    writeFileSync(join(cwd, 'tools.toml'), serversToml({ up: server('basic', '--tools', 'a') }));
    await expectRepaired(
      doctor,
      'tools.lock',
      /^it has pins of server "old", which the configuration does not have, tool "up\.b", which the server does not offer/,
      /^fixed: removed the pins of server "old"/,
    );
    const { servers } = JSON.parse(readFileSync(join(cwd, 'tools.lock'), 'utf8'));
    expect(Object.keys(servers)).toEqual(['up']);
    expect(Object.keys(servers.up.tools)).toEqual(['a']);
    const [backup] = readdirSync(join(cwd, '.toolgate/backup'));
    expect(readFileSync(join(cwd, '.toolgate/backup', backup!, 'tools.lock'), 'utf8')).toBe(before);
  });

  it('says so if something cannot be repaired, and leaves it as it is', async () => {
    const { cwd, run, doctor } = project({ '.toolgate/backup': 'no folder' });
    await run('lock', 'approve', '--yes');
    const before = readFileSync(join(cwd, 'tools.lock'), 'utf8');
    writeFileSync(join(cwd, 'tools.toml'), serversToml({ other: server('basic') }));
    const { code, findings } = await doctor('--fix');
    expect(code).toBe(1);
    expect(findings.find(({ about }) => about === 'tools.lock')).toMatchObject({
      level: 'warning',
      message: expect.stringMatching(/^it has pins of server "up".* It could not be repaired: E/) as string,
    });
    expect(readFileSync(join(cwd, 'tools.lock'), 'utf8')).toBe(before);
  });

  it('changes nothing without --fix', async () => {
    const { cwd, doctor, at } = project({
      '.toolgate/toolsets/dev.json': '{',
      '.toolgate/x.json.lock': `${dead} ${hostname()} abc\n`,
    });
    utimesSync(at('x.json.lock'), 1, 1);
    await doctor();
    expect(readFileSync(at('toolsets/dev.json'), 'utf8')).toBe('{');
    expect(existsSync(at('x.json.lock'))).toBe(true);
    expect(existsSync(join(cwd, '.toolgate/backup'))).toBe(false);
  });
});

it('doctor warns of a running gateway of another version', async () => {
  const { cwd, home, doctor } = project({}, { '.config/toolgate/operator.key': 'k'.repeat(40) });
  chmodSync(join(home, '.config/toolgate/operator.key'), 0o600);
  const folder = join(cwd, '.toolgate/run');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = sha256(join(cwd, 'tools.toml')).slice(0, 12);
  const other = createServer((_, response) =>
    response.end(JSON.stringify({ version: '0.0.1', pid: 7, started: new Date().toISOString(), servers: [] })),
  );
  await new Promise<void>((resolve) => other.listen(join(folder, `${name}-7-1.sock`), resolve));
  const { code, findings } = await doctor();
  await new Promise((resolve) => other.close(resolve));
  expect(code).toBe(1);
  expect(findings).toContainEqual({
    level: 'warning',
    about: 'running gateway',
    message: expect.stringMatching(
      /^a gateway of version 0\.0\.1 runs with this configuration \(process 7\)/,
    ) as string,
  });
});
