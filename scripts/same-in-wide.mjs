// Which test files do the same in a wide run as in a usual one. `.ci/run` does both, and does not run those a second time.
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** What a wide run changes: these variables, the helpers that read them, and the tests of a file that are taken in turns. */
const DIFFERS = /\b(?:WIDE|PROCESSES|SOAK)\b|\/(?:wide|switch|turns)\.ts['"]/;
/** Each name of a file with code, wherever it stands: programs that a test starts count too, and one too many is only looked at. */
const NAMED = /['"`]([^'"`\n]+\.[cm]?[jt]sx?)['"`]/g;
/** What is imported by a name that is computed cannot be followed. */
const COMPUTED = /\b(?:import|require)\((?!\s*['"])/;

/**
 * Of these files, those for which that is certain: nothing that they import, at any depth, names what a wide run changes.
 * Code in `src/` is followed too.
 */
export function sameInWide(root, files) {
  const texts = new Map();
  const read = (path) => {
    if (!texts.has(path)) texts.set(path, readCode(path));
    return texts.get(path);
  };
  return files.filter((file) => {
    const seen = new Set([join(root, file)]);
    // Grows while it is walked.
    for (const path of seen) {
      const code = read(path);
      if (code === undefined || code.differs) return false;
      for (const next of code.imports) seen.add(next);
    }
    return true;
  });
}

/** Undefined if it cannot be read. */
function readCode(path) {
  try {
    const text = readFileSync(path, 'utf8');
    const imports = [...text.matchAll(NAMED)].map(([, name]) => resolve(dirname(path), name)).filter(isFile);
    return { imports, differs: DIFFERS.test(text) || COMPUTED.test(text) };
  } catch {
    return undefined;
  }
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
