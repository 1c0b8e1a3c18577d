import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { askedFor, catalogOf, type Offering } from '../../test/support/catalog.ts';
import { AGENTS, NAMES, naivelyAllowed, randomPolicy, SERVERS } from '../../test/support/policies.ts';
import { runs } from '../../test/support/wide.ts';
import { GatewayError } from '../base/errors.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { configFromValue } from '../config/load.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { createControls } from '../controls/controls.ts';
import { circumstancesAt, plainSubject } from './circumstances.ts';
import { findPrompt, findResource, findTool } from './find.ts';
import { narrowToPermission, permissionAt } from './permission.ts';
import { agentLimits, explain, isAllowed, rulesFor } from './policy.ts';
import { startSelection } from './selection.ts';
import { buildView, type View } from './view.ts';

const catalog = catalogOf(...SERVERS.map((namespace) => ({ namespace, ...NAMES })));
const entriesOf = (kind: Kind) => [...catalog.entries[kind].values()];
const now = circumstancesAt(plainSubject('a'), Date.now());

function policyOf(value: object): PolicyConfig | null {
  return configFromValue(value, { cwd: '/', env: {} }).policy;
}

function viewFor(policy: PolicyConfig | null, agent: string, patterns: string[] | null = null): View {
  const permission = permissionAt(policy, plainSubject(agent), now.now.getTime());
  const controls = createControls(patterns === null ? [] : ['activate']);
  return buildView(narrowToPermission(catalog, permission), startSelection(patterns), controls, permission);
}

/** What the caller gets for a name: the item, or the text of the refusal. */
function look(view: View, kind: Kind, name: string): string {
  try {
    if (kind === 'tool') return findTool(view, name).name;
    if (kind === 'prompt') return findPrompt(view, name).name;
    const { entry, upstreamName } = findResource(view, name);
    return `${entry.name} ${askedFor(upstreamName)}`;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return `${error.code}: ${error.message.replaceAll(name, 'NAME')}`;
  }
}

const listed = (view: View, kind: Kind) => [...view.entries[kind].keys()];

