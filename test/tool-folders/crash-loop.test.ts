/**
 * A folder whose worker crashes repeatedly is not restarted for a while, but is retried at once after an edit or a
 * reload.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { type Dock, dockEnv, PY_HEAD, pyTool, save, startDock, tsTool } from '../support/dock.ts';
import { bin } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { logOf } from '../support/running-gateway.ts';
import { useProcesses } from '../support/switch.ts';
import { isWide } from '../support/wide.ts';

useProcesses();

const DIES =
  tsTool('die', 'console.error("the last words of ts"); (process as any).reallyExit(7);') +
  tsTool('here', 'return "1";');
/** A folder that exits before it is ready, and what it is edited to. A Python worker takes long to start, so that is for wide runs. */
const NEVER =
  isWide && noPython === undefined
    ? {
        file: 'never/a.py',
        text: 'import os\nprint("not today", flush=True)\nos._exit(9)\n',
        edited: PY_HEAD + pyTool('here', 'return "now"'),
      }
    : {
        file: 'never/a.ts',
        text: 'console.log("not today"); (process as any).reallyExit(9);\n',
        edited: tsTool('here', 'return "now";'),
      };

describe('a worker that exits five times within a minute', () => {
  let dock: Dock;
  beforeAll(async () => {
    dock = await startDock({ 'ts/a.ts': DIES, [NEVER.file]: NEVER.text });
    await waitFor(async () => (await dock.names()).length === 2, 30_000);
  }, 60_000);

  const loopOf = (namespace: string) =>
    logOf(dock).findLast(({ source, message }) => source === namespace && message.startsWith('crash_loop'))?.message;

  async function killFive(namespace: string): Promise<void> {
    for (let n = 0; n < 5; n++) {
      await dock.until(`${namespace}_here`, ({ isError }) => !isError);
      await dock.call(`${namespace}_die`);
    }
    await waitFor(() => loopOf(namespace));
  }

  it('is reported as a crash loop with the reason, and restarts on the next configuration reload', {
    timeout: 60_000,
  }, async () => {
    await Promise.all([killFive('ts'), waitFor(() => loopOf('never'), 40_000)]);
    expect(loopOf('ts')).toMatch(
      /^crash_loop: ended 5 times within 60 s; the last time it exited with code 7 \(a tool must not end its process\). It is tried again in 30 s, and at once when its folder is edited or the configuration read again \(it said: the last words of ts\)$/,
    );
    expect(loopOf('never')).toMatch(/the last time it exited with code 9. .*\(it said: not today\)/);
    // The tools of a worker that is down are not listed.
    await waitFor(async () => (await dock.names()).length === 0);
    // They are known to exist, over REST and MCP.
    for (const path of ['/ns/ts/tools', '/ns/never/tools', '/tools/ts_here', '/tools/never_x']) {
      const response = await fetch(dock.origin + path);
      expect([path, response.status]).toEqual([path, 503]);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await response.text()).toMatch(/is in a crash loop \(ended 5 times within 60 s; the last time it exited/);
    }
    expect((await dock.call('ts_here')).text).toContain('is in a crash loop (ended 5 times within 60 s');
    const namespaces = (await (await fetch(`${dock.origin}/namespaces`)).json()) as { state: string }[];
    expect(namespaces.map(({ state }) => state)).toEqual(['crash_loop', 'crash_loop']);
    const metrics = await (await fetch(`${dock.origin}/metrics`)).text();
    expect(metrics.match(/^toolgate_server_state\{.*state="crash_loop"\} 1$/gm)).toHaveLength(2);

    // Long before the next scheduled restart.
    const config = join(dock.cwd, 'tools.toml');
    writeFileSync(config, `${readFileSync(config, 'utf8')}# read again\n`);
    await dock.until('ts_here', ({ text }) => text === '1');
    // The count starts over: a single exit is not a crash loop.
    await dock.call('ts_die');
    await dock.until('ts_here', ({ isError }) => !isError);
  });

  it('is listed with its last stderr output', { timeout: 60_000 }, async () => {
    const env = childEnv({ HOME: dock.cwd, ...dockEnv() });
    // On a busy machine the end of a connection may be seen long before the exit code.
    const printed = await waitFor(async () => {
      const child = startChild(process.execPath, [bin, 'list', 'servers'], { cwd: dock.cwd, env });
      await child.exited;
      return /never .*down .*exited with code 9/.test(child.stdout()) && child.stdout();
    });
    expect(printed).toContain('    not today');
  });

  it('restarts on the next edit of its folder', { timeout: 60_000 }, async () => {
    save(join(dock.tools, NEVER.file), NEVER.edited);
    await dock.until('never_here', ({ text }) => text === 'now');
  });
});
