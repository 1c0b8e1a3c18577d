/** A sandboxed tool shares loopback with the gateway, and does not drive it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { childEnv, startChild, untilPrinted } from '../support/child.ts';
import { type Dock, startDock } from '../support/dock.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

/**
 * `get` answers with the status of a request, `leave` sends one and is gone at once, `orphan` sends it from a process
 * that its parent left, `share` from a socket that a process outside holds too.
 */
const TS = `import { createConnection } from 'node:net';
import { spawn } from 'node:child_process';
const make = (execute: (input: any) => unknown) => ({ description: 'x', inputSchema: { type: 'object' }, execute });
export const get = make(async ({ url }) => {
  const response = await fetch(url);
  return response.status + ' ' + (await response.text());
});
export const leave = make(({ port, text }) => new Promise((resolve) => {
  const socket = createConnection(port, '127.0.0.1', () => {
    socket.write(text, () => { socket.destroy(); resolve('sent'); });
  });
}));
export const orphan = make(({ url }) => new Promise((resolve) => {
  const code = 'fetch(process.argv[1]).then(async (r) => console.log(r.status, await r.text()))';
  const child = spawn(process.execPath, ['-e', code, url], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  child.stdout.on('data', (chunk) => { said += chunk; }).on('end', () => resolve(said));
}));
export const share = make(({ port, keeper }) => new Promise((resolve) => {
  const child = spawn('/usr/bin/python3', ['-c', ${JSON.stringify(`import socket, sys
client = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
keeper = socket.socket(socket.AF_UNIX)
keeper.connect('\\0' + sys.argv[2])
socket.send_fds(keeper, [b'x'], [client.fileno()])
assert keeper.recv(1) == b'k'
client.sendall(b'GET /tools HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n')
print(client.recv(100).decode())`)}, String(port), keeper]);
  let said = '';
  child.stdout.on('data', (chunk) => { said += chunk; });
  child.stderr.on('data', (chunk) => { said += chunk; });
  child.on('close', () => resolve(said));
}));
`;

/** Connects to the gateway itself, then keeps a socket that it is given. */
const KEEPER = `import socket, sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
server = socket.socket(socket.AF_UNIX)
server.bind('\\0' + sys.argv[2])
server.listen()
print('ready', flush=True)
peer, _ = server.accept()
_, kept, _, _ = socket.recv_fds(peer, 1, 1)
peer.sendall(b'k')
sys.stdin.read()
`;

describe.skipIf(await isWithoutIsolation())('a sandboxed tool with network', () => {
  let dock: Dock;
  let cwd: string;
  beforeAll(async () => {
    cwd = tempFolder();
    const marks = join(cwd, 'mark');
    const config = `controls = []\n[servers.free]\nfolder = "free"\nisolation = "off"\n[servers.own]\nfolder = "own"\nisolation = "required"\n`;
    const free = `import { writeFileSync } from 'node:fs';
export const mark = { description: 'x', inputSchema: { type: 'object' }, execute: () => writeFileSync(${JSON.stringify(marks)}, '') };\n`;
    const { writeFiles } = await import('../support/temp.ts');
    writeFiles(cwd, { 'own/a.ts': TS, 'free/a.ts': free });
    dock = await startDock({}, { cwd, config, python: false });
    await dock.until('own_get', ({ text }) => !/starting|no tool/i.test(text));
  }, 60_000);

  const origin = () => new URL(dock.url).origin;

  it.each(['get', 'orphan'])('is not admitted without a credential: %s', async (tool) => {
    const { text } = await dock.call(`own_${tool}`, { url: `${origin()}/tools` });
    expect(text).toMatch(/^401 .*Tools in a sandbox are not admitted/s);
  });

  it('is not admitted under another name of loopback', async () => {
    const { port } = new URL(dock.url);
    for (const host of ['localhost', '127.0.0.1'])
      expect((await dock.call('own_get', { url: `http://${host}:${port}/tools` })).text).toMatch(/^401 /);
  });

  it('does not get a call through by leaving before it is looked for', async () => {
    const body = '{}';
    const request = `POST /tools/free_mark HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (let i = 0; i < 20; i++)
      expect((await dock.call('own_leave', { port: Number(new URL(dock.url).port), text: request })).text).toBe('sent');
    // Later requests were answered, so the earlier ones were too.
    expect(existsSync(join(cwd, 'mark'))).toBe(false);
    const marked = await fetch(`${origin()}/tools/free_mark`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(marked.status).toBe(200);
    expect(existsSync(join(cwd, 'mark'))).toBe(true);
  });

  it('is not admitted with a socket that it shares with a client', async () => {
    const name = `toolgate-test-${process.pid}`;
    const keeper = startChild('python3', ['-c', KEEPER, `${origin()}/tools`, name], { cwd, env: childEnv() });
    await untilPrinted(keeper, /ready/);
    const { text } = await dock.call('own_share', { port: Number(new URL(dock.url).port), keeper: name });
    expect(text).toMatch(/^HTTP\/1.1 401 /);
    await keeper.stop();
  });

  it('still reaches what needs no credential', async () => {
    expect((await dock.call('own_get', { url: `${origin()}/health` })).text).toMatch(/^200 /);
  });
});
