/**
 * What `toolgate init` changes, written down before anything is changed: the bytes that each file had, and the hash of
 * those that it gets. So an init that was killed can be undone as well as one that ended. The copies may hold secrets, and
 * are in the user's own folder, where only this user can read them.
 */
import { mkdir, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { removeTemporariesOf, replaceFileDurably, replaceOwned } from '../base/files.ts';
import { sha256 } from '../base/hash.ts';
import { isAlive } from '../base/lock.ts';
import { isObject, isSameValue } from '../base/objects.ts';
import { userFolder } from '../base/user-folder.ts';
import { editText } from '../config/edit.ts';
import type { EnvVars } from '../config/expand.ts';
import { parseConfig } from '../config/parse.ts';
import type { Edit } from '../config/raw-config.ts';

/** A file that gets new content. */
export interface PlannedChange {
  readonly file: string;
  /** Null if there is none yet. */
  readonly before: Buffer | null;
  readonly after: string;
  /** What takes Toolgate's edits back in a file that others have changed since; empty if nothing does. */
  readonly back: readonly Edit[];
  /** What Toolgate wrote, which has to be there still for `back` to be right. */
  readonly wrote: readonly { readonly path: Edit['path']; readonly value: unknown }[];
}

/** A secret that was put into the store of a data folder. */
export interface MovedSecret {
  readonly name: string;
  readonly scope: string | null;
}

interface JournalChange extends Pick<PlannedChange, 'file' | 'back' | 'wrote'> {
  /** Hashes; null for a file that was not there. */
  readonly before: string | null;
  readonly after: string;
  /** The name of the copy. */
  readonly copy: string;
}

export interface Journal {
  /** Where it is, with the copies. */
  readonly folder: string;
  readonly config: string;
  readonly changes: readonly JournalChange[];
  readonly secrets: readonly MovedSecret[];
  /** The key file that the configuration names since; null if it named one before, or names none. */
  readonly keyFile: string | null;
}

const FILE = 'journal.json';

function journalsOf(config: string, env: EnvVars): string {
  return join(userFolder(env), 'init', sha256(config).slice(0, 16));
}

/** Writes everything down. Nothing is changed yet. */
export async function writeJournal(
  {
    config,
    changes,
    secrets,
    keyFile,
  }: Pick<Journal, 'config' | 'secrets' | 'keyFile'> & {
    readonly changes: readonly PlannedChange[];
  },
  env: EnvVars,
): Promise<Journal> {
  const all = journalsOf(config, env);
  const names = await readdir(all).catch(() => []);
  const next = String(Math.max(0, ...names.map(Number).filter(Number.isSafeInteger)) + 1);
  const folder = join(all, next);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const written = await Promise.all(
    changes.map(async ({ file, before, after, back, wrote }, i): Promise<JournalChange> => {
      const copy = `${i}.before`;
      if (before !== null) await replaceFileDurably(join(folder, copy), before);
      return { file, before: before === null ? null : sha256(before), after: sha256(after), copy, back, wrote };
    }),
  );
  const journal = { config, changes: written, secrets, keyFile };
  // The journal comes last: a folder without one stands for an init that has changed nothing.
  await replaceFileDurably(join(folder, FILE), JSON.stringify(journal, null, 2));
  return { folder, ...journal };
}

/** Changes the files. A file that is not what it was when the journal was written stays, and is an error. */
export async function applyChanges(changes: readonly PlannedChange[]): Promise<void> {
  for (const { file, before, after } of changes) {
    const now = await bytesOf(file);
    if (before === null ? now !== null : now === null || !now.equals(before))
      throw new GatewayError(
        'usage',
        `${file} was changed while Toolgate worked. It was left as it is. Run toolgate init --undo, then toolgate init again.`,
      );
    await replaceOwned(file, after);
  }
}

/** The last init of this configuration that was not undone; null if there is none. */
export async function lastJournal(config: string, env: EnvVars): Promise<Journal | null> {
  const all = journalsOf(config, env);
  const names = (await readdir(all).catch(() => [])).map(Number).filter(Number.isSafeInteger);
  for (const name of names.sort((a, b) => b - a)) {
    const folder = join(all, String(name));
    const text = await readFile(join(folder, FILE), 'utf8').catch(() => null);
    if (text !== null) return { folder, ...(JSON.parse(text) as Omit<Journal, 'folder'>) };
    // Killed before the journal was complete, so before anything was changed.
    await rm(folder, { recursive: true, force: true });
  }
  return null;
}

export type Undone = {
  readonly file: string;
  /**
   * `restored`: as it was, byte for byte. `same`: it was as before already. `taken back`: it was changed since, and only
   * what Toolgate wrote was taken back. `left`: it was changed since, and was not touched.
   */
  readonly outcome: 'restored' | 'removed' | 'same' | 'taken back' | 'left';
  /** Where the bytes from before are, for a file that was left. */
  readonly copy: string | null;
};

export async function undoChanges(journal: Journal): Promise<Undone[]> {
  const undone: Undone[] = [];
  for (const change of [...journal.changes].reverse()) undone.push(await undoChange(journal, change));
  return undone.reverse();
}

async function undoChange({ folder }: Journal, change: JournalChange): Promise<Undone> {
  const { file, before, after } = change;
  const copy = before === null ? null : join(folder, change.copy);
  const done = (outcome: Undone['outcome']): Undone => ({ file, outcome, copy: outcome === 'left' ? copy : null });
  // An init that was killed may have left one, with secrets in it.
  await removeTemporariesOf(file, isAlive);
  const now = await bytesOf(file);
  const hash = now === null ? null : sha256(now);
  if (hash === before) return done('same');
  if (hash === after) {
    if (copy === null) await unlink(file);
    else await replaceOwned(file, await readFile(copy));
    return done(copy === null ? 'removed' : 'restored');
  }
  if (now === null || change.back.length === 0) return done('left');
  const text = await takenBack(now.toString(), change).catch(() => null);
  if (text === null) return done('left');
  await replaceOwned(file, text);
  return done('taken back');
}

/** The text without what Toolgate wrote; null if somebody changed that too. */
async function takenBack(text: string, { file, back, wrote }: JournalChange): Promise<string | null> {
  const { value } = await parseConfig(text.replace(/^\uFEFF/, ''), file);
  const at = (path: Edit['path']) =>
    path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
  const isOurs = wrote.every((one) => isSameValue(at(one.path), one.value));
  const isFree = back.every((edit) => edit.kind !== 'set' || at(edit.path) === undefined);
  return isOurs && isFree ? editText(text, file, back) : null;
}

/** Nothing is left to undo. */
export async function endJournal({ folder }: Journal): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

async function bytesOf(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
