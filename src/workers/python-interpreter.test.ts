/** With fake interpreters that only answer the probe. */
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { findPython } from './python-interpreter.ts';

/** A folder with programs of these names. Each answers like a Python of that version, or fails if it is null. */
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

it('uses python3 if it is new enough', async () => {
  expect(await find({ PATH: pathWith({ python3: '3.11.2', 'python3.13': '3.13.0' }) })).toBe('3.11.2');
});

it('uses the newest other one if python3 is too old or does not run', async () => {
  const others = { 'python3.9': '3.9.1', 'python3.10': '3.10.1', 'python3.12': '3.12.4', 'python3.14': null };
  expect(await find({ PATH: pathWith({ python3: '3.9.1', ...others }) })).toBe('3.12.4');
  expect(await find({ PATH: pathWith({ python3: null, ...others }) })).toBe('3.12.4');
});

it('uses only TOOLGATE_PYTHON if that is set', async () => {
  const PATH = pathWith({ python3: '3.12.4', 'python3.10': '3.10.9', old: '3.8.1' });
  expect(await find({ PATH, TOOLGATE_PYTHON: 'python3.10' })).toBe('3.10.9');
  expect(await find({ PATH, TOOLGATE_PYTHON: join(PATH, 'python3.10') })).toBe('3.10.9');
  await expect(find({ PATH, TOOLGATE_PYTHON: 'old' })).rejects.toThrow(
    'TOOLGATE_PYTHON is not a Python 3.10 or newer (old is 3.8.1).',
  );
  await expect(find({ PATH, TOOLGATE_PYTHON: '/gone' })).rejects.toThrow(
    'TOOLGATE_PYTHON is not a Python 3.10 or newer: "/gone" does not run.',
  );
});

it('says what to do if there is no Python', async () => {
  await expect(find({ PATH: pathWith({ python3: '3.8.1' }) })).rejects.toThrow(
    'Python 3.10 or newer was not found (python3 is 3.8.1). Install it, or set TOOLGATE_PYTHON to its path.',
  );
  await expect(find({ PATH: tempFolder() })).rejects.toThrow('Python 3.10 or newer was not found. Install it');
});
