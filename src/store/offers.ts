/**
 * The last known offer of each server, on disk by the hash of its launch: lets a sleeping server stay listed, and keeps
 * the names of a server that is down taken. A file that is missing or damaged means that nothing is known.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KINDS, kindWords, type Offer, readItems } from '../catalog/item.ts';

export interface OfferStore {
  read(launchHash: string): Promise<Offer | null>;
  /** Fails silently: a read-only folder costs the memory, not the service. */
  write(launchHash: string, offer: Offer): Promise<void>;
}

export function openOfferStore(dataDir: string): OfferStore {
  const folder = join(dataDir, 'offers');
  const written = new Map<string, string>();
  let serial = 0;
  return {
    async read(launchHash) {
      const bytes = await readFile(join(folder, `${launchHash}.json`)).catch(() => null);
      if (bytes === null) return null;
      try {
        const { instructions } = JSON.parse(bytes.toString()) as { instructions?: unknown };
        const items = KINDS.flatMap((kind) => [...readItems(kind, bytes).items]);
        // Nothing at all is no offer to go to sleep on: the server would never be asked again.
        if (items.length === 0) return null;
        return { items, problems: [], instructions: typeof instructions === 'string' ? instructions : '' };
      } catch {
        return null;
      }
    },
    async write(launchHash, offer) {
      const hashes = offer.items.map((item) => item.kind + item.hash);
      const fingerprint = [...hashes, offer.instructions].join(' ');
      if (written.get(launchHash) === fingerprint) return;
      written.set(launchHash, fingerprint);
      const file = join(folder, `${launchHash}.json`);
      const temporary = `${file}.${process.pid}.${++serial}.tmp`;
      try {
        await mkdir(folder, { recursive: true });
        await writeFile(join(dataDir, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => {});
        await writeFile(temporary, print(offer), { mode: 0o600 });
        await rename(temporary, file);
      } catch {
        written.delete(launchHash);
      }
    },
  };
}

/** One object with the four lists, each definition byte for byte as the server sent it, and the instructions. */
function print(offer: Offer): Buffer {
  const lists = KINDS.map((kind) => {
    const items = offer.items.filter((item) => item.kind === kind).map((item) => item.bytes);
    const parts = items.flatMap((bytes, index) => (index === 0 ? [bytes] : [Buffer.from(',\n'), bytes]));
    return Buffer.concat([Buffer.from(`"${kindWords[kind].list}":[`), ...parts, Buffer.from(']')]);
  });
  const parts = lists.flatMap((bytes, index) => (index === 0 ? [bytes] : [Buffer.from(',\n'), bytes]));
  const instructions = Buffer.from(`,\n"instructions":${JSON.stringify(offer.instructions)}}\n`);
  return Buffer.concat([Buffer.from('{'), ...parts, instructions]);
}
