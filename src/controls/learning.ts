/**
 * Learns which queries lead to which tools: a caller searches, and then calls one of the tools that were found, with
 * success. What it learned counts for callers of the same agent to whom the same is open.
 */
import type { Rules } from '../access/policy.ts';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { getOrMake, memo } from '../base/memo.ts';
import type { Caller } from '../calls/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { configuredExamples, type Examples, joinExamples, NO_EXAMPLES } from '../catalog/search/examples.ts';
import type { ItemSearch } from '../catalog/search/search.ts';
import type { SearchConfig } from '../config/search.ts';
import { taskKey } from '../plans/narrow-to-task.ts';
import type { ExampleOwner, ExampleStore } from '../store/examples.ts';
import type { VectorStore } from '../store/vectors.ts';

/** A query with what it found. */
export interface Searched {
  readonly query: string;
  readonly found: readonly Entry[];
}

export interface SearchLearning {
  /** The examples that count for a caller. */
  examplesOf(caller: Caller): Examples;
  /** The search for a caller over a catalog, which is already narrowed to what the caller may know. */
  search(caller: Caller, catalog: Catalog): Promise<ItemSearch>;
  /** Why the vectors that are configured cannot be used; null if they can, or if there are none. */
  vectorProblem(): Promise<string | null>;
  /** A caller has searched. */
  searched(caller: Caller, searches: readonly Searched[]): void;
}

export interface LearningOptions {
  config(): SearchConfig;
  readonly store: ExampleStore;
  readonly vectors: VectorStore;
  /** Makes a text safe to keep. */
  redact(text: string): string;
}

/** Only the last searches of a caller count: a tool that is called much later was not called because of them. */
const MOST_SEARCHES = 20;

/** The key of a permission tells only agents of one policy apart. This tells policies apart, by the rules for an agent. */
const rulesHash = memo(({ policy, lineage }: Rules) =>
  sha256(canonicalJson({ ...policy, agents: lineage, defaultLimits: null })),
);

export function createLearning({ config, store, vectors, redact }: LearningOptions): SearchLearning {
  const ownerOf = (caller: Caller): ExampleOwner => {
    const { permission } = caller.view();
    const rules = permission === null ? [] : [rulesHash(permission.rules), permission.key];
    const open = [...rules, ...caller.tasks.map(taskKey)];
    return { agent: caller.agent, view: sha256(JSON.stringify(open)).slice(0, 16) };
  };
  function examplesOf(caller: Caller): Examples {
    const { examples, learn } = config();
    // What the operator searches is no agent's own.
    const learned = learn && !caller.isOperator ? store.of(ownerOf(caller)) : NO_EXAMPLES;
    return joinExamples(configuredExamples(examples))(learned);
  }

  return {
    examplesOf,
    async search(caller, catalog) {
      // Loaded when it is used: most gateways never search.
      const { searchOf } = await import('../catalog/search/search.ts');
      return searchOf(catalog, examplesOf(caller), await vectors.current());
    },
    vectorProblem: vectors.problem,
    searched(caller, searches) {
      if (!config().learn || caller.isOperator) return;
      const recent = [...(caller.found?.searches ?? []), ...searches].slice(-MOST_SEARCHES);
      const queries = new Map<Entry, string[]>();
      for (const { query, found } of recent) for (const entry of found) getOrMake(queries, entry, () => []).push(query);
      caller.found = {
        searches: recent,
        called(entry) {
          const own = queries.get(entry);
          if (own === undefined || !config().learn) return;
          // Once is enough.
          queries.delete(entry);
          const owner = ownerOf(caller);
          for (const query of own) store.learn(owner, canonicalName(entry), redact(query));
        },
      };
    },
  };
}
