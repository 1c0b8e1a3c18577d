/** What an edit of a folder changed, for its author: `edited list.ts: 2 tools, 1 new (add_item)`. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { counted } from '../base/text.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { LANGUAGES, matters } from '../workers/tool-files.ts';

/** The items of each file, as `kind name`. */
type FileItems = ReadonlyMap<string, ReadonlySet<string>>;

interface FolderState {
  /** The hash of each file. */
  readonly files: ReadonlyMap<string, string>;
  readonly items: FileItems;
}

export interface FolderReport {
  /** Says what is different since the last look. */
  look(): Promise<void>;
}

export function createFolderReport(gateway: Gateway, folder: string, say: (line: string) => void): FolderReport {
  let known: FolderState = { files: new Map(), items: new Map() };
  let looking = Promise.resolve();
  const look = async () => {
    // What is served now is about to be replaced.
    if (gateway.statuses().some(({ state, updating }) => state === 'starting' || updating)) return;
    const now = { files: await hashFiles(folder), items: itemsOf(gateway) };
    for (const line of differences(known, now)) say(line);
    known = now;
  };
  return {
    look() {
      looking = looking.then(look, look);
      return looking;
    },
  };
}

async function hashFiles(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => LANGUAGES.some((one) => matters(name, one)));
  const hashes = new Map<string, string>();
  for (const name of names.sort()) {
    const text = await readFile(join(folder, name)).catch(() => null);
    if (text !== null) hashes.set(name, sha256(text.toString('latin1')));
  }
  return hashes;
}

function itemsOf({ catalog }: Gateway): FileItems {
  const items = new Map<string, Set<string>>();
  for (const kind of KINDS) {
    for (const { item } of catalog.entries[kind].values()) {
      const { _meta } = JSON.parse(item.bytes.toString()) as { _meta?: Readonly<Record<string, unknown>> };
      const file = String(_meta?.['toolgate/file'] ?? '');
      const ofFile = items.get(file) ?? new Set();
      items.set(file, ofFile.add(`${kind} ${item.name}`));
    }
  }
  return items;
}

function* differences(before: FolderState, now: FolderState): Iterable<string> {
  const none: ReadonlySet<string> = new Set();
  for (const file of new Set([...before.files.keys(), ...now.files.keys(), ...now.items.keys()])) {
    const [hadHash, hash] = [before.files.get(file), now.files.get(file)];
    const [had, has] = [before.items.get(file) ?? none, now.items.get(file) ?? none];
    const fresh = [...has].filter((one) => !had.has(one));
    const gone = [...had].filter((one) => !has.has(one));
    if (hadHash === hash && fresh.length + gone.length === 0) continue;
    const word =
      hash === undefined ? 'deleted' : hadHash === undefined ? 'found' : hadHash === hash ? 'loaded' : 'edited';
    const parts = [
      countOf(has),
      ...(word === 'found' || fresh.length === 0 ? [] : [`${fresh.length} new (${namesOf(fresh)})`]),
      ...(gone.length === 0 ? [] : [`${gone.length} gone (${namesOf(gone)})`]),
    ];
    const names = word === 'found' && has.size > 0 ? ` (${namesOf([...has])})` : '';
    yield `${word} ${file}: ${parts.join(', ')}${names}`;
  }
}

const WORDS: Readonly<Record<Kind, string>> = {
  tool: 'tool',
  resource: 'resource',
  template: 'template',
  prompt: 'prompt',
};

/** `2 tools, 1 prompt` */
function countOf(items: ReadonlySet<string>): string {
  const counts = KINDS.map((kind) => [kind, [...items].filter((one) => one.startsWith(`${kind} `)).length] as const);
  const some = counts.filter(([, count]) => count > 0);
  return some.length === 0 ? 'no tools' : some.map(([kind, count]) => counted(count, WORDS[kind])).join(', ');
}

function namesOf(items: readonly string[]): string {
  return items.map((one) => one.slice(one.indexOf(' ') + 1)).join(', ');
}
