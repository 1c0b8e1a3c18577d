// Says so if the sources of a checkout are newer than its build, as after `git pull`. `npm start` builds by itself;
// `toolgate` does not, because a client that starts it waits for an answer.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SOURCES } from './sources.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** This ends every command and runs in every gateway of a checkout, so it loads and looks at little. */
export async function warnIfStale() {
  const stamp = join(root, 'dist', '.stamp');
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  if (built === undefined || !SOURCES.some((folder) => hasNewer(join(root, folder), built))) return;
  // Other times mean nothing: a checkout of another branch and back changes them.
  const { sourceHash } = await import('./setup.mjs');
  if (readFileSync(stamp, 'utf8') === sourceHash()) return;
  console.error(`toolgate: this is an old build. The sources in ${root} have changed: run npm run build there.`);
}

/** The time of a folder changes if a file in it is added or deleted. */
function hasNewer(folder, time) {
  if (statSync(folder).mtimeMs > time) return true;
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    // Not join(), which would take as long as the rest.
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return hasNewer(path, time);
    // The build does not read tests, and they are a third of the files.
    return !entry.name.endsWith('.test.ts') && statSync(path).mtimeMs > time;
  });
}
