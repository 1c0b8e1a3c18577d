/** With programs that only say what they are: which Python is taken depends on nothing else. */
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { findPython } from './python-interpreter.ts';

/** A folder with programs of these names that answer as a Python of that version, or fail. */
function pathWith(versions: Record<string, string | null>): string {
  const folder = tempFolder();
  for (const [name, version] of Object.entries(versions)) {
    const [major, minor] = (version ?? '').split('.').map(Number);
    const answer = JSON.stringify({
      executable: join(folder, name),
      version,
      minor: [major, minor],
      platform: 'any',
      prefixes: [folder],
    });
    const own = tempFolder({ [name]: `#!/bin/sh\n${version === null ? 'exit 127' : `echo '${answer}'`}\n` });
    chmodSync(join(own, name), 0o755);
    symlinkSync(join(own, name), join(folder, name));
  }
  return folder;
}

const find = async (env: NodeJS.ProcessEnv) => (await findPython(env, null)).version;

it('takes python3 where that is new enough', async () => {
  expect(await find({ PATH: pathWith({ python3: '3.11.2', 'python3.13': '3.13.0' }) })).toBe('3.11.2');
});

it('takes the newest other one where it is not, or does not run', async () => {
  const others = { 'python3.9': '3.9.1', 'python3.10': '3.10.1', 'python3.12': '3.12.4', 'python3.14': null };
  expect(await find({ PATH: pathWith({ python3: '3.9.1', ...others }) })).toBe('3.12.4');
  expect(await find({ PATH: pathWith({ python3: null, ...others }) })).toBe('3.12.4');
});

it('takes what TOOLGATE_PYTHON says, and nothing else', async () => {
  const PATH = pathWith({ python3: '3.12.4', 'python3.10': '3.10.9', old: '3.8.1' });
  expect(await find({ PATH, TOOLGATE_PYTHON: 'python3.10' })).toBe('3.10.9');
  expect(await find({ PATH, TOOLGATE_PYTHON: join(PATH, 'python3.10') })).toBe('3.10.9');
  await expect(find({ PATH, TOOLGATE_PYTHON: 'old' })).rejects.toThrow(
    'TOOLGATE_PYTHON is no Python 3.10 or newer (old is 3.8.1).',
  );
  await expect(find({ PATH, TOOLGATE_PYTHON: '/gone' })).rejects.toThrow(
    'TOOLGATE_PYTHON is no Python 3.10 or newer: "/gone" does not run.',
  );
});

it('says what to do where there is none', async () => {
  await expect(find({ PATH: pathWith({ python3: '3.8.1' }) })).rejects.toThrow(
    'There is no Python 3.10 or newer (python3 is 3.8.1). Install one, or set TOOLGATE_PYTHON to where it is.',
  );
  await expect(find({ PATH: tempFolder() })).rejects.toThrow('There is no Python 3.10 or newer. Install one');
});
