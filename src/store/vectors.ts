/** The file with vectors of words. It is read when a search first needs it, and again when it has changed. */
import { readFile, stat } from 'node:fs/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { WeightedVectors } from '../catalog/search/search.ts';
import type { SearchConfig } from '../config/search.ts';

export interface VectorStore {
  /** Null without vectors, and if the file cannot be used: the search then goes on without them. */
  current(): Promise<WeightedVectors | null>;
  /** Why the file that is configured cannot be used; null if it can. */
  problem(): Promise<string | null>;
}

interface LoadedVectors {
  readonly key: string;
  readonly vectors: WeightedVectors | null;
  readonly problem: string | null;
}

const NONE: LoadedVectors = { key: '', vectors: null, problem: null };

/** @param failed is told once why a file cannot be used. */
export function openVectors(config: () => SearchConfig, failed: (problem: string) => void): VectorStore {
  let last: Promise<LoadedVectors> = Promise.resolve(NONE);

  function load(): Promise<LoadedVectors> {
    const { vectors: file, vectorWeight } = config();
    if (file === null) return Promise.resolve(NONE);
    // One after the other: searches at the same time read the file once.
    last = last.then(async (before) => {
      const found = await stat(file).catch(() => null);
      const key = JSON.stringify([file, vectorWeight, found?.mtimeMs, found?.size]);
      if (before.key === key) return before;
      try {
        return { key, vectors: await read(file, vectorWeight), problem: null };
      } catch (error) {
        const problem = messageOf(error);
        failed(problem);
        return { key, vectors: null, problem };
      }
    });
    return last;
  }

  return {
    current: async () => (await load()).vectors,
    problem: async () => (await load()).problem,
  };
}

async function read(file: string, weight: number): Promise<WeightedVectors> {
  const { readVectors } = await import('../catalog/search/vectors/word-vectors.ts');
  const bytes = await readFile(file).catch((error: unknown) => {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = isMissing ? 'there is no such file' : messageOf(error);
    throw new GatewayError(
      'config_invalid',
      `The vectors in ${file} cannot be read: ${why}. Make them with toolgate vectors, or remove search.vectors.`,
    );
  });
  return { words: readVectors(bytes, file), weight };
}
