/** What a tool can see and change when its worker is isolated by bubblewrap. */
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type Dock, PY_HEAD, startDock } from '../support/dock.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { noPython } from '../support/python.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

/** `read`, `write` and `processes` in both languages. They return what they found as JSON. */
const TS = `import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
const attempt = (act: () => unknown) => { try { return act() ?? 'done'; } catch (error: any) { return error.code; } };
const make = (name: string, execute: (input: any) => unknown) => ({ name, description: name, inputSchema: { type: 'object' }, execute });
export const read = make('ts_read', ({ path }) => JSON.stringify(attempt(() => readFileSync(path, 'utf8'))));
export const write = make('ts_write', ({ path }) => JSON.stringify(attempt(() => writeFileSync(path, 'changed'))));
export const processes = make('ts_processes', () => JSON.stringify(readdirSync('/proc').filter((name) => /^\\d+$/.test(name))));
`;
const PY = `${PY_HEAD}import errno, json, os
def attempt(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode[error.errno]
@tool
def py_read(path: str) -> str:
    """Reads."""
    return json.dumps(attempt(lambda: open(path).read()))
@tool
def py_write(path: str) -> str:
    """Writes."""
    return json.dumps(attempt(lambda: open(path, "w").write("changed") and "done"))
@tool
def py_processes() -> str:
    """Lists processes."""
    return json.dumps([name for name in os.listdir("/proc") if name.isdigit()])
`;
const withoutIsolation = await isWithoutIsolation();

describe.skipIf(withoutIsolation || noPython !== undefined)('a tool isolated by bubblewrap', () => {
  const FILES = { 'own/a.ts': TS, 'own/data.txt': 'own', 'other/secret.ts': '// of another namespace' };
  let home: string;
  let dock: Dock;
  beforeAll(async () => {
    home = tempFolder({ 'private.txt': 'private' });
    const files = { ...FILES, 'own/a.py': PY };
    dock = await startDock(files, {
      cwd: tempFolder({ 'notes.txt': 'of the gateway' }),
      config: 'controls = []\n[folders]\nisolation = "required"\n',
      env: { HOME: home },
    });
  }, 60_000);

  const ask = async (tool: string, path?: string) => JSON.parse((await dock.call(`own_${tool}`, { path })).text);

  it.each(['ts', 'py'])('written in %s reads its own folder, and cannot change it', async (language) => {
    const file = join(dock.tools, 'own/data.txt');
    expect(await ask(`${language}_read`, file)).toBe('own');
    expect(await ask(`${language}_write`, file)).toBe('EROFS');
    expect(await ask(`${language}_write`, join(dock.tools, 'own/new.ts'))).toBe('EROFS');
    expect(readFileSync(file, 'utf8')).toBe('own');
  });

  it.each(['ts', 'py'])(
    'written in %s does not see files of others, of the gateway or of the user',
    async (language) => {
      const hidden = [
        join(dock.tools, 'other/secret.ts'),
        join(dock.cwd, 'notes.txt'),
        join(dock.cwd, 'tools.toml'),
        join(home, 'private.txt'),
        import.meta.filename,
      ];
      for (const path of hidden) {
        expect(readFileSync(path, 'utf8')).not.toBe('');
        expect([path, await ask(`${language}_read`, path)]).toEqual([path, 'ENOENT']);
      }
    },
  );

  it.each(['ts', 'py'])('written in %s sees no process but those of its own worker', async (language) => {
    const seen: string[] = await ask(`${language}_processes`);
    expect(seen).toContain('1');
    expect(seen.length).toBeLessThan(5);
    expect(seen).not.toContain(String(dock.pid));
    expect(await ask(`${language}_read`, '/proc/1/cmdline')).not.toContain('serve');
  });

  it('does not see the data of the gateway inside of its own folder', async () => {
    const cwd = tempFolder({ 'a.ts': TS, 'data.txt': 'own' });
    const config = 'controls = []\n[folders]\nisolation = "required"\n[servers.own]\nfolder = "."\n';
    const around = await startDock({ 'other/secret.ts': FILES['other/secret.ts'] }, { cwd, config, python: false });
    const read = async (path: string) => JSON.parse((await around.call('own_ts_read', { path })).text);
    await around.until('own_ts_processes', ({ isError }) => !isError);
    expect(await read(join(cwd, 'data.txt'))).toBe('own');
    expect(await read(join(around.tools, 'other/secret.ts'))).toBe('ENOENT');
  });

  it.skipIf(!isWritable('/opt'))(
    'does not see the data of the gateway in a folder that the system shares with all tools',
    async () => {
      const dataDir = mkdtempSync('/opt/toolgate-');
      atEnd(() => rmSync(dataDir, { recursive: true, force: true }));
      const shared = await startDock(FILES, { dataDir, env: { DATA_DIR: dataDir }, python: false });
      const read = async (path: string) => JSON.parse((await shared.call('own_ts_read', { path })).text);
      await shared.until('own_ts_processes', ({ isError }) => !isError);
      expect(await read(join(dataDir, 'tools/own/data.txt'))).toBe('own');
      expect(await read(join(dataDir, 'tools/other/secret.ts'))).toBe('ENOENT');
    },
  );
});

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
