/**
 * Random policies with real servers: at every door, every agent sees exactly what the policy lets it use according to the
 * text of the seed, can use exactly that, and learns of nothing else.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind } from '../../src/catalog/item.ts';
import { type Ask, DOORS, type Door, TOOLS_ONLY } from '../support/asking.ts';
import { usePolicedGateway } from '../support/policed-gateway.ts';
import {
  AGENTS,
  NAMES,
  naivelyAllowed,
  naivelyReadable,
  type RandomPolicy,
  randomPolicy,
  SERVERS,
} from '../support/policies.ts';
import { isWide } from '../support/wide.ts';

const RUNS = isWide ? 8 : 2;

const policed = usePolicedGateway({ doors: DOORS, flags: (name) => ['--instructions', `How to use ${name}.`] });

const LISTS = {
  tool: ['tools/list', 'tools', 'name'],
  resource: ['resources/list', 'resources', 'uri'],
  template: ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
  prompt: ['prompts/list', 'prompts', 'name'],
} as const satisfies Record<Kind, readonly string[]>;

async function listed(ask: Ask, kind: Kind): Promise<string[]> {
  const [method, list, identity] = LISTS[kind];
  const { result, error } = await ask(method);
  expect(error).toBeUndefined();
  return (result![list] as Record<string, string>[]).map((one) => one[identity]!);
}

/** Whether a call by this name reaches the server, and otherwise the reply. */
async function used(ask: Ask, kind: Kind, name: string): Promise<{ ok: boolean; text: string }> {
  const [method, params] =
    kind === 'tool'
      ? ['tools/call', { name, arguments: {} }]
      : kind === 'prompt'
        ? ['prompts/get', { name }]
        : ['resources/read', { uri: name }];
  const { result, error } = await ask(method as string, params as object);
  return { ok: result !== undefined && result.isError !== true, text: JSON.stringify(error ?? result) };
}

const allowedNames = (policy: RandomPolicy, agent: string, kind: Kind) =>
  SERVERS.flatMap((server) =>
    NAMES[kind].filter((name) => naivelyAllowed(policy, agent, server, kind, name)).map((name) => `${server}_${name}`),
  );

/** The words in a text that name an item that the agent must not know about. */
function leaks(policy: RandomPolicy, agent: string, text: string, except: string): string[] {
  const hidden = (['tool', 'prompt'] as const).flatMap((kind) => {
    const allowed = allowedNames(policy, agent, kind);
    return SERVERS.flatMap((server) => NAMES[kind].map((name) => `${server}_${name}`)).filter(
      (name) => !allowed.includes(name),
    );
  });
  return hidden.filter((name) => name !== except && text.includes(`"${name}\\"`));
}

async function check(door: Door, agent: string, policy: RandomPolicy): Promise<void> {
  const ask = policed.ask(door, agent);
  for (const kind of ['tool', 'resource', 'template', 'prompt'] as const) {
    if (door === 'rest' && kind !== 'tool') continue;
    const allowed = allowedNames(policy, agent, kind);
    // In any order: a client that has seen a list keeps its order, and gets what is new at the end.
    expect((await listed(ask, kind)).sort(), `${door}: ${kind}s of ${agent}`).toEqual(allowed.toSorted());
    // Templates are used through their resources. A program in this process can only call tools.
    if (kind === 'template' || (door === 'local' && kind !== 'tool')) continue;
    for (const server of SERVERS) {
      for (const name of NAMES[kind]) {
        const exposed = `${server}_${name}`;
        const { ok, text } = await used(ask, kind, exposed);
        expect(ok, `${door}: ${exposed} for ${agent}: ${text}`).toBe(allowed.includes(exposed));
        if (!ok) expect(leaks(policy, agent, text, exposed), text).toEqual([]);
      }
    }
  }
}

describe('with random policies, an agent can list exactly what it can call', () => {
  it.each(DOORS)('at the door %s', { timeout: 600_000 }, async (door) => {
    await fc.assert(
      fc.asyncProperty(randomPolicy, async (policy) => {
        policed.apply(policy);
        for (const agent of AGENTS) await check(door, agent, policy);
      }),
      { numRuns: RUNS },
    );
  });

  it('a URI of a template is readable if the template or the URI itself is allowed, and it is not denied by name', {
    timeout: 600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        randomPolicy,
        fc.constantFrom(...AGENTS),
        fc.constantFrom(...DOORS),
        async (policy, agent, door) => {
          if (TOOLS_ONLY.includes(door)) return;
          policed.apply(policy);
          const ask = policed.ask(door, agent);
          for (const server of SERVERS) {
            for (const uri of ['note://7', 'memo://7']) {
              const { ok, text } = await used(ask, 'resource', `${server}_${uri}`);
              expect(ok, `${door}: ${server}_${uri} for ${agent}: ${text}`).toBe(
                naivelyReadable(policy, agent, server, uri),
              );
            }
          }
        },
      ),
      { numRuns: RUNS * 4 },
    );
  });
});
