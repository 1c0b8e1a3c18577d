import { execFileSync } from 'node:child_process';
import { root } from './setup.mjs';

/** Random tests take other cases after every commit, and the same ones if a run is repeated. */
export function seedOfCommit() {
  try {
    return Number.parseInt(execFileSync('git', ['rev-parse', '--short=7', 'HEAD'], { cwd: root }).toString(), 16);
  } catch {
    // Not a git checkout.
    return Math.floor(Math.random() * 2 ** 28);
  }
}
