/**
 * What is known of each server from its last run, on disk by the hash of its launch: its offer, what else it can do, and
 * how long its start took. It keeps a sleeping or starting server listed, and the names of a server that is down taken.
 * A file that is missing or damaged means that nothing is known.
 */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../base/files.ts';
import { isObject, toObject } from '../base/objects.ts';
import { KINDS, kindWords, type Offer, readItems } from '../catalog/item.ts';
import { writeIgnoreFile } from './ignore-file.ts';

/** What a server can do besides its items. */
export interface ServerAbilities {
  readonly completes: boolean;
  /** Whether it reports changes inside resources. */
  readonly subscribes: boolean;
  readonly tasks: { readonly starts: boolean; readonly runs: boolean; readonly lists: boolean };
  /** Whether it has ever asked its client something. */
  readonly asks: boolean;
}

/** A server as its last run left it. */
export interface RememberedServer {
  readonly offer: Offer;
  readonly abilities: ServerAbilities | null;
  /** Milliseconds that its last start took. */
  readonly startTime: number | null;
  /** What of it could not be served, such as tool files that did not load. */
  readonly problems: readonly string[];
}

export interface OfferStore {
  /** Synchronous, so that a new server has its names in the catalog that is built for it. Files are small. */
  read(launchHash: string): RememberedServer | null;
  /** Never rejects: with a read-only folder the offer is forgotten when the process ends, and `failed` is told. */
  write(launchHash: string, server: RememberedServer): Promise<void>;
  /** The server is not launched in this way any more. */
  forget(launchHash: string): Promise<void>;
  /** Resolves when everything is written, so that the next gateway in this folder finds it. */
  close(): Promise<void>;
}

export function openOfferStore(dataDir: string, failed: (error: unknown) => void = () => {}): OfferStore {
  const fileOf = (launchHash: string) => join(dataDir, 'offers', `${launchHash}.json`);
  /** From launch hash to the fingerprint of what was written last. */
  const written = new Map<string, string>();
  const writing = new Set<Promise<void>>();

  async function save(launchHash: string, server: RememberedServer): Promise<void> {
    const { offer, abilities } = server;
    const hashes = offer.items.map((item) => item.kind + item.hash);
    const fingerprint = [...hashes, offer.instructions, offer.about, abilities?.asks, ...server.problems].join(' ');
    if (written.get(launchHash) === fingerprint) return;
    written.set(launchHash, fingerprint);
    try {
      await writeIgnoreFile(dataDir);
      await replaceFile(fileOf(launchHash), print(server));
    } catch (error) {
      failed(error);
      written.delete(launchHash);
    }
  }

  return {
    read(launchHash) {
      try {
        const bytes = readFileSync(fileOf(launchHash));
        const { instructions, about, startTime, abilities, problems } = JSON.parse(bytes.toString()) as Record<
          string,
          unknown
        >;
        const lists = KINDS.map((kind) => readItems(kind, bytes));
        if (lists.some(({ problems }) => problems.length > 0)) return null;
        const items = lists.flatMap((list) => list.items);
        return {
          offer: { items, problems: [], instructions: textOf(instructions), about: textOf(about) },
          abilities: isObject(abilities) ? readAbilities(abilities) : null,
          startTime: typeof startTime === 'number' ? startTime : null,
          problems: Array.isArray(problems) ? problems.map(String) : [],
        };
      } catch {
        return null;
      }
    },
    write(launchHash, server) {
      const saved = save(launchHash, server).finally(() => writing.delete(saved));
      writing.add(saved);
      return saved;
    },
    async forget(launchHash) {
      await Promise.all(writing);
      written.delete(launchHash);
      await rm(fileOf(launchHash), { force: true }).catch(() => {});
    },
    async close() {
      await Promise.all(writing);
    },
  };
}

function readAbilities({ completes, subscribes, tasks, asks }: Record<string, unknown>): ServerAbilities {
  const { starts, runs, lists } = toObject(tasks);
  return {
    completes: completes === true,
    subscribes: subscribes === true,
    tasks: { starts: starts === true, runs: runs === true, lists: lists === true },
    asks: asks === true,
  };
}

/** One object with the four lists, each definition byte for byte as the server sent it, and what else is known. */
function print({ offer, abilities, startTime, problems }: RememberedServer): Buffer {
  const lists = KINDS.map((kind) => {
    const items = offer.items.filter((item) => item.kind === kind).map((item) => item.bytes);
    return Buffer.concat([Buffer.from(`"${kindWords[kind].list}":[`), ...separated(items), Buffer.from(']')]);
  });
  const { instructions, about } = offer;
  const others = JSON.stringify({ instructions, about, abilities, startTime, problems });
  return Buffer.concat([Buffer.from('{'), ...separated(lists), Buffer.from(`,\n${others.slice(1)}\n`)]);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function separated(values: readonly Buffer[]): Buffer[] {
  return values.flatMap((bytes, index) => (index === 0 ? [bytes] : [Buffer.from(',\n'), bytes]));
}
