/** With real processes: a folder is built once and completely, even if one of them dies. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rolldown } from 'rolldown';
import { beforeAll, expect, it } from 'vitest';
import { atEnd } from '../../test/support/cleanup.ts';
import { waitFor } from '../../test/support/processes.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { buildOnce, type FolderBuild, forgetFailures, moveDraft, removeOlder } from './build-cache.ts';
import { EnvironmentError } from './environment.ts';

let program: string;
beforeAll(async () => {
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'build-cache.ts'),
    platform: 'node',
    logLevel: 'silent',
  });
  program = join(tempFolder(), 'build-cache.mjs');
  await bundle.write({ file: program });
});

const inProcess = (root: string, ms: number) => {
  const script = `
    import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
    const { buildOnce } = await import(${JSON.stringify(program)});
    const root = ${JSON.stringify(root)};
    const folder = await buildOnce({
      root, key: 'k', signal: null, progress() {},
      isGood: async () => true,
      build: async (folder) => {
        appendFileSync(root + '/log', 'm');
        mkdirSync(folder);
        writeFileSync(folder + '/first', '1');
        await new Promise((resolve) => setTimeout(resolve, ${ms}));
        writeFileSync(folder + '/last', '2');
        return {};
      },
    });
    console.log(folder);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const over = new Promise<string>((resolve) => child.once('close', () => resolve(output.trim())));
  return { child, over };
};

const job = (root: string, more: Partial<FolderBuild> = {}): FolderBuild => ({
  root,
  key: 'k',
  signal: null,
  progress: () => {},
  isGood: async (folder) => existsSync(join(folder, 'last')),
  build: async (folder) => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'last'), '');
    return {};
  },
  ...more,
});

it('builds a folder once for several processes at the same time', async () => {
  const root = tempFolder();
  const made = await Promise.all([1, 2, 3].map(() => inProcess(root, 300).over));
  expect(new Set(made).size).toBe(1);
  expect(readdirSync(made[0]!).sort()).toEqual(['first', 'last']);
  expect(readFileSync(join(root, 'log'), 'utf8')).toBe('m');
});

it('builds again if the building process is killed, and uses nothing that it left behind', async () => {
  const root = tempFolder();
  const killed = inProcess(root, 60_000);
  await waitFor(() => existsSync(join(root, 'log')) && readdirSync(join(root, 'k')).length === 2);
  const next = inProcess(root, 10);
  await sleep(300);
  killed.child.kill('SIGKILL');
  const made = await next.over;
  expect(readdirSync(made).sort()).toEqual(['first', 'last']);
  expect(readdirSync(join(root, 'k')).sort()).toEqual([made.split('/').at(-1)!, 'ready.json'].sort());
});

it('builds again if the folder no longer works, or ready.json is damaged', async () => {
  const root = tempFolder();
  const first = await buildOnce(job(root));
  expect(await buildOnce(job(root))).toBe(first);
  const again = await buildOnce(job(root, { isGood: async (folder) => folder !== first }));
  expect(again).not.toBe(first);
  for (const text of ['', '{"folder":', '{"folder":"../../x"}', '[]', 'null']) {
    writeFileSync(join(root, 'k', 'ready.json'), text);
    const other = await buildOnce(job(root));
    expect(existsSync(join(other, 'last'))).toBe(true);
  }
});

it('remembers a failure until it is forgotten or old, and keeps nothing else of it', async () => {
  const root = tempFolder();
  let tries = 0;
  const failing = job(root, {
    build: async (folder) => {
      tries += 1;
      mkdirSync(folder);
      throw new EnvironmentError('no such package', 'the log');
    },
  });
  for (let i = 0; i < 3; i += 1)
    await expect(buildOnce(failing)).rejects.toMatchObject({ message: 'no such package', log: 'the log' });
  expect(tries).toBe(1);
  expect(readdirSync(join(root, 'k'))).toEqual(['failed.json']);

  const long = new Date(Date.now() - 3_600_000);
  utimesSync(join(root, 'k', 'failed.json'), long, long);
  await expect(buildOnce(failing)).rejects.toThrow('no such package');
  expect(tries).toBe(2);
  await forgetFailures(root);
  await buildOnce(job(root));
  expect(readdirSync(join(root, 'k'))).not.toContain('failed.json');
});

it('says why it cannot write the folder', async () => {
  const root = join(tempFolder({ file: '' }), 'file');
  await expect(buildOnce(job(root))).rejects.toThrow(/^The environment could not be built: .*ENOTDIR/);
});

it('stops on request, while it builds and while it waits, and does not record a failure', async () => {
  const root = tempFolder();
  const stop = new AbortController();
  let isBuilding = false;
  const stopped = buildOnce(
    job(root, {
      signal: stop.signal,
      build: async (folder) => {
        mkdirSync(folder);
        isBuilding = true;
        await new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
        return {};
      },
    }),
  );
  const waits = new AbortController();
  await waitFor(() => isBuilding);
  const waiting = buildOnce(job(root, { signal: waits.signal }));
  waits.abort();
  await expect(waiting).rejects.toThrow('Waiting for the environment was stopped.');
  stop.abort();
  await expect(stopped).rejects.toThrow('Building the environment was stopped.');
  expect(readdirSync(join(root, 'k'))).toEqual([]);
});

it('keeps the current build and the one before it, and removes older ones', async () => {
  const root = tempFolder();
  for (const key of ['a', 'b', 'c', 'd']) {
    await buildOnce(job(root, { key }));
    await sleep(20);
  }
  await removeOlder(root, 'd');
  expect(readdirSync(root).sort()).toEqual(['c', 'd']);
  // Using the earlier build again makes the other one the older.
  await buildOnce(job(root, { key: 'c' }));
  await removeOlder(root, 'c');
  expect(readdirSync(root).sort()).toEqual(['c', 'd']);
});

it('a draft that cannot be moved is removed, and the cause is told unless the same files are there', async () => {
  const root = tempFolder({ 'draft/last': 'x', 'file/in/the/way': 'x', 'again/last': 'x' });
  await moveDraft(join(root, 'draft'), join(root, 'place'), 'last');
  expect(readdirSync(join(root, 'place'))).toEqual(['last']);
  await expect(moveDraft(join(root, 'again'), join(root, 'file'), 'last')).rejects.toThrow(/file cannot be written/);
  expect(existsSync(join(root, 'again'))).toBe(false);
  writeFileSync(join(root, 'file', 'last'), 'x');
  await moveDraft(join(root, 'no such draft'), join(root, 'file'), 'last');
});
