/** Example queries of tools: from the configuration, and learned from use. */
import { memo } from '../../base/memo.ts';

/** Queries for which a tool is right, by `server.tool` or by its exposed name. A new map for each change. */
export type Examples = ReadonlyMap<string, readonly string[]>;

export const NO_EXAMPLES: Examples = new Map();

/** Both together. The same map for the same arguments, because an index is kept for each. */
export const joinExamples: (configured: Examples) => (learned: Examples) => Examples = memo((configured: Examples) =>
  memo((learned: Examples): Examples => {
    if (learned.size === 0) return configured;
    if (configured.size === 0) return learned;
    const all = new Map(configured);
    for (const [tool, queries] of learned) all.set(tool, [...(all.get(tool) ?? []), ...queries]);
    return all;
  }),
);

/** The examples of a configuration. The same map for the same configuration. */
export const configuredExamples: (examples: Readonly<Record<string, readonly string[]>>) => Examples = memo(
  (examples: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(examples)),
);
