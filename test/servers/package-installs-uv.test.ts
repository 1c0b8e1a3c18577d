/** Servers that `uvx` installs: they are started without `uvx`, and keep its cache in use. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { childEnv } from '../support/child.ts';
import { startStdio } from '../support/gateway.ts';
import { uv } from '../support/installer.ts';
import { noPython } from '../support/python.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

/** A server without dependencies. Its one tool says what the process is. */
const SERVER = `
import json, os, sys

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method = message["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "tiny", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            said = {"pid": os.getpid(), "parent": os.getppid(), "argv": sys.argv[1:], "uv": os.environ.get("UV"), "path": os.environ["PATH"], "file": sys.argv[0]}
            result = {"content": [{"type": "text", "text": json.dumps(said)}]}
        else:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
`;

function wheelFolder(): string {
  const folder = tempFolder();
  const info = 'tiny_server-1.0.dist-info';
  writeFiles(join(folder, 'content'), {
    'tiny_server/__init__.py': SERVER,
    [`${info}/METADATA`]: 'Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0\n',
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/entry_points.txt`]: '[console_scripts]\ntiny-server = tiny_server:main\ntiny-other = tiny_server:main\n',
    [`${info}/RECORD`]: '',
  });
  const script = 'import shutil; shutil.make_archive("wheel", "zip", "content")';
  execFileSync('python3', ['-c', script], { cwd: folder });
  execFileSync('mv', ['wheel.zip', 'tiny_server-1.0-py3-none-any.whl'], { cwd: folder });
  return folder;
}

it.skipIf(noPython)('starts what uvx installs without uvx, and keeps `uv cache clean` away from it', async () => {
  const cache = join(tempFolder(), 'uv');
  const env = childEnv({
    PATH: `${dirname(uv)}:${process.env.PATH}`,
    UV_CACHE_DIR: cache,
    UV_FIND_LINKS: wheelFolder(),
    UV_OFFLINE: '1',
    UV_PYTHON_DOWNLOADS: 'never',
  });
  const gateway = await startStdio({
    // The programs are its children.
    process: false,
    env,
    config: toml(
      [
        { namespace: 'a', command: 'uvx tiny-server one "two three"' },
        { namespace: 'b', command: 'uvx --from tiny-server@1.0 tiny-other' },
        { namespace: 'c', command: 'uvx tiny-server', resolve_packages: false },
      ],
      { start_wait: '60s' },
    ),
  });
  const ask = async (namespace: string) =>
    JSON.parse(await callText(gateway.client, `${namespace}_whoami`)) as Record<'file' | 'path', string> & {
      readonly parent: number;
    };
  /** Two starts at the same time may each build an environment. */
  const anyEnvironment = (text: string) => text.replace(/archive-v0\/[^/]+/, 'archive');
  const [a, b, c] = [await ask('a'), await ask('b'), await ask('c')];
  expect(a).toMatchObject({ parent: process.pid, argv: ['one', 'two three'] });
  expect(anyEnvironment(a.path)).toBe(anyEnvironment(c.path));
  expect(anyEnvironment(a.file)).toBe(anyEnvironment(c.file));
  expect(b).toMatchObject({ parent: process.pid, file: expect.stringMatching(/\/bin\/tiny-other$/) });
  expect(c.parent).not.toBe(process.pid);
  // The server itself has the lock of the cache, as uv has while it runs something.
  const clean = promisify(execFile)(uv, ['cache', 'clean'], { env, timeout: 3_000 });
  await expect(clean).rejects.toMatchObject({ killed: true });
  expect(existsSync(a.file)).toBe(true);
  await gateway.stop();
  await promisify(execFile)(uv, ['cache', 'clean'], { env, timeout: 20_000 });
  expect(existsSync(a.file)).toBe(false);
});
