/** Faults of the command line that writing its documentation found. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));

describe('toolgate', () => {
  it('ends quietly when whoever reads its output has seen enough', async () => {
    const child = startChild(process.execPath, [bin, 'schema'], { cwd: tempFolder(), env: childEnv() });
    child.process.stdout.destroy();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.stderr()).toBe('');
  });

  it('says why a server is down, also while it is being tried again', async () => {
    // The one that starts slowly makes doctor wait until the other has been tried several times, and is being tried.
    const slow = `sleep 1.1; exec ${server('basic')}`;
    const dying = `${process.execPath} -e 'setTimeout(() => process.exit(3), 400)'`;
    const cwd = tempFolder({ 'tools.toml': serversToml({ slow, dying }) });
    const child = startChild(process.execPath, [bin, 'doctor'], { cwd, env: childEnv() });
    expect((await child.exited).code).toBe(1);
    expect(child.stdout()).toContain('dying: down: exited with code 3');
  });
});
