import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/wide.ts';
import { createVocabulary, packBag, type SearchDocument, withExamples } from './bag.ts';
import { buildIndex } from './search-index.ts';

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
});
