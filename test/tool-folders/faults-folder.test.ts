/** Folders that cannot be loaded, deleted sockets and a full disk: everything else stays in service. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { PY_HEAD, pyTool, save, tsTool } from '../support/dock.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { logOf } from '../support/running-gateway.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { type Faulty, startFaulty } from './faulty.ts';

useProcesses();

const ts = (version: number) => tsTool('ts', `return '${version}';`);
const py = (version: number) => PY_HEAD + pyTool('py', `return "${version}"`);

/** These tools return how many of them run at the same time. */
const CROWD_TS = 'const seen = ++now; await new Promise((done) => setTimeout(done, 100)); now--; return String(seen);';
const CROWD_PY = 'import time\nnow.append(1)\nseen = len(now)\ntime.sleep(0.1)\nnow.pop()\nreturn str(seen)';

describe.skipIf(noPython !== undefined)('while other namespaces keep answering', () => {
  let dock: Faulty;
  beforeAll(async () => {
    const more = {
      'm/good.ts': ts(1),
      'm/good.py': py(1),
      'n/good.ts': `let now = 0;\n${ts(1)}${tsTool('crowd_ts', CROWD_TS)}`,
      'n/good.py': `${py(1)}\nnow = []\n${pyTool('crowd_py', CROWD_PY)}`,
    };
    dock = await startFaulty({ a: '30s' }, { more, settings: '[folders]\nconcurrency = 2\n' });
  }, 90_000);

  const saidOf = (text: RegExp) =>
    waitFor(() => logOf(dock).find(({ message }) => text.test(message))?.message, 60_000);

  it('a folder with load errors or missing packages serves its remaining tools', { timeout: 60_000 }, async () => {
    await dock.during('broken files', async () => {
      mkdirSync(join(dock.tools, 'broken'));
      for (const [name, text] of Object.entries({
        'good.ts': ts(1),
        'good.py': py(1),
        'throws.ts': `${ts(2)}throw new Error('not like this');\n`,
        'throws.py': `${py(2)}\nraise RuntimeError("not like this")\n`,
        'lacks.ts': `import pad from 'no-such-package-anywhere';\n${tsTool('padded', 'return pad("x");')}`,
        'lacks.py': `import no_such_package_anywhere\n${PY_HEAD}${pyTool('pad', 'return "x"')}`,
      }))
        writeFileSync(join(dock.tools, 'broken', name), text);
      await Promise.all([
        dock.until('broken_ts', ({ text }) => text === '1'),
        dock.until('broken_py', ({ text }) => text === '1'),
      ]);
    });
    await saidOf(/^throws.ts:6: not like this/);
    await saidOf(/^throws.py:\d+: RuntimeError: not like this/);
    await saidOf(/^lacks.ts:1: Cannot find package "no-such-package-anywhere": add it to "dependencies"/);
    await saidOf(/^lacks.py:1: .*no_such_package_anywhere.*requirements.txt/);
  });

  it('a folder runs no more concurrent calls than its limit', async () => {
    for (const tool of ['n_crowd_ts', 'n_crowd_py']) {
      const called = await Promise.all(Array.from({ length: 8 }, () => dock.call(tool)));
      expect(Math.max(...called.map(({ text }) => Number(text)))).toBe(2);
    }
  });

  it('a dependency that cannot be installed leaves the running tools in service', { timeout: 120_000 }, async () => {
    await dock.during('packages that do not exist', async () => {
      save(join(dock.tools, 'm/requirements.txt'), 'no-such-package-anywhere-at-all==99.9\n');
      save(join(dock.tools, 'm/package.json'), '{"dependencies":{"no-such-package-anywhere-at-all":"99.9.9"}}\n');
      await saidOf(
        /dependencies could not be installed: .*No matching distribution found for no-such-package-anywhere-at-all/,
      );
      await saidOf(/dependencies could not be installed: npm could not install .*no-such-package-anywhere-at-all/);
    });
    expect((await dock.call('m_ts')).text).toBe('1');
    expect((await dock.call('m_py')).text).toBe('1');
  });

  it('deleting the worker sockets and their folder does not interrupt calls or restarts', {
    timeout: 60_000,
  }, async () => {
    await dock.during('no sockets', async () => {
      rmSync(join(dock.cwd, '.toolgate/workers'), { recursive: true });
      expect((await dock.call('n_ts')).text).toBe('1');
      expect((await dock.call('n_py')).text).toBe('1');
      await Promise.all([dock.ended('a', 'ts_kill'), dock.ended('a', 'py_kill')]);
      expect(existsSync(join(dock.cwd, '.toolgate/workers'))).toBe(true);
    });
  });
});

describe.skipIf(noPython !== undefined)('on a full disk', () => {
  it('folders stay in service, and edits are applied once there is space again', {
    timeout: 90_000,
  }, async (context) => {
    const disk = join(tempFolder(), 'disk');
    if (!mount(disk)) context.skip('only root may mount a disk');
    const dock = await startFaulty({ a: '30s' }, { env: { DATA_DIR: disk }, dataDir: disk });
    const filler = join(disk, 'filler');
    await dock.during('a full disk', async () => {
      expect(() => {
        for (;;) appendFileSync(filler, Buffer.alloc(4096));
      }).toThrow('ENOSPC');
      await Promise.all([dock.ended('a', 'ts_kill'), dock.ended('a', 'py_kill')]);
      const edited = join(dock.cwd, 'faulty/a/a.ts');
      save(edited, ts(2));
      await waitFor(() => dock.stderr().includes(`there is no space left for it in ${disk}; make room there`));
      await dock.survived('a', 'ts_recursion');
      rmSync(filler);
      save(edited, ts(3));
      await dock.until('a_ts', ({ text }) => text === '3');
    });
    await dock.stop();
  });
});

/** Mounts a small disk. Returns false if that is not permitted. */
function mount(place: string): boolean {
  try {
    mkdirSync(place);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m,mode=700', 'toolgate-test', place], { stdio: 'ignore' });
    atEnd(() => execFileSync('umount', ['-l', place]));
    return true;
  } catch {
    return false;
  }
}
