/**
 * Loaded into a process before its program (`node --import`): it is killed at the n-th change that it makes to files. An
 * odd KILL_AT kills before the change, an even one after it. Without KILL_AT it prints at its end how many there are.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const at = Number(process.env.KILL_AT || 0);
let moments = 0;

function moment() {
  if (++moments === at) process.kill(process.pid, 'SIGKILL');
}

for (const name of ['writeFile', 'rename', 'link', 'unlink', 'mkdir', 'chmod', 'rm', 'appendFile']) {
  const real = fs[name];
  fs[name] = async (...args) => {
    moment();
    const result = await real(...args);
    moment();
    return result;
  };
}
syncBuiltinESMExports();

if (at === 0) process.on('exit', () => process.stderr.write(`moments: ${moments}\n`));
