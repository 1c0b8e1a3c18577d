/**
 * What agents searched before they called a tool successfully: examples for the search, by agent and by what is open to it.
 * Nobody gets those of another agent, nor those from a time when something else was open. Only queries are kept, never
 * texts of servers. Bounded, and kept in the data folder, where people can read it.
 */
import { join } from 'node:path';
import { jsonFile } from '../base/json-file.ts';
import { getOrMake } from '../base/memo.ts';
import { isObject, toObject } from '../base/objects.ts';
import { type Examples, NO_EXAMPLES } from '../catalog/search/examples.ts';
import { writeIgnoreFile } from './ignore-file.ts';

/** To whom examples belong: an agent, and what is open to it as a key. */
export interface ExampleOwner {
  readonly agent: string;
  readonly view: string;
}

/** What one owner has learned, by `server.tool`. */
export interface LearnedExamples extends ExampleOwner {
  readonly tools: Readonly<Record<string, readonly string[]>>;
}

export interface ExampleStore {
  /** The same map while nothing was learned. */
  of(owner: ExampleOwner): Examples;
  /** `tool` is `server.tool`. */
  learn(owner: ExampleOwner, tool: string, query: string): void;
  all(): readonly LearnedExamples[];
  /** Forgets everything. */
  forget(): void;
  readonly path: string;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

const MOST = { queries: 20, tools: 500, owners: 50, characters: 200 };
/** Characters of everything that one owner has learned: all of it is written with each example. */
const MOST_OF_OWNER = 100_000;

export function openExamples(dataDir: string, failed: (error: unknown) => void): ExampleStore {
  const file = jsonFile(join(dataDir, 'search-examples.json'), 'a list of learned examples', readLearned);
  /** The owner that learned last is the last one. Null until it is read. */
  let owners: Map<string, Examples> | null = null;
  let written: Promise<unknown> = Promise.resolve();
  let isWaiting = false;

  function known(): Map<string, Examples> {
    if (owners !== null) return owners;
    let learned: readonly LearnedExamples[] = [];
    try {
      learned = file.readSync() ?? [];
    } catch (error) {
      failed(error);
    }
    owners = new Map(learned.map((one) => [keyOf(one), new Map(Object.entries(one.tools))]));
    return owners;
  }

  const all = () =>
    [...known()].map(([key, tools]): LearnedExamples => {
      const [agent, view] = JSON.parse(key) as [string, string];
      return { agent, view, tools: Object.fromEntries(tools) };
    });

  /** One write for everything that is learned before it begins. */
  function save(): void {
    if (isWaiting) return;
    isWaiting = true;
    written = written.then(async () => {
      isWaiting = false;
      try {
        await writeIgnoreFile(dataDir);
        await file.write(all());
      } catch (error) {
        failed(error);
      }
    });
  }

  return {
    path: file.path,
    of: (owner) => known().get(keyOf(owner)) ?? NO_EXAMPLES,
    learn(owner, tool, query) {
      const key = keyOf(owner);
      const text = query.replace(/\s+/g, ' ').trim().slice(0, MOST.characters);
      const before = known().get(key) ?? NO_EXAMPLES;
      const queries = before.get(tool) ?? [];
      if (text === '' || queries.includes(text)) return;
      const tools = new Map(before);
      tools.delete(tool);
      tools.set(tool, [...queries, text].slice(-MOST.queries));
      known().delete(key);
      known().set(key, newest(tools));
      if (known().size > MOST.owners) known().delete(oldestOfMany([...known().keys()]));
      save();
    },
    all,
    forget() {
      owners = new Map();
      save();
    },
    async close() {
      await written;
    },
  };
}

/** What fits, the tools that were learned last first. */
function newest(tools: Examples): Examples {
  let left = MOST_OF_OWNER;
  const fit = [...tools].slice(-MOST.tools).reverse();
  const end = fit.findIndex(([tool, queries]) => {
    left -= tool.length + queries.reduce((sum, query) => sum + query.length, 0);
    return left < 0;
  });
  return new Map((end < 0 ? fit : fit.slice(0, end)).reverse());
}

/** The oldest of the agent that has the most. An agent that works on many tasks must not push out what others learned. */
function oldestOfMany(keys: readonly string[]): string {
  const byAgent = new Map<string, string[]>();
  for (const key of keys) getOrMake(byAgent, (JSON.parse(key) as [string])[0], () => []).push(key);
  const [most] = [...byAgent.values()].sort((a, b) => b.length - a.length);
  return most![0]!;
}

function keyOf({ agent, view }: ExampleOwner): string {
  return JSON.stringify([agent, view]);
}

function readLearned(value: unknown): readonly LearnedExamples[] {
  if (!Array.isArray(value)) throw new Error('expected a list');
  return value.map((one) => {
    const { agent, view, tools } = toObject(one);
    if (typeof agent !== 'string' || typeof view !== 'string' || !isObject(tools))
      throw new Error('expected an agent, a view and tools');
    const read = Object.entries(tools).map(([tool, queries]) => {
      if (!Array.isArray(queries) || queries.some((query) => typeof query !== 'string'))
        throw new Error(`expected a list of queries for "${tool}"`);
      return [tool, queries.slice(-MOST.queries) as string[]] as const;
    });
    return { agent, view, tools: Object.fromEntries(read) };
  });
}
