/** Command line bugs that were found while writing its documentation. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

describe('toolgate', () => {
  it('exits quietly when the reader of its output closes the pipe', async () => {
    const child = startChild(process.execPath, [bin, 'schema'], { cwd: tempFolder(), env: childEnv() });
    child.process.stdout.destroy();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.stderr()).toBe('');
  });

  it('doctor reports why a server is down, even while it is being restarted', async () => {
    // The slow server makes doctor wait until the other one has failed several times and is being restarted.
    const slow = `sleep 1.1; exec ${server('basic')}`;
    const dying = `${process.execPath} -e 'setTimeout(() => process.exit(3), 400)'`;
    const cwd = tempFolder({ 'tools.toml': serversToml({ slow, dying }) });
    const child = startChild(process.execPath, [bin, 'doctor'], { cwd, env: childEnv() });
    expect((await child.exited).code).toBe(1);
    expect(child.stdout()).toContain('dying: down: exited with code 3');
  });
});
