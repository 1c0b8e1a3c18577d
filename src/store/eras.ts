/**
 * Which servers are known to be legacy, on disk by the hash of their launch. Without this, a legacy server that never
 * answers the modern handshake would delay every start. The verdict is valid for a day, because servers get updates.
 */
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonFile } from '../base/json-file.ts';
import { toObject } from '../base/objects.ts';

export interface EraStore {
  isLegacy(launchHash: string): Promise<boolean>;
  /** Neither rejects: with a read-only folder the verdict lasts until the process ends, and `failed` is told. */
  setLegacy(launchHash: string): Promise<void>;
  forget(launchHash: string): Promise<void>;
}

const LIFETIME = 24 * 60 * 60 * 1000;

export function openEraStore(dataDir: string, failed: (error: unknown) => void = () => {}): EraStore {
  const fileOf = (launchHash: string) =>
    jsonFile(join(dataDir, 'verdicts', `${launchHash}.json`), 'the era of a server', (value) => {
      const { legacyUntil } = toObject(value);
      if (typeof legacyUntil !== 'number') throw new Error('legacyUntil is not a number');
      return { legacyUntil };
    });
  /** From launch hash to the time until which it is legacy. */
  const legacy = new Map<string, number>();

  async function read(launchHash: string): Promise<number> {
    const file = await fileOf(launchHash)
      .read()
      .catch(() => null);
    const until = file?.legacyUntil ?? 0;
    // If the clock was wrong when the verdict was written, it must not last forever.
    return until <= Date.now() + LIFETIME ? until : 0;
  }

  return {
    async isLegacy(launchHash) {
      const until = legacy.get(launchHash) ?? (await read(launchHash));
      legacy.set(launchHash, until);
      return until > Date.now();
    },
    async setLegacy(launchHash) {
      if ((legacy.get(launchHash) ?? 0) > Date.now()) return;
      const legacyUntil = Date.now() + LIFETIME;
      legacy.set(launchHash, legacyUntil);
      await fileOf(launchHash).write({ legacyUntil }).catch(failed);
    },
    async forget(launchHash) {
      legacy.delete(launchHash);
      await unlink(fileOf(launchHash).path).catch(() => {});
    },
  };
}
