/**
 * Which servers are known not to be modern, on disk by the hash of their launch: a server that never answers the question
 * would otherwise be waited for at every start. Believed for a day, because servers get updates.
 */
import { mkdir, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface EraStore {
  isLegacy(launchHash: string): Promise<boolean>;
  /** Both fail silently: a read-only folder costs the memory, not the service. */
  setLegacy(launchHash: string): Promise<void>;
  forget(launchHash: string): Promise<void>;
}

const BELIEVED = 24 * 60 * 60 * 1000;

export function openEraStore(dataDir: string): EraStore {
  const folder = join(dataDir, 'verdicts');
  const fileOf = (launchHash: string) => join(folder, `${launchHash}.json`);
  const known = new Map<string, number>();

  async function read(launchHash: string): Promise<number> {
    const text = await readFile(fileOf(launchHash), 'utf8').catch(() => '');
    const until = Number(/^\{"legacyUntil":(\d{1,15})\}$/.exec(text.trim())?.[1] ?? 0);
    // A clock that was wrong when it was written must not make it last for ever.
    return until > Date.now() + BELIEVED ? 0 : until;
  }

  return {
    async isLegacy(launchHash) {
      const until = known.get(launchHash) ?? (await read(launchHash));
      known.set(launchHash, until);
      return until > Date.now();
    },
    async setLegacy(launchHash) {
      if ((known.get(launchHash) ?? 0) > Date.now()) return;
      const legacyUntil = Date.now() + BELIEVED;
      known.set(launchHash, legacyUntil);
      const file = fileOf(launchHash);
      const temporary = `${file}.${process.pid}.tmp`;
      try {
        await mkdir(folder, { recursive: true });
        await writeFile(temporary, `${JSON.stringify({ legacyUntil })}\n`, { mode: 0o600 });
        await rename(temporary, file);
      } catch {
        // Remembered for as long as we run.
      }
    },
    async forget(launchHash) {
      known.delete(launchHash);
      await unlink(fileOf(launchHash)).catch(() => {});
    },
  };
}
