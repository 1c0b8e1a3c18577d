// `npm start`: serves the demo, also on a fresh clone. Arguments go to `toolgate serve`.
import { join } from 'node:path';
import { ensureBuilt, ensureInstalled, root } from './setup.mjs';
import { stopWithNpm } from './stop-with-npm.mjs';

try {
  stopWithNpm();
  process.chdir(root);
  await ensureInstalled();
  await ensureBuilt();
  // In this process and not in a child: signals arrive once, the exit code is that of serve, and nothing is left behind.
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
