import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/wide.ts';
import { stem, termsOf, wordsIn } from './words.ts';

describe('the words of a text', () => {
  it.each([
    ['getUserById', ['get', 'user', 'by', 'id']],
    ['list_pull-requests.v2', ['list', 'pull', 'requests', 'v', '2', 'v2']],
    ['HTTPServer', ['http', 'server', 'httpserver']],
    ['GitHub', ['git', 'hub', 'github']],
    ['S3 bucket', ['s', '3', 's3', 'bucket']],
    ['Café Ünïcode', ['cafe', 'unicode']],
    ['ｆｕｌｌ', ['full']],
    ['天気予報', ['天気', '気予', '予報']],
    ['图 search文件', ['图', 'search', '文件']],
    ['\u0301\u0302 \u0345', []],
    ['', []],
  ])('of %j', (text, words) => {
    expect(wordsIn(text)).toEqual(words);
  });

  it('are stems, without words that say nothing', () => {
    expect(termsOf('Could you please show me the weather forecasts for cities?')).toEqual(
      termsOf('show weather forecast city'),
    );
    expect(termsOf('the of and please')).toEqual([]);
  });

  it.each([
    ['create', 'creating', 'created', 'creates', 'creator'],
    ['stop', 'stopping', 'stopped', 'stops'],
    ['query', 'queries'],
    ['translate', 'translation', 'translations', 'translator'],
    ['match', 'matches', 'matching'],
    ['summary', 'summaries'],
  ])('have one stem for %s and its forms', (...forms) => {
    expect(new Set(forms.map(stem))).toHaveProperty('size', 1);
  });

  it('are the same whether all of a text is ASCII or not', () => {
    const unit = fc.constantFrom(...'aabcxyzABCXYZ0123 _-./');
    const anyText = fc.oneof(
      fc.string({ unit, maxLength: 60 }),
      fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
      fc.string({ unit: fc.constantFrom('a', 'B', '7'), minLength: 30, maxLength: 450 }),
    );
    fc.assert(
      fc.property(anyText, (text) => {
        expect(wordsIn(text)).toEqual(wordsIn(`${text} é`).slice(0, -1));
      }),
      { numRuns: runs(5_000) },
    );
  });

  it('are found in any text, quickly', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        expect(wordsIn(text)).not.toContain('');
        expect(termsOf(text).join()).toBe(termsOf(text).join());
      }),
      { numRuns: runs(2_000) },
    );
    expect(wordsIn('a'.repeat(100_000))).toEqual(['a'.repeat(40)]);
    expect(wordsIn('aB'.repeat(50_000)).length).toBeLessThan(300);
  });
});
