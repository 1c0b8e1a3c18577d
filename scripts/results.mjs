// What a run of the tests came to, read from the file that scripts/results-reporter.mjs writes, and what it took.
import { existsSync, readFileSync } from 'node:fs';

/** The CPU time of this process and of all that it started and that have ended, in milliseconds. */
export function cpuMs() {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // After the name, which may have spaces in it: user and system time of the process, and of its children, in hundredths of a second.
    const ticks = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 16);
    return ticks.reduce((sum, tick) => sum + Number(tick) * 10, 0);
  } catch {
    // Not Linux: without the other processes.
    const { user, system } = process.cpuUsage();
    return Math.round((user + system) / 1_000);
  }
}

/**
 * Each file is `waiting`, `running`, or ended as `passed`, `failed` or `cut` (stopped by the deadline). `hasEnded` says that
 * vitest came to its end; `errors` are those that belong to no file.
 */
export function readResults(path) {
  const files = new Map();
  const results = { files, failures: [], skips: [], errors: [], hasEnded: false };
  const change = (file, values) => files.set(file, { passed: 0, skipped: 0, ...files.get(file), ...values });
  for (const line of readLines(path)) {
    if (line.files) for (const file of line.files) change(file, { state: 'waiting' });
    else if (line.started) change(line.started, { state: 'running' });
    else if (line.ended)
      change(line.ended, { ...line, state: line.failed > 0 ? 'failed' : line.cut ? 'cut' : 'passed' });
    else if (line.failedTest) results.failures.push({ ...line, name: line.failedTest });
    else if (line.skippedTest) results.skips.push({ ...line, name: line.skippedTest });
    else if (line.error && line.file) {
      change(line.file, { state: 'failed' });
      results.failures.push({ ...line, name: 'an error outside of any test', message: line.error });
    } else if (line.error) results.errors.push(line.error);
    else if (line.end) results.hasEnded = true;
  }
  return results;
}

/** Without the last line if its writer was killed before it was complete. */
function readLines(path) {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
