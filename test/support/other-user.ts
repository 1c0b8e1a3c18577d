import { chownSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The user and the group "nobody". */
const NOBODY = 65_534;

/**
 * Does the work as a user who is not root, because root may read and write everything. That user becomes the owner of the
 * folder and of all that is in it. Without root the work is done as the user who runs the tests.
 */
export async function asOtherUser<T>(folder: string, work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work();
  for (const path of ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })])
    chownSync(join(folder, path), NOBODY, NOBODY);
  // Only the effective ids, so that they can be set back. They are those of the whole process, with all of its threads.
  process.setegid!(NOBODY);
  process.seteuid!(NOBODY);
  try {
    return await work();
  } finally {
    process.seteuid!(0);
    process.setegid!(0);
  }
}
