import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { askedFor, catalogOf, contributionsOf, namedCatalog, type Offering } from '../../test/support/catalog.ts';
import { runs } from '../../test/support/wide.ts';
import { awayWith } from './away.ts';
import { type Absence, buildCatalog, type Catalog, EMPTY_CATALOG } from './catalog.ts';
import { KINDS } from './item.ts';
import type { Naming } from './names.ts';

const toolNames = (catalog: Catalog) => [...catalog.entries.tool.keys()];
const messages = (catalog: Catalog) => catalog.problems.map(({ source, message }) => `${source}: ${message}`);

it.each<[Absence['state'], boolean]>([
  ['starting', true],
  ['installing', true],
  ['down', false],
  ['crash_loop', false],
])('a server that is %s may turn out to have a name that it did not have before: %s', (state, isOpen) => {
  const absence = { state, reason: '', since: 0 };
  const [known] = contributionsOf([{ namespace: 'git', tool: ['log'], away: true }]);
  const catalog = buildCatalog(1, [{ ...known!, absence }], []);
  expect(awayWith(catalog, ['tool'], 'git_log')).toHaveLength(1);
  expect(awayWith(catalog, ['tool'], 'git_new')).toHaveLength(isOpen ? 1 : 0);
});

describe('buildCatalog', () => {
  it('lists every item under its exposed name, in configuration order and then in server order', () => {
    const catalog = catalogOf(
      { namespace: 'z', tool: ['b', 'a'], resource: ['x://1'], template: ['x://{id}'], prompt: ['p'] },
      { namespace: '', tool: ['c'], resource: ['x://1'], template: ['x://{id}'], prompt: ['p'] },
    );
    expect(toolNames(catalog)).toEqual(['z_b', 'z_a', 'c']);
    expect([...catalog.entries.resource.keys()]).toEqual(['z_x://1', 'x://1']);
    expect([...catalog.entries.template.keys()]).toEqual(['z_x://{id}', 'x://{id}']);
    expect([...catalog.entries.prompt.keys()]).toEqual(['z_p', 'p']);
    expect(catalog.problems).toEqual([]);
  });

  it('gives a contested name to the server listed first and reports the dropped item', () => {
    const catalog = catalogOf({ namespace: 'a', tool: ['b_c'] }, { namespace: 'a_b', tool: ['c', 'd'] });
    expect(toolNames(catalog)).toEqual(['a_b_c', 'a_b_d']);
    expect(catalog.entries.tool.get('a_b_c')?.sourceId).toBe(1);
    expect(messages(catalog)).toEqual([
      'a_b: tool "a_b_c" is dropped: server "a", which is listed first, has that name; give one of them another namespace',
    ]);
  });

  it('keeps the names of a namespace for its server, wherever a server without one is listed', () => {
    const bare = {
      namespace: '',
      key: 'bare',
      tool: ['e_echo', 'e_more', 'own'],
      prompt: ['e_p'],
      resource: ['e_n://1'],
      template: ['e_n://x/{id}'],
    };
    const own = { namespace: 'e', tool: ['echo'], resource: ['n://1'], template: ['n://{id}'] };
    for (const offerings of [
      [bare, own],
      [own, bare],
      [bare, { ...own, away: true }],
    ]) {
      const catalog = catalogOf(...offerings);
      const owners = KINDS.flatMap((kind) => [...catalog.claims[kind]]).filter(([name]) => name.startsWith('e_'));
      expect(owners.map(([name, entry]) => [name, entry?.sourceKey])).toEqual([
        ['e_echo', 'e'],
        ['e_n://1', 'e'],
        ['e_n://{id}', 'e'],
      ]);
      expect(toolNames(catalog)).toContain('own');
      expect(messages(catalog)).toContain(
        'bare: tool "e_more" is dropped: names that begin with "e_" belong to server "e"; give this server a namespace',
      );
    }
  });

  it('allows the same name for items of different kinds', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x'], resource: ['x'], template: ['x'], prompt: ['x'] });
    expect(KINDS.map((kind) => catalog.entries[kind].size)).toEqual([1, 1, 1, 1]);
    expect(catalog.problems).toEqual([]);
  });

  it('keeps the first of two items with the same name in one server and reports the other', () => {
    const twice = [
      { name: 'x', description: 'first' },
      { name: 'x', description: 'second' },
    ];
    const catalog = catalogOf({ namespace: 'a', tool: twice });
    expect(catalog.entries.tool.get('a_x')?.item.description).toBe('first');
    expect(messages(catalog)).toEqual(['a: tool "a_x" is dropped: the server lists that name twice']);
  });

  it('reserves the names of an unavailable server without listing anything under them', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x', 'y'], away: true }, { namespace: '', tool: ['x', 'z'] });
    expect(toolNames(catalog)).toEqual(['z']);
    expect(messages(catalog)).toEqual([
      'server-2: tool "x" is dropped: server "server-1", which is listed first, has that name; give one of them another namespace',
    ]);
  });

  it('reports no problems about an unavailable server', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x'] }, { namespace: '', tool: ['x', 'x'], away: true });
    expect(catalog.problems).toEqual([]);
  });

  it('refuses built-in tool names to servers, with or without a namespace', () => {
    const catalog = catalogOf(
      { namespace: 'toolman', tool: ['activate', 'other'], prompt: ['activate'] },
      { namespace: '', tool: ['toolman_activate'] },
    );
    expect(toolNames(catalog)).toEqual(['toolman_other']);
    expect([...catalog.entries.prompt.keys()]).toEqual(['toolman_activate']);
    const reason = 'the name belongs to Toolgate itself; give the server another namespace';
    expect(messages(catalog)).toEqual([
      `toolman: tool "toolman_activate" is dropped: ${reason}`,
      `server-2: tool "toolman_activate" is dropped: ${reason}`,
    ]);
  });

  it('passes on the problems found while listing', () => {
    const catalog = catalogOf({ namespace: 'a', tool: [{ title: 'no name' }, 'b'] });
    expect(toolNames(catalog)).toEqual(['a_b']);
    expect(messages(catalog)).toEqual(['a: tools/list: entry 1 was left out: it needs exactly one "name", a string']);
  });

  it('reuses the entries of items that did not change', () => {
    const contributions = contributionsOf([{ namespace: 'a', tool: ['b'] }]);
    const first = buildCatalog(1, contributions, []);
    const second = buildCatalog(2, contributions, []);
    expect(second.version).toBe(2);
    expect(second.entries.tool.get('a_b')).toBe(first.entries.tool.get('a_b'));
    expect(toolNames(EMPTY_CATALOG)).toEqual([]);
  });
});

