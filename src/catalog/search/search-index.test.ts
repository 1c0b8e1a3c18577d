import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/wide.ts';
import { getOrMake } from '../../base/memo.ts';
import { type Bag, createVocabulary, packBag, type SearchDocument, withExamples } from './bag.ts';
import { buildIndex, type SearchIndex } from './search-index.ts';

const documentOf = (name: string, description = '', parameters: string[] = []): SearchDocument => ({
  name,
  titles: [],
  server: '',
  purpose: '',
  description,
  parameters: parameters.map((one) => ({ name: one, description: '' })),
});

function searchIn(documents: readonly SearchDocument[]) {
  const vocabulary = createVocabulary();
  const index = buildIndex(
    vocabulary,
    documents.map((one) => packBag(vocabulary, one)),
  );
  return (query: string, most = 10) => index.find(query, most).best.map(({ at }) => documents[at]!.name);
}

const TOOLS = [
  documentOf('create_issue', 'Creates an issue in a repository', ['title', 'body']),
  documentOf('list_issues', 'Lists the issues of a repository'),
  documentOf('sendEmail', 'Sends a message to somebody', ['recipient', 'subject']),
  documentOf('getForecast', 'Returns the weather of the next days', ['city']),
  documentOf('delete_file', 'Removes a file from the disk', ['path']),
];

