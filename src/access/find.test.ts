import { describe, expect, it } from 'vitest';
import { askedFor, catalogOf, namedCatalog, type Offering } from '../../test/support/catalog.ts';
import { GatewayError } from '../base/errors.ts';
import type { Entry } from '../catalog/entry.ts';
import { LONGEST_URI } from '../catalog/template.ts';
import { createControls } from '../controls/controls.ts';
import { UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { type FoundResource, findPrompt, findResource, findTemplate, findTool } from './find.ts';
import { startSelection } from './selection.ts';
import { buildView } from './view.ts';

const viewOf = (patterns: string[], ...offerings: Offering[]) =>
  buildView(catalogOf(...offerings), startSelection(patterns), createControls(['activate']));

/** Which server is asked for what. */
const target = (found: Entry | FoundResource) => [
  'entry' in found ? found.entry.sourceKey : found.sourceKey,
  askedFor(found.upstreamName),
];

function failure(find: () => unknown): { code: string; message: string } {
  try {
    find();
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('it was found');
}

describe('findTool', () => {
  const view = viewOf(['git_s*'], { namespace: 'git', tool: ['status', 'commit'] });

  it('finds an active tool and returns its server’s name for it', () => {
    expect(target(findTool(view, 'git_status'))).toEqual(['git', 'status']);
  });

  it('explains how to activate an inactive tool', () => {
    expect(failure(() => findTool(view, 'git_commit'))).toEqual({
      code: 'item_inactive',
      message:
        'The tool "git_commit" is not active. Activate it first: call toolman_activate with "git_commit" in tools_on.',
    });
  });

  it('suggests similar names for an unknown one, active or not', () => {
    expect(failure(() => findTool(view, 'git_comit'))).toEqual({
      code: 'item_unknown',
      message: 'There is no tool "git_comit". Did you mean "git_commit"?',
    });
    expect(failure(() => findTool(view, 'toolman_activat')).message).toContain('"toolman_activate"');
    expect(failure(() => findTool(view, 'zzz')).message).toBe(
      'There is no tool "zzz". List the tools to see their names.',
    );
  });

  it('does not find names of Object.prototype members', () => {
    for (const name of ['', '__proto__', 'constructor', 'toString']) {
      expect(failure(() => findTool(view, name)).code).toBe('item_unknown');
    }
  });
});

describe('an alias', () => {
  const offerings: Offering[] = [
    { namespace: 'git', tool: ['status', 'commit', 'log.all', 'git.raw'] },
    { namespace: 'my.hub', tool: ['status', 'merge', 'git_status', 'git:status', 'git.commit', 'odd:name'] },
  ];
  const all = viewOf(['*'], ...offerings);
  const some = viewOf(['git_s*', 'my.hub_m*'], ...offerings);

  it.each([
    ['git:status', 'git', 'status'],
    ['git.status', 'git', 'status'],
    ['git.log.all', 'git', 'log.all'],
    ['my.hub.status', 'my.hub', 'status'],
    ['my.hub:git:status', 'my.hub', 'git:status'],
    ['commit', 'git', 'commit'],
    ['log.all', 'git', 'log.all'],
    ['merge', 'my.hub', 'merge'],
    ['odd:name', 'my.hub', 'odd:name'],
  ])('%s is resolved', (alias, ...expected) => {
    expect(target(findTool(all, alias))).toEqual(expected);
  });

  it('resolves to the entry in the view', () => {
    expect(findTool(all, 'git:status')).toBe(all.entries.tool.get('git_status'));
  });

  it('with a server prefix resolves to that server, even if another server uses the whole alias as a name', () => {
    expect(target(findTool(all, 'git:status'))).toEqual(['git', 'status']);
    expect(failure(() => findTool(some, 'git.commit')).message).toContain('with "git_commit" in tools_on');
    expect(failure(() => findTool(viewOf(['my*'], ...offerings), 'git:status')).code).toBe('item_inactive');
    expect(target(findTool(all, 'git.raw'))).toEqual(['git', 'git.raw']);
    const down = viewOf(['*'], { namespace: 'git', away: true }, offerings[1]!);
    expect(failure(() => findTool(down, 'git:status')).code).toBe('item_unknown');
  });

  it('never overrides an exposed name, whether active, inactive or unavailable', () => {
    expect(target(findTool(all, 'git_status'))).toEqual(['git', 'status']);
    expect(failure(() => findTool(viewOf(['my*'], ...offerings), 'git_status')).message).toContain('with "git_status"');
    for (const patterns of [['*'], []]) {
      const away = viewOf(patterns, { ...offerings[0]!, away: true }, offerings[1]!);
      expect(failure(() => findTool(away, 'git_status')).code).toBe('item_unknown');
    }
  });

  it('does not reach an inactive item', () => {
    for (const alias of ['git:commit', 'git.commit', 'commit']) {
      expect(failure(() => findTool(some, alias))).toEqual({
        code: 'item_inactive',
        message: `The tool "${alias}" is not active. Activate it first: call toolman_activate with "git_commit" in tools_on.`,
      });
    }
  });

  it('without a server must be unique in the view', () => {
    expect(target(findTool(some, 'status'))).toEqual(['git', 'status']);
    for (const [view, several] of [
      [all, '"git_status", "my.hub_status"'],
      [viewOf([], ...offerings), '"git_status", "my.hub_status"'],
    ] as const) {
      expect(failure(() => findTool(view, 'status'))).toEqual({
        code: 'item_unknown',
        message: `Several tools are called "status". Use one of these names: ${several}.`,
      });
    }
  });

  it('may name a server by key or namespace, and the key wins if both match', () => {
    const shared = viewOf(
      ['*'],
      { namespace: 'a', tool: ['x'] },
      { namespace: 'a', key: 'server-2', tool: ['y'] },
      { namespace: '', key: 'server-3', tool: ['z'] },
    );
    expect(target(findTool(shared, 'a:x'))).toEqual(['a', 'x']);
    expect(target(findTool(shared, 'a:y'))).toEqual(['server-2', 'y']);
    expect(target(findTool(shared, 'server-2:y'))).toEqual(['server-2', 'y']);
    expect(target(findTool(shared, 'server-3.z'))).toEqual(['server-3', 'z']);
    for (const alias of [':z', '.z', 'a:', 'a:z', 'b:x', 'a']) {
      expect(failure(() => findTool(shared, alias)).code, alias).toBe('item_unknown');
    }
    const naming = { names: 'flat', nameLimit: null } as const;
    const twins = [
      { namespace: 'a', tool: ['x'] },
      { namespace: 'a', key: 'server-2', tool: ['x'] },
    ];
    const flatView = (...offerings: Offering[]) =>
      buildView(namedCatalog(naming, ...offerings), startSelection(['*']), createControls(['activate']));
    expect(target(findTool(flatView(...twins), 'a:x'))).toEqual(['a', 'x']);
    expect(target(findTool(flatView(...twins), 'server-2:x'))).toEqual(['server-2', 'x']);
    expect(failure(() => findTool(flatView({ ...twins[0]!, away: true }, twins[1]!), 'a:x')).code).toBe('item_unknown');
  });

  it('finds shortened and renamed items', () => {
    const naming = { names: 'flat', nameLimit: 16 } as const;
    const long = 'a-very-long-name-of-a-tool';
    const view = buildView(
      namedCatalog(naming, { namespace: 's', tool: [long] }),
      startSelection(null),
      createControls([]),
    );
    for (const alias of [long, `s:${long}`, `s.${long}`]) expect(target(findTool(view, alias))).toEqual(['s', long]);
  });

  it('is looked up quickly even if it is very long', () => {
    const started = process.cpuUsage();
    for (const part of ['.', 'git.', 'git:status:']) {
      expect(failure(() => findTool(all, part.repeat(200_000))).code).toBe('item_unknown');
    }
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(1000);
  });

  it('works for prompts and does not confuse them with tools', () => {
    const view = viewOf([], { namespace: 'a', prompt: ['greet'], tool: ['run'] });
    for (const alias of ['greet', 'a:greet', 'a.greet'])
      expect(target(findPrompt(view, alias))).toEqual(['a', 'greet']);
    expect(failure(() => findPrompt(view, 'run')).code).toBe('item_unknown');
  });
});

describe('findPrompt', () => {
  it('finds every prompt and suggests prompts only', () => {
    const view = viewOf([], { namespace: 'a', prompt: ['greet'], tool: ['greet_all'] });
    expect(target(findPrompt(view, 'a_greet'))).toEqual(['a', 'greet']);
    expect(failure(() => findPrompt(view, 'a_great'))).toEqual({
      code: 'item_unknown',
      message: 'There is no prompt "a_great". Did you mean "a_greet"?',
    });
  });
});

describe('findResource', () => {
  it('prefers an exact exposed URI over a matching template', () => {
    const view = viewOf(['*'], { namespace: 'a', resource: ['n://1'], template: ['n://{id}'] });
    expect(findResource(view, 'a_n://1').entry.kind).toBe('resource');
    expect(findResource(view, 'a_n://2').entry.kind).toBe('template');
  });

  it('strips the prefix of a URI expanded from a template and leaves the rest unchanged', () => {
    const view = viewOf(['*'], { namespace: 'a', template: ['n://{id}/{+path}'] });
    for (const uri of ['n://x%20"/b/../c?d#e', 'n://日/😀\\\n']) {
      expect(target(findResource(view, `a_${uri}`))).toEqual(['a', uri]);
      expect(target(findResource(view, uri))).toEqual(['a', uri]);
    }
  });

  it('compares no template with a URI that is too long, and finds a listed resource of any length', () => {
    const long = `n://${'x'.repeat(LONGEST_URI)}`;
    const view = viewOf(['*'], { namespace: 'a', resource: [long], template: ['n://{id}', 'm://{id}'] });
    expect(target(findResource(view, `a_${long}`))).toEqual(['a', long]);
    const most = `a_m://${'x'.repeat(LONGEST_URI - 6)}`;
    expect(findResource(view, most).entry.kind).toBe('template');
    expect(failure(() => findResource(view, `${most}x`)).code).toBe('too_large');
  });

  it('picks the most specific of several matching templates', () => {
    const view = viewOf(['*'], { namespace: 'a', template: ['{+all}', 'n://{id}'] });
    expect(findResource(view, 'a_n://1').entry.name).toBe('a_n://{id}');
    expect(findResource(view, 'a_other').entry.name).toBe('a_{+all}');
  });

  it('accepts a bare URI that exactly one active server owns, by name or by template', () => {
    const view = viewOf(
      ['*'],
      { namespace: 'a', resource: ['n://1'] },
      { namespace: 'b', resource: ['m://1'], template: ['m://{id}'] },
    );
    expect(target(findResource(view, 'n://1'))).toEqual(['a', 'n://1']);
    expect(findResource(view, 'm://1').entry.name).toBe('b_m://1');
    expect(target(findResource(view, 'm://2'))).toEqual(['b', 'm://2']);
  });

  it('leaves a bare URI to the server that lists it, whatever templates others have', () => {
    const own: Offering = { namespace: 'a', resource: ['n://1'] };
    const other: Offering = { namespace: 'b', template: ['n://{id}', '{+all}'] };
    for (const view of [viewOf(['*'], own, other), viewOf(['*'], other, own)])
      expect(target(findResource(view, 'n://1'))).toEqual(['a', 'n://1']);
  });

  it('leaves a bare URI to the server whose result named it, whatever others offer', () => {
    const view = viewOf(
      ['*'],
      { namespace: 'b', resource: ['n://1'], template: ['n://{id}', '{+all}'] },
      { namespace: 'a', template: ['n://{id}', '{+any}'] },
    );
    for (const uri of ['n://1', 'n://2', 'x']) expect(target(findResource(view, uri, 2))).toEqual(['a', uri]);
    // A server without such a resource has no say.
    expect(target(findResource(view, 'n://1', 3))).toEqual(['b', 'n://1']);
  });

  it('does not give a bare URI to a template that could make any', () => {
    const view = viewOf(['*'], { namespace: 'b', template: ['{+all}', '{scheme}://{id}'] });
    expect(failure(() => findResource(view, 'n://1')).code).toBe('resource_unknown');
    const both = viewOf(['*'], { namespace: 'b', template: ['{+all}'] }, { namespace: 'a', template: ['n://{id}'] });
    expect(target(findResource(both, 'n://1'))).toEqual(['a', 'n://1']);
  });

  it('lists the exposed names when several active servers list a bare URI, unless a result named it', () => {
    const view = viewOf(['*'], { namespace: 'a', resource: ['n://1'] }, { namespace: 'b', resource: ['n://1'] });
    const { code, message } = failure(() => findResource(view, 'n://1'));
    expect(code).toBe('params_invalid');
    expect(message).toContain('"a_n://1", "b_n://1"');
    expect(target(findResource(view, 'n://1', 2))).toEqual(['b', 'n://1']);
  });

  it('lists the exposed names when several active servers make a bare URI', () => {
    const view = viewOf(['*'], { namespace: 'a', template: ['n://{id}'] }, { namespace: 'b', template: ['n://{+id}'] });
    const { code, message } = failure(() => findResource(view, 'n://1'));
    expect(code).toBe('params_invalid');
    expect(message).toContain('Several servers have "n://1"');
    expect(message).toContain('"a_n://{id}"');
    expect(message).toContain('"b_n://{+id}"');
  });

  it('accepts a bare URI if only one of its owners is active', () => {
    const view = viewOf(['b_*'], { namespace: 'a', resource: ['n://1'] }, { namespace: 'b', resource: ['n://1'] });
    expect(target(findResource(view, 'n://1'))).toEqual(['b', 'n://1']);
  });

  it('keeps a resource off that was switched off by name, even if an active template matches it', () => {
    const view = viewOf(['a_n://{id}'], { namespace: 'a', resource: ['n://1'], template: ['n://{id}'] });
    for (const uri of ['a_n://1', 'n://1']) {
      const { code, message } = failure(() => findResource(view, uri));
      expect(code).toBe('item_inactive');
      expect(message).toContain('call toolman_activate with "a_n://1" in resources_on');
    }
    expect(target(findResource(view, 'a_n://2'))).toEqual(['a', 'n://2']);
  });

  it('explains how to activate the template that matches a URI', () => {
    const view = viewOf([], { namespace: 'a', template: ['n://{id}'] });
    for (const uri of ['a_n://7', 'n://7']) {
      expect(failure(() => findResource(view, uri)).message).toContain('with "a_n://{id}" in resources_on');
    }
  });

  it('suggests the resource itself over a template if both are inactive', () => {
    const view = viewOf([], { namespace: 'a', resource: ['n://1'], template: ['n://{id}'] });
    expect(failure(() => findResource(view, 'n://1')).message).toContain('with "a_n://1" in resources_on');
  });

  it('suggests resources and templates for an unknown URI', () => {
    const view = viewOf([], { namespace: 'a', resource: ['note://first'], template: ['memo://{id}/text'] });
    expect(failure(() => findResource(view, 'a_note://frist'))).toEqual({
      code: 'resource_unknown',
      message: 'There is no resource "a_note://frist". Did you mean "a_note://first"?',
    });
    expect(failure(() => findResource(view, 'a_memo://id/text/')).message).toContain('"a_memo://{id}/text"');
  });
});

describe('a URI with the namespace in its scheme', () => {
  it('finds what the exposed URI finds', () => {
    const view = viewOf(
      ['*'],
      { namespace: 'my_A', resource: ['n://1', 'my_app://a b'], template: ['n://{id}', 'odd_app://{id}'] },
      { namespace: '', template: ['{+all}'] },
    );
    expect(target(findResource(view, 'my...a+n://1'))).toEqual(['my_A', 'n://1']);
    expect(target(findResource(view, 'my...a+-:my_app://a%20b'))).toEqual(['my_A', 'my_app://a b']);
    expect(target(findResource(view, 'my...a+n://a%20b'))).toEqual(['my_A', 'n://a%20b']);
    expect(target(findResource(view, 'my...a+-:odd_app://a%20b'))).toEqual(['my_A', 'odd_app://a%20b']);
    expect(findTemplate(view, 'my...a+n://{id}')).toBe(findTemplate(view, 'my_A_n://{id}'));
    expect(findTemplate(view, 'my...a+-:odd_app://{id}')?.name).toBe('my_A_odd_app://{id}');
    expect(findTemplate(view, 'my...a+n://{other}')).toBeUndefined();
  });

  it('never overrides an exposed URI', () => {
    const own: Offering = { namespace: '', key: 'own', resource: ['a+n://1'], template: ['a+m://{id}'] };
    const other: Offering = { namespace: 'a', resource: ['n://1', 'n://2'], template: ['m://{id}'] };
    for (const offerings of [
      [own, other],
      [other, own],
    ]) {
      const view = viewOf(['*'], ...offerings);
      expect(target(findResource(view, 'a+n://1'))).toEqual(['own', 'a+n://1']);
      expect(target(findResource(view, 'a+m://1'))).toEqual(['own', 'a+m://1']);
      expect(target(findResource(view, 'a+-:n://1'))).toEqual(['a', 'n://1']);
      expect(target(findResource(view, 'a+n://2'))).toEqual(['a', 'n://2']);
    }
  });

  it('does not open what is inactive or unavailable, not even through a template', () => {
    const items = { namespace: 'a', resource: ['n://1', 'm_m://1'], template: ['n://{id}', 'm_m://{id}'] };
    const view = viewOf(['*{id}'], items);
    for (const uri of ['a+n://1', 'a+-:n://1', 'a+-:m_m://1']) {
      const { code, message } = failure(() => findResource(view, uri));
      expect(code).toBe('item_inactive');
      expect(message).toContain(`The resource "${uri}" is not active`);
    }
    expect(failure(() => findResource(viewOf([], items), 'a+n://7')).message).toContain('with "a_n://{id}"');
    expect(failure(() => findResource(viewOf(['*'], { ...items, away: true }), 'a+n://1')).code).toBe(
      'resource_unknown',
    );
    expect(failure(() => findResource(view, 'b+n://1')).code).toBe('resource_unknown');
  });

  it('is what errors name for clients that need it', () => {
    const styled = (...offerings: Offering[]) =>
      buildView(catalogOf(...offerings), startSelection(null), createControls([]), null, UNKNOWN_CLIENT, 'scheme');
    const both = styled({ namespace: 'a', template: ['n://{id}'] }, { namespace: 'b', template: ['n://{id}'] });
    expect(failure(() => findResource(both, 'n://first')).message).toContain('"a+n://{id}", "b+n://{id}"');
    const one = styled({ namespace: 'a', resource: ['n://first'] });
    expect(failure(() => findResource(one, 'a+n://frist')).message).toContain('Did you mean "a+n://first"');
  });
});