describe('a catalog with flat names', () => {
  const flat: Naming = { names: 'flat', nameLimit: null };
  const flatOf = (...offerings: Offering[]) => namedCatalog(flat, ...offerings);

  it('gives the later of two equal names a new name derived from the item and reports it', () => {
    const catalog = flatOf(
      { namespace: 'a-b', tool: ['c', 'd'], prompt: ['c'] },
      { namespace: 'a.b', tool: ['c'], prompt: ['c'] },
    );
    expect(toolNames(catalog)).toEqual(['a_b_c', 'a_b_d', 'a_b_c_54712fb6']);
    expect(catalog.entries.tool.get('a_b_c_54712fb6')).toMatchObject({ sourceKey: 'a.b', upstreamName: '"c"' });
    expect([...catalog.entries.prompt.keys()]).toEqual(['a_b_c', 'a_b_c_54712fb6']);
    const reason = 'server "a-b", which is listed first, has that name; give one of them another namespace';
    expect(messages(catalog)).toEqual(
      ['tool', 'prompt'].map((kind) => `a.b: ${kind} "c" is exposed as "a_b_c_54712fb6", not "a_b_c": ${reason}`),
    );
  });

  it('keeps the derived name when other items change and while the first server is unavailable', () => {
    const later: Offering = { namespace: 'a.b', tool: ['c'] };
    for (const others of [
      [{ namespace: 'a-b', tool: ['c'], away: true }],
      [
        { namespace: 'x', tool: ['y'] },
        { namespace: 'a', tool: ['b/c'] },
      ],
    ]) {
      expect(toolNames(flatOf(...others, later))).toContain('a_b_c_54712fb6');
    }
    expect(toolNames(flatOf(later))).toEqual(['a_b_c']);
  });

  it('renames duplicates within one server too', () => {
    const catalog = flatOf({ namespace: 's', tool: ['x.y', 'x-y', 'x.y', 'x-y'] });
    expect(toolNames(catalog)).toEqual(['s_x_y', expect.stringMatching(/^s_x_y_[0-9a-f]{8}$/)]);
    expect(messages(catalog)).toEqual([
      `s: tool "x-y" is exposed as "${toolNames(catalog)[1]}", not "s_x_y": the server has that name for "x.y"`,
      's: tool "s_x_y" is dropped: the server lists that name twice',
      's: tool "s_x_y" is dropped: the server lists that name twice',
    ]);
  });

  it('refuses built-in tool names to servers', () => {
    const catalog = flatOf({ namespace: 'toolman', tool: ['activate'] });
    expect(toolNames(catalog)).toEqual([expect.stringMatching(/^toolman_activate_[0-9a-f]{8}$/)]);
    expect(messages(catalog)[0]).toContain('not "toolman_activate": the name belongs to Toolgate itself');
  });

  it('finds another name if a server already uses the derived one', () => {
    const catalog = flatOf({ namespace: 'a', tool: ['b_c', 'b_c_54712fb6'] }, { namespace: 'a.b', tool: ['c'] });
    const [, second, third] = toolNames(catalog);
    expect(catalog.entries.tool.get(second!)?.sourceKey).toBe('a');
    expect(third).toMatch(/^a_b_c_[0-9a-f]{8}$/);
    expect(third).not.toBe(second);
  });

  it('drops a duplicate resource, because its URI is never changed', () => {
    const catalog = flatOf(
      { namespace: 'a-b', resource: ['c-d:1'] },
      { namespace: 'a-b', key: 'z', resource: ['c-d:1'] },
    );
    expect([...catalog.entries.resource.keys()]).toEqual(['a-b_c-d:1']);
    expect(messages(catalog)[0]).toContain('resource "a-b_c-d:1" is dropped: server "a-b"');
  });
});

