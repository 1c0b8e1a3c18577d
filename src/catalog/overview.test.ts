import { describe, expect, it } from 'vitest';
import { catalogOf, namedCatalog, offerOf } from '../../test/support/catalog.ts';
import { buildCatalog } from './catalog.ts';
import { narrow } from './narrow.ts';
import { overviewOf } from './overview.ts';

const patterns = (...offerings: Parameters<typeof catalogOf>) =>
  overviewOf(catalogOf(...offerings)).map(({ pattern, tools, resources }) => [pattern, tools.length, resources.length]);

function purposeOf(
  said: { description?: string; about?: string; instructions?: string },
  tool = ['create_notes', 'delete_notes', 'search_tags'],
) {
  const { description, about = '', instructions = '' } = said;
  const offer = { ...offerOf({ tool }), about, instructions };
  const catalog = buildCatalog(
    1,
    [{ id: 1, key: 'notes-app', namespace: 'n', present: true, offer, ...(description && { description }) }],
    [],
  );
  return overviewOf(catalog)[0]!.purpose;
}

describe('the overview of servers', () => {
  it('has one pattern for each server, in the order of the configuration', () => {
    expect(
      patterns(
        { namespace: 'docs', resource: ['doc:1'], template: ['doc:{id}'] },
        { namespace: 'git', tool: ['log', 'push'], prompt: ['p'] },
        { namespace: 'only', prompt: ['p'] },
        { namespace: 'down', tool: ['x'], away: true },
      ),
    ).toEqual([
      ['docs_*', 0, 2],
      ['git_*', 2, 0],
    ]);
  });

  it('has one line for servers that share a prefix', () => {
    expect(
      patterns({ namespace: 'a', key: 'a1', tool: ['x'] }, { namespace: 'a', key: 'a2', tool: ['y', 'z'] }),
    ).toEqual([['a_*', 3, 0]]);
  });

  it('spells the pattern as names are spelled', () => {
    const flat = namedCatalog({ names: 'flat', nameLimit: null }, { namespace: 'a-b.c', tool: ['x'] });
    expect(overviewOf(flat)[0]!.pattern).toBe('a_b_c_*');
  });

  it('finds the common beginning of names without a prefix, if it is theirs alone', () => {
    const browser = { namespace: '', tool: ['browser_click', 'browser_close'] };
    expect(patterns(browser)[0]).toEqual(['browser_*', 2, 0]);
    expect(patterns(browser, { namespace: 'browser_more', tool: ['x'] })[0]).toEqual([null, 2, 0]);
    expect(patterns({ namespace: '', tool: ['read', 'write'] })[0]).toEqual([null, 2, 0]);
  });

  it('says what a server is for: as configured, else in its own words, else by the names of its tools', () => {
    const about = 'Keeps notes for a whole team';
    const instructions = '# Notes\n\nStores short notes. Ask before you delete.';
    expect(purposeOf({ description: 'My\nnotes', about, instructions })).toBe('My notes');
    expect(purposeOf({ about, instructions })).toBe(about);
    expect(purposeOf({ about: 'Notes App', instructions })).toBe('Stores short notes.');
    expect(purposeOf({ about: 'Ringbinder' })).toBe('Ringbinder');
    for (const order of ['Always ask before you delete.', 'Here are some rules:\n- one', '# Only a heading'])
      expect(purposeOf({ about: 'Notes App MCP Server', instructions: order })).toBe('tags (create, delete, search)');
    expect(purposeOf({}, ['create_entities', 'create_relations', 'delete_entities', 'read_graph'])).toBe(
      'entities, relations, graph (create, delete, read)',
    );
  });

  it('counts and describes only what the catalog has', () => {
    const all = catalogOf({
      namespace: 'x',
      tool: ['get_secret_keys', 'get_secret_values', 'list_files', 'read_files'],
    });
    const narrowed = narrow(all, { keep: ({ item }) => !item.name.includes('secret') });
    expect(overviewOf(narrowed)).toMatchObject([{ pattern: 'x_*', purpose: 'files (list, read)' }]);
    expect(overviewOf(narrow(all, { keep: () => false }))).toEqual([]);
  });
});
