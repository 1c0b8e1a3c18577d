import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { askedFor, catalogOf, contributionsOf, type Offering } from '../../test/support/catalog.ts';
import { buildCatalog, type Catalog, EMPTY_CATALOG } from './catalog.ts';
import { KINDS } from './item.ts';

const toolNames = (catalog: Catalog) => [...catalog.entries.tool.keys()];
const messages = (catalog: Catalog) => catalog.problems.map(({ source, message }) => `${source}: ${message}`);

describe('buildCatalog', () => {
  it('lists everything under its exposed name, in the order of the configuration and then of the server', () => {
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

  it('gives a name to the server that is listed first and reports the one that is dropped', () => {
    const catalog = catalogOf({ namespace: 'a', tool: ['b_c'] }, { namespace: 'a_b', tool: ['c', 'd'] });
    expect(toolNames(catalog)).toEqual(['a_b_c', 'a_b_d']);
    expect(catalog.entries.tool.get('a_b_c')?.sourceId).toBe(1);
    expect(messages(catalog)).toEqual([
      'a_b: tool "a_b_c" is dropped: server "a", which is listed first, has that name; give one of them another namespace',
    ]);
  });

  it('lets different kinds have the same name', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x'], resource: ['x'], template: ['x'], prompt: ['x'] });
    expect(KINDS.map((kind) => catalog.entries[kind].size)).toEqual([1, 1, 1, 1]);
    expect(catalog.problems).toEqual([]);
  });

  it('keeps the first of two items with one name in one server, and says so', () => {
    const twice = [
      { name: 'x', description: 'first' },
      { name: 'x', description: 'second' },
    ];
    const catalog = catalogOf({ namespace: 'a', tool: twice });
    expect(catalog.entries.tool.get('a_x')?.item.description).toBe('first');
    expect(messages(catalog)).toEqual(['a: tool "a_x" is dropped: the server lists that name twice']);
  });

  it('keeps the names of a server that is away taken, and lists nothing under them', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x', 'y'], away: true }, { namespace: '', tool: ['x', 'z'] });
    expect(toolNames(catalog)).toEqual(['z']);
    expect(messages(catalog)).toEqual([
      'server-2: tool "x" is dropped: server "server-1", which is listed first, has that name; give one of them another namespace',
    ]);
  });

  it('says nothing about a server that is away', () => {
    const catalog = catalogOf({ namespace: '', tool: ['x'] }, { namespace: '', tool: ['x', 'x'], away: true });
    expect(catalog.problems).toEqual([]);
  });

  it('lets no server have a name of Toolgate’s own, be it spelled with a namespace or without', () => {
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

  it('passes on what went wrong while listing', () => {
    const catalog = catalogOf({ namespace: 'a', tool: [{ title: 'no name' }, 'b'] });
    expect(toolNames(catalog)).toEqual(['a_b']);
    expect(messages(catalog)).toEqual(['a: tools/list: entry 1 was left out: it needs exactly one "name", a text']);
  });

  it('makes nothing anew that did not change', () => {
    const contributions = contributionsOf([{ namespace: 'a', tool: ['b'] }]);
    const first = buildCatalog(1, contributions, []);
    const second = buildCatalog(2, contributions, []);
    expect(second.version).toBe(2);
    expect(second.entries.tool.get('a_b')).toBe(first.entries.tool.get('a_b'));
    expect(toolNames(EMPTY_CATALOG)).toEqual([]);
  });
});

// Short names over few letters, so that `a` + `b_c` and `a_b` + `c` meet all the time.
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
  it('has one name for each item and one item for each name, and a call of it reaches the server that declares it', () => {
    fc.assert(
      fc.property(fc.array(offering, { maxLength: 5 }), (offerings) => {
        const contributions = contributionsOf(offerings);
        const catalog = buildCatalog(1, contributions, ['toolman_activate']);
        for (const kind of KINDS) {
          const claims = offerings.flatMap(({ namespace, ...rest }, at) =>
            (rest[kind] as string[]).map((name) => ({ at, name, exposed: namespace ? `${namespace}_${name}` : name })),
          );
          const identities = new Set<string>();
          for (const [name, entry] of catalog.entries[kind]) {
            const first = claims.find(({ exposed }) => exposed === name)!;
            const upstream = askedFor(entry.upstreamName);
            expect([entry.name, entry.sourceId, upstream]).toEqual([name, contributions[first.at]!.id, first.name]);
            expect(offerings[first.at]!.away).toBe(false);
            identities.add(`${entry.sourceId} ${upstream}`);
          }
          expect(identities.size).toBe(catalog.entries[kind].size);
          // What is not listed is away, or dropped and reported.
          const firsts = claims.filter(({ exposed }, i) => claims.findIndex((one) => one.exposed === exposed) === i);
          expect(catalog.entries[kind].size).toBe(firsts.filter(({ at }) => !offerings[at]!.away).length);
          const dropped = claims.filter((claim) => !firsts.includes(claim) && !offerings[claim.at]!.away);
          expect(catalog.problems.filter(({ message }) => message.startsWith(kind))).toHaveLength(dropped.length);
        }
      }),
      { numRuns: 300 },
    );
  });
});
