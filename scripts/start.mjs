// `npm start`: from a fresh clone to the demo being served. Further arguments go to `toolgate serve`.
import { join } from 'node:path';
import { ensureBuilt, ensureInstalled, root } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

try {
  stopWithNpm();
  process.chdir(root);
  await ensureInstalled();
  await ensureBuilt();
  // In this process, not a child of it: signals arrive once, the exit code is serve's own, and nothing can be left behind.
  process.argv = [
    process.execPath,
    join(root, 'bin', 'toolgate.mjs'),
    'serve',
    '--config',
    join('examples', 'demo', 'toolgate.toml'),
    ...process.argv.slice(2),
  ];
  await import('../bin/toolgate.mjs');
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
