/** Random policies: what an agent may not use is not found, counted, suggested or described, at any door. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Kind } from '../../src/catalog/item.ts';
import type { Ask, Door } from '../support/asking.ts';
import { usePolicedGateway } from '../support/policed-gateway.ts';
import { AGENTS, NAMES, naivelyAllowed, randomPolicy, SERVERS } from '../support/policies.ts';
import { runs } from '../support/wide.ts';

const KINDS = ['tool', 'resource', 'template', 'prompt'] as const satisfies Kind[];
const DOORS = ['stdio', 'modern http'] as const satisfies Door[];

const policed = usePolicedGateway({ doors: DOORS, config: { controls: ['search'] } });

const everything = KINDS.flatMap((kind) =>
  SERVERS.flatMap((server) => NAMES[kind].map((name) => ({ kind, server, name, exposed: `${server}_${name}` }))),
);

/** The names in a text. A name that is a part of another one counts only where it stands alone. */
function named(text: string): Set<string> {
  const words = new Set(text.split(/[^\w:/{}.-]+/).map((word) => word.replace(/[.:]+$/, '')));
  return new Set(everything.map(({ exposed }) => exposed).filter((name) => words.has(name)));
}

async function textOf(ask: Ask, name: string, args: object): Promise<string> {
  const { result, error } = await ask('tools/call', { name, arguments: args });
  return error?.message ?? (result!.content as { text: string }[]).map(({ text }) => text).join('\n');
}

const anyQuery = fc.oneof(
  fc.constantFrom(...everything.map(({ exposed }) => exposed)),
  fc.constantFrom(...everything.map(({ name }) => name)),
  fc.constantFrom(...SERVERS, 'nothing of the kind', 'zzz'),
);

it('nothing that a policy hides can be noticed through the search', { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      randomPolicy,
      fc.constantFrom(...DOORS),
      fc.constantFrom(...AGENTS),
      fc.array(anyQuery, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 20 }),
      async (policy, door, agent, queries, limit) => {
        policed.apply(policy);
        const ask = policed.ask(door, agent);
        const isOpen = ({ kind, server, name }: (typeof everything)[number]) =>
          naivelyAllowed(policy, agent, server, kind, name);
        const open = everything.filter(isOpen);
        const hidden = everything.filter((one) => !isOpen(one)).map(({ exposed }) => exposed);
        const found = await textOf(ask, 'search_tools', { queries, limit });
        // The queries themselves are repeated as headings.
        const body = found.replace(/^# .*$/gm, '');
        expect(
          [...named(body)].filter((name) => hidden.includes(name)),
          found,
        ).toEqual([]);
        for (const [, total, servers] of body.matchAll(/… (\d+) more like these on (.*?):/g)) {
          expect(Number(total)).toBeLessThanOrEqual(open.length);
          for (const [, server, count] of servers!.matchAll(/(\w+) \((\d+)\)/g))
            expect(Number(count)).toBeLessThanOrEqual(open.filter((one) => one.server === server).length);
        }
        const { result } = await ask('tools/list', {});
        const own = (result!.tools as { name: string; description: string }[]).find(
          ({ name }) => name === 'search_tools',
        );
        const counted = new Map(
          [...own!.description.matchAll(/(\w+) \((\d+)\)/g)].map(([, key, n]) => [key, Number(n)]),
        );
        for (const server of SERVERS)
          expect(counted.get(server) ?? 0).toBe(
            open.filter((one) => one.kind === 'tool' && one.server === server).length,
          );
        for (const name of hidden.slice(0, 5)) {
          const described = await textOf(ask, 'describe_tools', { names: [name], activate: true });
          expect(described).toContain('Unknown names:');
          expect(
            [...named(described)].filter((one) => one !== name && hidden.includes(one)),
            described,
          ).toEqual([]);
        }
      },
    ),
    { numRuns: runs(200) },
  );
});
