/** `sandbox` of a server: what its program sees, and what becomes of the processes that it starts. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { running, waitFor } from '../support/processes.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

/** A server with one tool, `run`, which runs a shell command and answers with what it printed. */
const SERVER = `import { execFileSync, execSync } from 'node:child_process';
import { createInterface } from 'node:readline';
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
const run = (line) => { try { return execSync(line, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return 'failed'; } };
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
  else if (method === 'tools/list') say(id, { tools: [{ name: 'run', inputSchema: { type: 'object' } }] });
  else if (method === 'tools/call') say(id, { content: [{ type: 'text', text: run(params.arguments.line).trim() }] });
  else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n');
});
`;

describe.skipIf(await isWithoutIsolation())('a server in a sandbox', () => {
  let cwd: string;
  let run: (line: string) => Promise<string>;
  let stop: (how: 'SIGKILL') => void;
  beforeAll(async () => {
    cwd = tempFolder({
      'program/server.mjs': SERVER,
      'notes/a.txt': 'a note',
      'out/keep.txt': '',
      'private/b.txt': 'private',
      '.toolgate/secrets.enc': 'sealed',
      'home/c.txt': 'of the user',
    });
    const config = `controls = []
[servers.s]
command = "node"
args = ["program/server.mjs"]
env = { DECLARED = "yes" }
sandbox = { read = ["program", "notes"], write = ["out"], network = false }
[servers.w]
command = "node"
args = ["program/server.mjs"]
sandbox = { write = ["."] }
`;
    const env = { BEARER_TOKEN: undefined, OPERATOR_SECRET: 'not-for-servers', HOME: join(cwd, 'home') };
    const gateway = await startStdio({ config, cwd, env });
    run = (line) => callText(gateway.client, 's_run', { line });
    runWide = (line) => callText(gateway.client, 'w_run', { line });
    stop = (how) => process.kill(gateway.pid, how);
  }, 60_000);
  let runWide: (line: string) => Promise<string>;

  it('reads and writes what its entry lists, and sees nothing else', async () => {
    expect(await run('cat notes/a.txt')).toBe('a note');
    expect(await run('echo new > out/new.txt')).toBe('');
    expect(readFileSync(join(cwd, 'out/new.txt'), 'utf8')).toBe('new\n');
    for (const line of [
      'echo x > notes/a.txt',
      'echo x > program/server.mjs',
      'cat private/b.txt',
      'cat tools.toml',
      'cat .toolgate/secrets.enc',
      `cat ${cwd}/home/c.txt`,
      'cat /etc/shadow',
      `cat ${import.meta.filename}`,
    ])
      expect([line, await run(line)]).toEqual([line, 'failed']);
  });

  it('gets the variables that its entry declares, and none of the gateway', async () => {
    const env = await run('env');
    expect(env).toContain('DECLARED=yes');
    expect(env).not.toMatch(/OPERATOR_SECRET|not-for-servers|VITEST/);
  });

  it('has no network if its entry says so, no capabilities, and no processes of others', async () => {
    expect(await run('grep -c : /proc/net/dev')).toBe('1');
    expect(await run('grep CapEff /proc/self/status')).toMatch(/0{16}$/);
    expect(Number(await run('ls -d /proc/[0-9]* | wc -l'))).toBeLessThan(8);
  });

  it('does not see the configuration and the data folder in a folder that it may write', async () => {
    expect(await runWide('echo x > mine.txt && cat notes/a.txt')).toBe('a note');
    expect(await runWide('cat tools.toml')).toBe('failed');
    expect(await runWide('echo x > tools.toml')).toBe('failed');
    expect(await runWide('mv mine.txt tools.toml')).toBe('failed');
    expect(await runWide('ls -A .toolgate')).toBe('');
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8')).toContain('[servers.s]');
  });

  it('takes everything with it when the gateway is killed, also with a session and an environment of its own', async () => {
    const name = `8765${process.pid % 10_000}.5`;
    await run(`(setsid env -i sleep ${name} >/dev/null 2>&1 &)`);
    await waitFor(() => running(name).length > 0);
    stop('SIGKILL');
    await waitFor(() => running(name).length === 0);
  });
});

it('a server whose sandbox lists what does not exist is down, and says so', async () => {
  const config = toml([{ namespace: 's', command: 'node x.mjs' }]).replace(
    '[[servers]]',
    '[[servers]]\nsandbox = { read = ["gone"] }',
  );
  const gateway = await startHttp({ config, ready: false });
  const { origin } = new URL(gateway.url);
  const about = await waitFor(async () => {
    const text = await (await fetch(`${origin}/namespaces`)).text();
    return /does not exist|bubblewrap/.test(text) ? text : null;
  });
  expect(about).toMatch(/gone, which its sandbox lists, does not exist|bubblewrap does not work here/);
  expect(existsSync('gone')).toBe(false);
});
