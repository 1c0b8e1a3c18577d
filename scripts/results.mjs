// What a run of the tests came to, read from the file that scripts/results-reporter.mjs writes.
import { existsSync, readFileSync } from 'node:fs';

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