describe('the index', () => {
  const find = searchIn(TOOLS);

  it.each([
    ['open a new issue', 'create_issue'],
    ['who has to be told by mail? recipient', 'sendEmail'],
    ['what will the weather be like', 'getForecast'],
    ['erase files', 'delete_file'],
    ['getForcast', 'getForecast'],
  ])('finds for %j first %s', (query, name) => {
    expect(find(query)[0]).toBe(name);
  });

  it('finds something for each sentence of a long query', () => {
    const query = 'Delete the file at /tmp/a. Then send an email about it. Finally list all issues of the repository.';
    expect(find(query, 3).sort()).toEqual(['delete_file', 'list_issues', 'sendEmail']);
  });

  it('finds nothing where no word and no name is like the query', () => {
    expect(find('zzzz qqqq')).toEqual([]);
    expect(find('')).toEqual([]);
    expect(searchIn([])('anything')).toEqual([]);
  });

  it('counts what matches nearly as well', () => {
    const vocabulary = createVocabulary();
    const names = ['get_a_page', 'get_b_page', 'get_c_page', 'other'];
    const index = buildIndex(
      vocabulary,
      names.map((name) => packBag(vocabulary, documentOf(name))),
    );
    const { best, near } = index.find('page', 1);
    expect(best.map(({ at }) => at)).toEqual([0]);
    expect(near).toEqual([1, 2]);
  });

  it('finds a tool by its examples', () => {
    const vocabulary = createVocabulary();
    const bags = TOOLS.map((one) => packBag(vocabulary, one));
    const before = buildIndex(vocabulary, bags);
    const taught = [...bags.slice(0, 3), withExamples(vocabulary, bags[3]!, ['shall I take an umbrella']), bags[4]!];
    const after = buildIndex(vocabulary, taught);
    expect(before.find('umbrella', 5).best).toEqual([]);
    expect(after.find('umbrella', 5).best.map(({ at }) => at)).toEqual([3]);
    expect(after.find('weather', 1).best[0]?.at).toBe(3);
  });

  it('gives the same answer each time, best first, and depends on nothing but its documents', () => {
    const words = ['get', 'list', 'issue', 'file', 'mail', 'page', 'user', 'weather'];
    const anyText = fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 6 }).map((all) => all.join(' '));
    const anyDocument = fc.tuple(anyText, anyText).map(([name, text]) => documentOf(name, text));
    fc.assert(
      fc.property(
        fc.array(anyDocument, { maxLength: 12 }),
        fc.array(anyDocument, { maxLength: 6 }),
        anyText,
        fc.integer({ min: 0, max: 12 }),
        (documents, others, query, most) => {
          const vocabulary = createVocabulary();
          // Other documents of the same vocabulary must not matter.
          for (const one of others) packBag(vocabulary, one);
          const index = buildIndex(
            vocabulary,
            documents.map((one) => packBag(vocabulary, one)),
          );
          for (const one of others) packBag(vocabulary, one);
          const first = index.find(query, most);
          expect(index.find(query, most)).toEqual(first);
          const alone = createVocabulary();
          const same = buildIndex(
            alone,
            documents.map((one) => packBag(alone, one)),
          );
          expect(same.find(query, most)).toEqual(first);
          expect(first.best.length).toBeLessThanOrEqual(most);
          const order = [...first.best].sort((a, b) => b.score - a.score || a.at - b.at);
          expect(first.best).toEqual(order);
          const all = index.find(query, documents.length).best.map(({ at }) => at);
          expect(all.slice(0, most)).toEqual(first.best.map(({ at }) => at));
        },
      ),
      { numRuns: runs(500) },
    );
  });

  it('is exactly the same after changes as one built from scratch', () => {
    const words = 'get list issue file mail page user weather create team branch folder order invoice'.split(' ');
    const anyWords = (maxLength: number) =>
      fc.array(fc.constantFrom(...words), { minLength: 1, maxLength }).map((all) => all.join(' '));
    const anyDocument = fc.tuple(anyWords(3), anyWords(12)).map(([name, text]) => documentOf(name, text));
    const anyChange = fc.record({
      from: fc.nat(),
      count: fc.nat(6),
      to: fc.nat(),
      documents: fc.array(anyDocument, { maxLength: 6 }),
      isMoved: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(anyDocument, { minLength: 20, maxLength: 60 }),
        fc.array(anyChange, { minLength: 1, maxLength: 8 }),
        fc.array(anyWords(5), { minLength: 1, maxLength: 4 }),
        (first, changes, queries) => {
          const vocabulary = createVocabulary();
          const known = new Map<SearchDocument, Bag>();
          const bagOf = (one: SearchDocument) => getOrMake(known, one, () => packBag(vocabulary, one));
          let documents = first;
          let before: SearchIndex[] = [buildIndex(vocabulary, documents.map(bagOf))];
          for (const { from, count, to, documents: others, isMoved } of changes) {
            const rest = [...documents];
            const taken = rest.splice(from % (rest.length + 1), count);
            rest.splice(to % (rest.length + 1), 0, ...(isMoved ? taken : others));
            documents = rest;
            const changed = buildIndex(vocabulary, documents.map(bagOf), null, before);
            const alone = createVocabulary();
            const rebuilt = buildIndex(
              alone,
              documents.map((one) => packBag(alone, one)),
            );
            for (const query of [...queries, 'create a team. then list the files; gt isue'])
              for (const most of [3, documents.length])
                expect(changed.find(query, most)).toEqual(rebuilt.find(query, most));
            before = [changed, ...before].slice(0, 3);
          }
        },
      ),
      { numRuns: runs(500) },
    );
  });

  it('reads only what changed', () => {
    const vocabulary = createVocabulary();
    const bags = Array.from({ length: 50 }, (_, i) => packBag(vocabulary, documentOf(`tool_${i}`, 'reads a page')));
    const before = buildIndex(vocabulary, bags);
    const reads = new Set<Bag>();
    for (const bag of bags) {
      const { packed } = bag;
      const get = (all: Uint32Array, key: string) => {
        if (key !== 'length') reads.add(bag);
        return Reflect.get(all, key) as unknown;
      };
      Object.defineProperty(bag, 'packed', { value: new Proxy(packed, { get: (all, key) => get(all, String(key)) }) });
    }
    const changed = [...bags.slice(0, 20), packBag(vocabulary, documentOf('other', 'a page')), ...bags.slice(21)];
    buildIndex(vocabulary, changed, null, [before]);
    expect([...reads]).toEqual([bags[20]]);
    buildIndex(vocabulary, changed);
    expect(reads.size).toBe(50);
  });
});
