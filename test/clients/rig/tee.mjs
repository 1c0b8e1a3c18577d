// Starts `toolgate stdio` for a client and writes every line of both directions to a file, with its time.
//   node tee.mjs LOG COMMAND ARGUMENTS…
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';

const [log, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });

pass(process.stdin, child.stdin, 'client');
pass(child.stdout, process.stdout, 'server');
child.once('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));

function pass(from, to, by) {
  let rest = '';
  from.on('data', (chunk) => {
    to.write(chunk);
    const at = performance.timeOrigin + performance.now();
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines)
      if (line.trim() !== '') appendFileSync(log, `${JSON.stringify({ at, by, message: JSON.parse(line) })}\n`);
  });
  from.once('end', () => to.end());
  to.on('error', () => {});
}
