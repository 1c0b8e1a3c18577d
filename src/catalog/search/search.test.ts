import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf, offerOf } from '../../../test/support/catalog.ts';
import { runs } from '../../../test/support/wide.ts';
import { buildCatalog, type Catalog } from '../catalog.ts';
import { narrow } from '../narrow.ts';
import { searchOf } from './search.ts';

const catalog = catalogOf(
  {
    namespace: 'git',
    tool: [
      { name: 'log', description: 'Shows the history of a branch' },
      {
        name: 'push',
        description: 'Sends commits to a remote',
        inputSchema: { type: 'object', properties: { remote: {} } },
      },
    ],
    prompt: [
      { name: 'review', description: 'Reviews a change', arguments: [{ name: 'diff', description: 'What changed' }] },
    ],
  },
  { namespace: 'docs', resource: [{ uri: 'doc://style', name: 'Style guide' }], template: ['doc://{chapter}'] },
  { namespace: 'down', tool: ['history'], away: true },
);

const found = async (query: string, within: Catalog = catalog, most = 5) => {
  const { best } = (await searchOf(within)).find(query, most);
  return best.map(({ name }) => name);
};

describe('the search over a catalog', () => {
  it('finds tools, prompts, resources and templates under their exposed names', async () => {
    expect((await found('history of commits'))[0]).toBe('git_log');
    expect((await found('remote'))[0]).toBe('git_push');
    expect((await found('review a diff'))[0]).toBe('git_review');
    expect((await found('style guide'))[0]).toBe('docs_doc://style');
    expect(await found('chapter')).toContain('docs_doc://{chapter}');
  });

  it('finds an exact name first, in every form that a caller may know', async () => {
    for (const name of ['git_push', 'git.push', 'push', ' PUSH ']) expect((await found(name))[0]).toBe('git_push');
  });

  it('does not find what is not there now', async () => {
    expect(await found('down history')).not.toContain('down_history');
  });

  it('is kept while the catalog is the same', async () => {
    expect(searchOf(catalog)).toBe(searchOf(catalog));
  });

  it('says how many more match, and on which servers', async () => {
    const many = catalogOf(
      { namespace: 'a', tool: ['get_page', 'put_page', 'new_page'] },
      { namespace: 'b', tool: ['list_page'] },
    );
    const { best, more } = (await searchOf(many)).find('page', 1);
    expect(best).toHaveLength(1);
    expect([...more]).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
    const onB = (await searchOf(many)).find('page', 5, { isServer: ({ sourceKey }) => sourceKey === 'b' });
    expect(onB.best.map(({ name }) => name)).toEqual(['b_list_page']);
    expect(onB.more.size).toBe(0);
  });

  it('uses what a server is for', async () => {
    const described = buildCatalog(
      1,
      [
        {
          id: 1,
          key: 'x',
          namespace: 'x',
          present: true,
          offer: offerOf({ tool: ['run'] }),
          description: 'Runs tests',
        },
        {
          id: 2,
          key: 'y',
          namespace: 'y',
          present: true,
          offer: offerOf({ tool: ['run'] }),
          description: 'Sends mail',
        },
      ],
      [],
    );
    expect((await found('run mail', described))[0]).toBe('y_run');
  });

  it('cannot tell whether a hidden item exists', async () => {
    const names = ['get_page', 'put_page', 'new_user', 'get_user', 'list_mail', 'send_mail', 'get_weather'];
    const all = catalogOf({ namespace: 'a', tool: names.slice(0, 4) }, { namespace: 'b', tool: names.slice(2) });
    const exposed = [...all.entries.tool.keys()];
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(exposed),
        fc.constantFrom('get page', 'mail', 'user weather', 'a_get_page', 'gt pge'),
        async (open, query) => {
          const narrowed = narrow(all, { keep: ({ name }) => open.includes(name) });
          const keep = (namespace: string, tools: string[]) => ({
            namespace,
            tool: tools.filter((name) => open.includes(`${namespace}_${name}`)),
          });
          const never = catalogOf(keep('a', names.slice(0, 4)), keep('b', names.slice(2)));
          const [one, other] = [(await searchOf(narrowed)).find(query, 3), (await searchOf(never)).find(query, 3)];
          const plain = ({ best, more }: typeof one) => [best.map(({ name, score }) => [name, score]), [...more]];
          expect(plain(one)).toEqual(plain(other));
          for (const { name } of one.best) expect(open).toContain(name);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  it('is built in short pieces, so that other work goes on', async () => {
    const text = 'Looks up something in a table with many columns and filters. '.repeat(20);
    const many = catalogOf({
      namespace: 'big',
      tool: Array.from({ length: 1_600 }, (_, i) => ({ name: `tool_${i}`, description: `${text} ${i} x${i * 7}` })),
    });
    let turns = 0;
    const counting = setImmediate(function turn() {
      turns++;
      next = setImmediate(turn);
    });
    let next = counting;
    await searchOf(many);
    clearImmediate(next);
    expect(turns).toBeGreaterThan(2);
  });
});
