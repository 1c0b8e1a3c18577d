/** Removes what was made for earlier versions. The last one before stays, and whatever was in use a short while ago. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A worker of an older version may still finish its calls, and load a part of it for that. */
const RECENT_MS = 60 * 60 * 1000;

export async function pruneFolders(below: string, current: string): Promise<void> {
  const names = await readdir(below).catch(() => []);
  const others: { name: string; used: number }[] = [];
  for (const name of names) {
    if (name === current) continue;
    const used = await stat(join(below, name)).then(
      ({ mtimeMs }) => mtimeMs,
      () => null,
    );
    if (used !== null) others.push({ name, used });
  }
  others.sort((a, b) => b.used - a.used);
  const recent = Date.now() - RECENT_MS;
  for (const { name, used } of others.slice(1))
    if (used < recent) await rm(join(below, name), { recursive: true, force: true }).catch(() => {});
}
