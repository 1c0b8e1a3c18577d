// Says so if the sources of a checkout are newer than its build, as after `git pull`. `npm start` builds by itself;
// `toolgate` does not, because a client that starts it waits for an answer.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root, SOURCES, sourceHash } from './setup.mjs';

export function warnIfStale() {
  const stamp = join(root, 'dist', '.stamp');
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  if (built === undefined || !SOURCES.some((folder) => hasNewer(join(root, folder), built))) return;
  // Other times mean nothing: a checkout of another branch and back changes them.
  if (readFileSync(stamp, 'utf8') === sourceHash()) return;
  console.error(`toolgate: this is an old build. The sources in ${root} have changed: run npm run build there.`);
}

/** The time of a folder changes if a file in it is added or deleted. */
function hasNewer(folder, time) {
  if (statSync(folder).mtimeMs > time) return true;
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? hasNewer(path, time) : statSync(path).mtimeMs > time;
  });
}
