/**
 * The last known offer of each server, on disk by the hash of its launch. It keeps a sleeping server listed, and the
 * names of a server that is down taken. A file that is missing or damaged means that nothing is known.
 */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../base/files.ts';
import { KINDS, kindWords, type Offer, readItems } from '../catalog/item.ts';

export interface OfferStore {
  /** Synchronous, so that a new server has its names in the catalog that is built for it. Files are small. */
  read(launchHash: string): Offer | null;
  /** Fails silently: with a read-only folder the offer is forgotten when the process ends. */
  write(launchHash: string, offer: Offer): Promise<void>;
  /** Resolves when everything is written, so that the next gateway in this folder finds it. */
  close(): Promise<void>;
}

export function openOfferStore(dataDir: string): OfferStore {
  const fileOf = (launchHash: string) => join(dataDir, 'offers', `${launchHash}.json`);
  /** From launch hash to the fingerprint of what was written last. */
  const written = new Map<string, string>();
  const writing = new Set<Promise<void>>();

  async function save(launchHash: string, offer: Offer): Promise<void> {
    const hashes = offer.items.map((item) => item.kind + item.hash);
    const fingerprint = [...hashes, offer.instructions].join(' ');
    if (written.get(launchHash) === fingerprint) return;
    written.set(launchHash, fingerprint);
    try {
      await mkdir(dataDir, { recursive: true });
      await writeFile(join(dataDir, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => {});
      await replaceFile(fileOf(launchHash), print(offer));
    } catch {
      written.delete(launchHash);
    }
  }

  return {
    read(launchHash) {
      try {
        const bytes = readFileSync(fileOf(launchHash));
        const { instructions } = JSON.parse(bytes.toString()) as { instructions?: unknown };
        const items = KINDS.flatMap((kind) => [...readItems(kind, bytes).items]);
        // A server with an empty offer must not sleep: no call could wake it, so it would never be listed again.
        if (items.length === 0) return null;
        return { items, problems: [], instructions: typeof instructions === 'string' ? instructions : '' };
      } catch {
        return null;
      }
    },
    write(launchHash, offer) {
      const saved = save(launchHash, offer).finally(() => writing.delete(saved));
      writing.add(saved);
      return saved;
    },
    async close() {
      await Promise.all(writing);
    },
  };
}

/** One object with the four lists, each definition byte for byte as the server sent it, and the instructions. */
function print(offer: Offer): Buffer {
  const lists = KINDS.map((kind) => {
    const items = offer.items.filter((item) => item.kind === kind).map((item) => item.bytes);
    return Buffer.concat([Buffer.from(`"${kindWords[kind].list}":[`), ...separated(items), Buffer.from(']')]);
  });
  const instructions = Buffer.from(`,\n"instructions":${JSON.stringify(offer.instructions)}}\n`);
  return Buffer.concat([Buffer.from('{'), ...separated(lists), instructions]);
}

function separated(values: readonly Buffer[]): Buffer[] {
  return values.flatMap((bytes, index) => (index === 0 ? [bytes] : [Buffer.from(',\n'), bytes]));
}
