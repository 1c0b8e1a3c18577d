/** Real processes: what is made has to be whole, and made once, whoever dies meanwhile. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rolldown } from 'rolldown';
import { beforeAll, expect, it } from 'vitest';
import { atEnd } from '../../test/support/cleanup.ts';
import { waitFor } from '../../test/support/processes.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { EnvironmentError } from './environment.ts';
import { forgetFailures, type Making, madeOnce, removeOlder } from './made-once.ts';

let program: string;
beforeAll(async () => {
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'made-once.ts'),
    platform: 'node',
    logLevel: 'silent',
  });
  program = join(tempFolder(), 'made-once.mjs');
  await bundle.write({ file: program });
});

const inProcess = (root: string, ms: number) => {
  const script = `
    import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
    const { madeOnce } = await import(${JSON.stringify(program)});
    const root = ${JSON.stringify(root)};
    const folder = await madeOnce({
      root, key: 'k', signal: null, progress() {},
      isGood: async () => true,
      make: async (folder) => {
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

const making = (root: string, more: Partial<Making> = {}): Making => ({
  root,
  key: 'k',
  signal: null,
  progress: () => {},
  isGood: async (folder) => existsSync(join(folder, 'last')),
  make: async (folder) => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'last'), '');
    return {};
  },
  ...more,
});

it('is made once by several processes at the same time', async () => {
  const root = tempFolder();
  const made = await Promise.all([1, 2, 3].map(() => inProcess(root, 300).over));
  expect(new Set(made).size).toBe(1);
  expect(readdirSync(made[0]!).sort()).toEqual(['first', 'last']);
  expect(readFileSync(join(root, 'log'), 'utf8')).toBe('m');
});

it('is made again where whoever was at it is killed, and nothing of him is taken for good', async () => {
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

it('is made again where it no longer works, and where what says which it is is damaged', async () => {
  const root = tempFolder();
  const first = await madeOnce(making(root));
  expect(await madeOnce(making(root))).toBe(first);
  const again = await madeOnce(making(root, { isGood: async (folder) => folder !== first }));
  expect(again).not.toBe(first);
  for (const text of ['', '{"folder":', '{"folder":"../../x"}', '[]', 'null']) {
    writeFileSync(join(root, 'k', 'ready.json'), text);
    const other = await madeOnce(making(root));
    expect(existsSync(join(other, 'last'))).toBe(true);
  }
});

it('leaves nothing of a failure but the reason, which stands until it is forgotten or old', async () => {
  const root = tempFolder();
  let tries = 0;
  const failing = making(root, {
    make: async (folder) => {
      tries += 1;
      mkdirSync(folder);
      throw new EnvironmentError('no such package', 'the log');
    },
  });
  for (let i = 0; i < 3; i += 1)
    await expect(madeOnce(failing)).rejects.toMatchObject({ message: 'no such package', log: 'the log' });
  expect(tries).toBe(1);
  expect(readdirSync(join(root, 'k'))).toEqual(['failed.json']);

  const long = new Date(Date.now() - 3_600_000);
  utimesSync(join(root, 'k', 'failed.json'), long, long);
  await expect(madeOnce(failing)).rejects.toThrow('no such package');
  expect(tries).toBe(2);
  await forgetFailures(root);
  await madeOnce(making(root));
  expect(readdirSync(join(root, 'k'))).not.toContain('failed.json');
});

it('says why where there is no place for it', async () => {
  const root = join(tempFolder({ file: '' }), 'file');
  await expect(madeOnce(making(root))).rejects.toThrow(/^The environment could not be made: ENOTDIR/);
});

it('stops when it is told to, at work and while it waits, without calling that a failure', async () => {
  const root = tempFolder();
  const stop = new AbortController();
  const stopped = madeOnce(
    making(root, {
      signal: stop.signal,
      make: async (folder) => {
        mkdirSync(folder);
        await sleep(100);
        return {};
      },
    }),
  );
  const waits = new AbortController();
  await sleep(20);
  const waiting = madeOnce(making(root, { signal: waits.signal }));
  waits.abort();
  await expect(waiting).rejects.toThrow('Waiting for the environment was stopped.');
  stop.abort();
  await expect(stopped).rejects.toThrow('Making the environment was stopped.');
  expect(readdirSync(join(root, 'k'))).toEqual([]);
});

it('is kept beside the one before it, and older ones are removed', async () => {
  const root = tempFolder();
  for (const key of ['a', 'b', 'c', 'd']) {
    await madeOnce(making(root, { key }));
    await sleep(20);
  }
  await removeOlder(root, 'd');
  expect(readdirSync(root).sort()).toEqual(['c', 'd']);
  // Going back makes the other one the older.
  await madeOnce(making(root, { key: 'c' }));
  await removeOlder(root, 'c');
  expect(readdirSync(root).sort()).toEqual(['c', 'd']);
});