describe('a catalog with a limit for names', () => {
  it('drops the later of two items whose full joined names are equal', () => {
    const long = 'x'.repeat(40);
    const catalog = namedCatalog(
      { names: 'join', nameLimit: 24 },
      { namespace: 'a', tool: [`b_${long}`, `b_${long}y`], resource: [long] },
      { namespace: 'a_b', tool: [long] },
    );
    expect(toolNames(catalog)).toHaveLength(2);
    for (const name of toolNames(catalog)) expect(name).toMatch(/^a_b_x{11}_[0-9a-f]{8}$/);
    expect([...catalog.entries.resource.keys()]).toEqual([`a_${long}`]);
    expect(messages(catalog)).toEqual([
      expect.stringMatching(/^a_b: tool "a_b_x+_[0-9a-f]{8}" is dropped: server "a"/),
    ]);
  });
});

// Short names of few letters, so that names such as `a` + `b_c` and `a_b` + `c` often collide.
const word = fc.string({ unit: fc.constantFrom('a', 'b', '_'), maxLength: 4 });
const named = fc.array(word.filter(Boolean), { maxLength: 5 });
const offering: fc.Arbitrary<Offering> = fc.record({
  namespace: word,
  key: fc.uuid(),
  away: fc.boolean(),
  tool: named,
  resource: named,
  template: named,
  prompt: named,
});

describe('any catalog', () => {
  it('has one name per item and one item per name, and a call reaches the server that declares it', () => {
    fc.assert(
      fc.property(fc.array(offering, { maxLength: 5 }), (offerings) => {
        const contributions = contributionsOf(offerings);
        const catalog = buildCatalog(1, contributions, ['toolman_activate']);
        for (const kind of KINDS) {
          const claims = offerings.flatMap(({ namespace, ...rest }, at) =>
            (rest[kind] as string[]).map((name) => ({ at, name, exposed: namespace ? `${namespace}_${name}` : name })),
          );
          // A server without a namespace has no names of another server's namespace.
          const prefixes = offerings
            .filter(({ namespace }) => namespace !== '')
            .map(({ namespace }) => `${namespace}_`);
          const kept = claims.filter(
            ({ at, exposed }) => offerings[at]!.namespace !== '' || !prefixes.some((one) => exposed.startsWith(one)),
          );
          const identities = new Set<string>();
          for (const [name, entry] of catalog.entries[kind]) {
            const first = kept.find(({ exposed }) => exposed === name)!;
            const upstream = askedFor(entry.upstreamName);
            expect([entry.name, entry.sourceId, upstream]).toEqual([name, contributions[first.at]!.id, first.name]);
            expect(offerings[first.at]!.away).toBe(false);
            identities.add(`${entry.sourceId} ${upstream}`);
          }
          expect(identities.size).toBe(catalog.entries[kind].size);
          // An item that is not listed is unavailable, or was dropped and reported.
          const firsts = kept.filter(({ exposed }, i) => kept.findIndex((one) => one.exposed === exposed) === i);
          expect(catalog.entries[kind].size).toBe(firsts.filter(({ at }) => !offerings[at]!.away).length);
          const dropped = claims.filter((claim) => !firsts.includes(claim) && !offerings[claim.at]!.away);
          expect(catalog.problems.filter(({ message }) => message.startsWith(kind))).toHaveLength(dropped.length);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('with flat names maps each name to one item and back, and drops none', () => {
    const odd = fc.string({ unit: fc.constantFrom('a', '_', '.', '-', '日'), maxLength: 4 });
    const server = fc.record({
      namespace: odd,
      key: fc.uuid(),
      away: fc.boolean(),
      tool: fc.uniqueArray(odd.filter(Boolean), { maxLength: 6 }),
    });
    const nameLimit = fc.option(fc.constant(16));
    fc.assert(
      fc.property(fc.array(server, { maxLength: 6 }), nameLimit, (offerings, nameLimit) => {
        const naming: Naming = { names: 'flat', nameLimit };
        const catalog = namedCatalog(naming, ...offerings);
        expect(toolNames(namedCatalog(naming, ...offerings))).toEqual(toolNames(catalog));
        const back = new Set<string>();
        for (const [name, entry] of catalog.entries.tool) {
          expect(name).toMatch(/^[A-Za-z0-9_]+$/);
          expect(name.length).toBeLessThanOrEqual(nameLimit ?? Number.POSITIVE_INFINITY);
          expect(entry.name).toBe(name);
          back.add(JSON.stringify([entry.sourceKey, askedFor(entry.upstreamName)]));
        }
        const there = offerings.filter(({ away }) => !away);
        const items = there.flatMap(({ key, tool }) => tool.map((name) => JSON.stringify([key, name])));
        expect([...back].sort()).toEqual(items.sort());
        expect(catalog.entries.tool.size).toBe(items.length);
      }),
      { numRuns: runs(300) },
    );
  });
});
