/**
 * What this user trusts: for each configuration file, hashes of what it may run. It is in the user's own folder, never in
 * a project, because a cloned project could bring its own.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { type JsonFile, jsonFile } from '../base/json-file.ts';
import { isObject } from '../base/objects.ts';
import { userFolder } from '../base/user-folder.ts';

export interface TrustStore {
  readonly path: string;
  /** The hashes that are trusted in this configuration file. Rejects if the store cannot be used. */
  read(file: string): Promise<ReadonlySet<string>>;
  add(file: string, hashes: readonly string[]): Promise<void>;
  /** Resolves to whether something of this configuration file was trusted. */
  remove(file: string): Promise<boolean>;
}

type Trusted = Readonly<Record<string, readonly string[]>>;

export function openTrustStore(env: Readonly<Record<string, string | undefined>>): TrustStore {
  const path = join(userFolder(env), 'trust.json');
  const store: JsonFile<Trusted> = jsonFile(path, 'a list of trusted configurations', parseTrusted);
  const known = async () => new Map(Object.entries((await store.read()) ?? {}));
  return {
    path,
    async read(file) {
      await requireOwn(path);
      return new Set((await known()).get(file) ?? []);
    },
    async add(file, hashes) {
      await store.change((before) => {
        const all = new Map(Object.entries(before ?? {}));
        all.set(file, [...new Set([...(all.get(file) ?? []), ...hashes])]);
        return Object.fromEntries(all);
      });
    },
    async remove(file) {
      const was = (await known()).has(file);
      if (was)
        await store.change((before) =>
          Object.fromEntries(Object.entries(before ?? {}).filter(([one]) => one !== file)),
        );
      return was;
    },
  };
}

/** A person or program that can write the file decides what this user runs. */
async function requireOwn(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found === null || process.platform === 'win32' || (found.mode & 0o022) === 0) return;
  throw new GatewayError('usage', `${path} can be written by others. Run: chmod 600 ${path}`);
}

function parseTrusted(value: unknown): Trusted {
  if (!isObject(value)) throw new Error('expected a map');
  for (const hashes of Object.values(value))
    if (!Array.isArray(hashes) || !hashes.every((hash) => typeof hash === 'string'))
      throw new Error('expected lists of hashes');
  return value as Trusted;
}