describe('a random policy', () => {
  it('decides as a direct implementation of the specification does', () => {
    fc.assert(
      fc.property(randomPolicy, (file) => {
        const policy = policyOf(file);
        for (const agent of AGENTS) {
          for (const entry of KINDS.flatMap(entriesOf)) {
            const expected = naivelyAllowed(file, agent, entry.sourceKey, entry.kind, entry.item.name);
            if (policy === null) expect(expected).toBe(true);
            else {
              const rules = rulesFor(policy, agent);
              expect(isAllowed(rules, entry, now), `${agent} ${entry.name}`).toBe(expected);
              const { allowed, findings } = explain(rules, entry, now);
              expect(allowed).toBe(expected);
              expect(findings.at(-1)!.verdict).toBe(expected ? 'allow' : 'deny');
            }
          }
        }
      }),
      { numRuns: runs(400) },
    );
  });

  it('lists exactly the items that can be called, by any of their names', () => {
    fc.assert(
      fc.property(randomPolicy, fc.constantFrom(...AGENTS), (file, agent) => {
        const view = viewFor(policyOf(file), agent);
        for (const kind of KINDS) {
          const may = entriesOf(kind).filter(({ sourceKey, item }) =>
            naivelyAllowed(file, agent, sourceKey, kind, item.name),
          );
          expect(listed(view, kind)).toEqual(may.map(({ name }) => name));
          if (kind === 'template') continue;
          for (const entry of entriesOf(kind)) {
            const { name, item, sourceKey } = entry;
            const found = may.includes(entry);
            expect(look(view, kind, name).includes(name) && !look(view, kind, name).includes('NAME'), name).toBe(found);
            for (const alias of [`${sourceKey}:${item.name}`, `${sourceKey}.${item.name}`]) {
              if (kind !== 'resource') expect(look(view, kind, alias) === name, alias).toBe(found);
            }
          }
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('answers for a hidden item as for one that does not exist, active or not', () => {
    fc.assert(
      fc.property(
        randomPolicy,
        fc.constantFrom(...AGENTS),
        fc.constantFrom<string[] | null>(null, [], ['*']),
        (file, agent, patterns) => {
          const view = viewFor(policyOf(file), agent, patterns);
          const bare = catalogOf(
            ...SERVERS.map((namespace) => ({
              namespace,
              ...Object.fromEntries(
                KINDS.map((kind) => [
                  kind,
                  NAMES[kind].filter((name) => naivelyAllowed(file, agent, namespace, kind, name)),
                ]),
              ),
            })),
          );
          const without = buildView(
            bare,
            startSelection(patterns),
            createControls(patterns === null ? [] : ['activate']),
          );
          const names = (kind: Kind) => [
            ...entriesOf(kind).flatMap(({ name, item, sourceKey }) => [name, item.name, `${sourceKey}:${item.name}`]),
          ];
          for (const kind of ['tool', 'prompt'] as const) {
            for (const name of names(kind)) expect(look(view, kind, name)).toBe(look(without, kind, name));
          }
          // The one exception: a template does not lead to a resource that is hidden by its own name.
          for (const uri of names('resource')) {
            const asBare = look(without, 'resource', uri);
            const seen = look(view, 'resource', uri);
            if (!asBare.includes('{id}')) expect(seen).toBe(asBare);
          }
          expect(listed(view, 'tool')).toEqual(listed(without, 'tool'));
          const text = (one: View) => one.list('tool', 'legacy').toString();
          expect(text(view)).toBe(text(without));
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

describe('the policy decision', () => {
  const entry = (name: string) =>
    KINDS.map((kind) => catalog.entries[kind].get(name)).find((one) => one !== undefined)!;
  const may = (file: object, agent: string, name: string) => {
    const policy = policyOf(file);
    return policy === null || isAllowed(rulesFor(policy, agent), entry(name), now);
  };

  it('allows everything without a policy and denies by default with one', () => {
    expect(may({}, 'a', 'git_read')).toBe(true);
    expect(may({ default_policy: {} }, 'a', 'git_read')).toBe(false);
    expect(may({ agent_policies: {} }, 'a', 'git_read')).toBe(true);
    expect(may({ agent_policies: { b: {} } }, 'a', 'git_read')).toBe(false);
    expect(may({ exposed_tools: { hub: ['read'] } }, 'a', 'git_read')).toBe(false);
  });

  it('closes resources and prompts where it closes tools, unless a rule opens them', () => {
    const exposed = { exposed_tools: { hub: ['read'] } };
    for (const name of ['greet', 'note://1', 'note://{id}']) {
      expect([may(exposed, 'a', `git_${name}`), may(exposed, 'a', `hub_${name}`)]).toEqual([false, true]);
      expect(may({ default_policy: {} }, 'a', `git_${name}`)).toBe(false);
      expect(may({ exposed_tools: { git: [] } }, 'a', `git_${name}`)).toBe(false);
      expect(may({ denied_tools: { git: ['*'] } }, 'a', `git_${name}`)).toBe(false);
      expect(may({ denied_tools: { git: ['drop'] } }, 'a', `git_${name}`)).toBe(true);
      const own = { ...exposed, agent_policies: { a: { tool_overrides: { git: ['read'], hub: [] } } } };
      expect([may(own, 'a', `git_${name}`), may(own, 'a', `hub_${name}`)]).toEqual([true, false]);
      expect([may(own, 'b', `git_${name}`), may(own, 'b', `hub_${name}`)]).toEqual([false, true]);
      const open = { allow_unknown_resources: true, allow_unknown_prompts: true };
      expect(may({ ...exposed, default_policy: open }, 'a', `git_${name}`)).toBe(true);
      const named = { exposed_resources: { git: ['note:*'] }, exposed_prompts: { git: ['greet'] } };
      expect(may({ ...exposed, ...named }, 'a', `git_${name}`)).toBe(true);
    }
  });

  it('does not deny everything because one item is denied', () => {
    const file = { denied_tools: { git: ['drop'] } };
    expect(may(file, 'a', 'git_read')).toBe(true);
    expect(may(file, 'a', 'git_drop')).toBe(false);
    expect(may(file, 'a', 'hub_drop')).toBe(true);
  });

  it('handles the example of the specification', () => {
    const file = {
      exposed_tools: { git: ['read', 'drop'], hub: ['read', 'write', 'drop'] },
      agent_policies: { 'claude-code': { allowed_servers: ['git', 'hub'], tool_overrides: { git: ['read'] } } },
    };
    expect(may(file, 'claude-code', 'git_read')).toBe(true);
    expect(may(file, 'claude-code', 'git_drop')).toBe(false);
    expect(may(file, 'claude-code', 'hub_drop')).toBe(true);
    expect(may(file, 'claude-code', 'db_read')).toBe(false);
    expect(may(file, 'other', 'git_drop')).toBe(true);
    expect(may(file, 'other', 'db_read')).toBe(false);
  });

  it('denies built-in tools only by name', () => {
    const denied = viewFor(policyOf({ denied_tools: { toolgate: ['toolman_*'] } }), 'a', ['*']);
    expect(listed(denied, 'tool')).not.toContain('toolman_activate');
    expect(look(denied, 'tool', 'toolman_activate')).toContain('There is no tool');
    const closed = viewFor(policyOf({ agent_policies: { a: { allowed_servers: [] } } }), 'a', ['*']);
    expect(listed(closed, 'tool')).toEqual(['toolman_activate']);
  });
});

describe('a resource template under a policy', () => {
  const seen = (file: object, uri: string) => look(viewFor(policyOf(file), 'a'), 'resource', uri);

  it('does not reach a resource that is denied or hidden by name', () => {
    const denied = { denied_resources: { git: ['note://secret*', 'note://2'] } };
    expect(seen(denied, 'git_note://7')).toBe('git_note://{id} note://7');
    for (const uri of ['git_note://secret-1', 'git_note://2']) expect(seen(denied, uri)).toMatch(/^resource_unknown: /);
    const hidden = { exposed_resources: { git: ['note://1', 'note://{id}'], '*': [] } };
    expect(seen(hidden, 'git_note://1')).toBe('git_note://1 note://1');
    expect(seen(hidden, 'git_note://7')).toBe('git_note://{id} note://7');
    expect(seen(hidden, 'git_note://2')).toMatch(/^resource_unknown: /);
    expect(seen(hidden, 'note://2')).toMatch(/^resource_unknown: /);
  });

  it('does not reach a resource whose condition is not met, in no spelling', () => {
    const conditions = [{ resources: ['git.note://secret*'], days: [] }];
    expect(seen({ conditions }, 'git_note://7')).toBe('git_note://{id} note://7');
    for (const uri of ['git_note://secret-1', 'git_note://%73ecret-1'])
      expect(seen({ conditions }, uri)).toMatch(/^resource_unknown: /);
  });
});

function limitsOf(agent: string, value: object) {
  return agentLimits(configFromValue(value, { cwd: '/', env: {} }).policy, agent);
}

describe('the limits of an agent', () => {
  it('are absent if nothing configures them', () => {
    expect(limitsOf('a', {})).toBeNull();
    expect(limitsOf('a', { exposed_tools: { x: ['*'] } })).toBeNull();
    expect(limitsOf('a', { agent_policies: { b: { limits: { rate: '1/s' } } } })).toBeNull();
  });

  it('come from the agent’s policy, then from those it extends, key by key', () => {
    const value = {
      agent_policies: {
        child: {
          extends: ['left', 'right'],
          limits: { concurrency: 1 },
          tool_limits: { 'x.*': { concurrency: 2 }, 'x.own': { rate: '9/s' } },
        },
        left: { limits: { concurrency: 5, queue: 6 }, tool_limits: { 'x.*': { concurrency: 7, queue: 8 } } },
        right: { limits: { queue: 9, calls_per_day: 10 } },
        'team-*': { limits: { max_result: '1KiB' } },
      },
    };
    expect(limitsOf('child', value)).toMatchObject({
      all: { concurrency: 1, queue: 6, callsPerDay: 10, rate: null, maxResult: null },
      tools: [
        { tool: 'x.*', concurrency: 2, queue: 8 },
        { tool: 'x.own', concurrency: null, rate: { count: 9, period: 1_000, text: '9/s' } },
      ],
    });
    expect(limitsOf('team-a', value)).toMatchObject({ all: { maxResult: 1_024 }, tools: [] });
  });

  it('fall back to the defaults if the agent has none of its own', () => {
    const value = {
      agent_policies: { own: { limits: { queue: 0 } }, none: { description: 'x' } },
      default_policy: { limits: { rate: '2/m' }, tool_limits: { 'a.b': { timeout: '1s' } } },
    };
    const fallback = { all: { rate: { count: 2, period: 60_000 } }, tools: [{ tool: 'a.b', timeout: 1_000 }] };
    expect(limitsOf('none', value)).toMatchObject(fallback);
    expect(limitsOf('stranger', value)).toMatchObject(fallback);
    expect(limitsOf('own', value)).toMatchObject({ all: { rate: null, queue: 0 }, tools: [{ tool: 'a.b' }] });
  });

  it('do not deny any item', () => {
    const allowed = (value: object) => configFromValue(value, { cwd: '/', env: {} }).policy?.allowUnknown.tool;
    expect(allowed({ default_policy: { limits: { rate: '2/m' } } })).toBe(true);
    expect(allowed({ agent_policies: { a: { limits: { rate: '2/m' }, description: 'x' } } })).toBe(true);
    expect(allowed({ agent_policies: { a: { limits: { rate: '2/m' }, allowed_servers: ['x'] } } })).toBe(false);
    expect(allowed({ default_policy: { limits: { rate: '2/m' }, allow_unknown_tools: false } })).toBe(false);
    expect(allowed({ default_policy: {} })).toBe(false);
  });
});

describe('a URI that is not in its usual spelling', () => {
  /** Which of two spellings an agent may read, with the rules given. */
  function readable(offering: Offering, rules: object, uris: readonly string[]): string[] {
    const permission = permissionAt(policyOf({ servers: { n: { command: 'x' } }, ...rules }), plainSubject('a'), 0);
    const permitted = narrowToPermission(catalogOf(offering), permission);
    const view = buildView(permitted, startSelection(null), createControls([]), permission);
    return uris.filter((uri) => look(view, 'resource', uri).startsWith('n_'));
  }

  it.each<[string, Offering, object]>([
    [
      'a URI is denied by name',
      { namespace: 'n', template: ['n://{+path}'] },
      { denied_resources: { n: ['n://secret'] } },
    ],
    [
      'a listed resource is not exposed',
      { namespace: 'n', resource: ['n://secret'], template: ['n://{+path}'] },
      { exposed_resources: { n: ['n://{+path}'] } },
    ],
    [
      'only a pattern of URIs is exposed',
      { namespace: 'n', template: ['n://{+path}'] },
      { exposed_resources: { n: ['n://public/*'] } },
    ],
  ])('is refused where %s', (_, offering, rules) => {
    const usual = 'n_n://public/a';
    const unusual = ['n_n://public//a', 'n_n://public/./a', 'n_n://public/%61', 'n_n://public/a?', 'n_N://public/a'];
    expect(readable(offering, rules, [usual, ...unusual])).toEqual([usual]);
  });
});
