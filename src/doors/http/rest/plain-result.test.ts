import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ASKS } from '../../../protocol/bridge.ts';
import { join } from '../../../protocol/parts.ts';
import { bareResult } from './plain-result.ts';

function bare(result: unknown, unwraps = false): { isError: boolean; text: string } | typeof ASKS {
  return bareOf(Buffer.from(typeof result === 'string' ? result : JSON.stringify(result)), unwraps);
}

function bareOf(result: Buffer | Buffer[], unwraps = false) {
  const found = bareResult(result, unwraps);
  return found === ASKS ? ASKS : { isError: found.isError, text: join(found.value).toString() };
}

const text = (content: string) => ({ type: 'text', text: content });
const ok = (value: string) => ({ isError: false, text: value });

describe('the plain result of a tool over REST', () => {
  it.each([
    ['structured content', { content: [text('x')], structuredContent: { a: 1 } }, '{"a":1}'],
    ['structured content that is not an object', { content: [], structuredContent: [1, 2] }, '[1,2]'],
    ['a text', { content: [text('two words')] }, '"two words"'],
    ['an empty text', { content: [text('')] }, '""'],
    ['a text that is an object', { content: [text(' {"a": [1.0]} ')] }, ' {"a": [1.0]} '],
    ['a text that is a number', { content: [text('12345678901234567890')] }, '12345678901234567890'],
    ['a text that is a JSON literal', { content: [text('true')] }, 'true'],
    ['a text that is a JSON string', { content: [text('"a\\nb"')] }, '"a\\nb"'],
    ['a text that only starts like JSON', { content: [text('[INFO] {"a":1}')] }, '"[INFO] {\\"a\\":1}"'],
    ['a text that starts with an escape', { content: [text('"quoted" and on')] }, '"\\"quoted\\" and on"'],
    ['several blocks', { content: [text('a'), text('{"b":1}'), text('c d')] }, '["a",{"b":1},"c d"]'],
    ['an image', { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] }, '"data:image/png;base64,AA=="'],
    ['audio', { content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }] }, '"data:audio/wav;base64,AA=="'],
    ['an image without a type', { content: [{ type: 'image', data: 'AA==' }] }, '{"type":"image","data":"AA=="}'],
    [
      'a resource, as it is',
      { content: [{ type: 'resource', resource: { uri: 'a:b', text: 'c' } }] },
      '{"type":"resource","resource":{"uri":"a:b","text":"c"}}',
    ],
    ['a link, as it is', { content: [{ type: 'resource_link', uri: 'a:b' }] }, '{"type":"resource_link","uri":"a:b"}'],
    ['nothing', { content: [] }, 'null'],
    ['no content at all', {}, 'null'],
    ['content that is not a list', { content: 7 }, 'null'],
  ])('is %s', (_, result, value) => {
    expect(bare(result)).toEqual(ok(value));
  });

  it('is unwrapped if it was wrapped', () => {
    expect(bare({ content: [], structuredContent: { result: [1] } }, true)).toEqual(ok('[1]'));
    expect(bare({ content: [], structuredContent: { other: 1 } }, true)).toEqual(ok('{"other":1}'));
    expect(bare({ content: [], structuredContent: 7 }, true)).toEqual(ok('7'));
    expect(bare({ content: [], structuredContent: { result: [1] } })).toEqual(ok('{"result":[1]}'));
  });

  it('is the text of a result that is an error', () => {
    expect(bare({ content: [text('no')], isError: true, structuredContent: { a: 1 } })).toEqual({
      isError: true,
      text: '"no"',
    });
    expect(bare({ content: [text('yes')], isError: false })).toEqual(ok('"yes"'));
  });

  it('is absent if the server asks a question first', () => {
    expect(bare({ resultType: 'input_required', inputRequests: {} })).toBe(ASKS);
    expect(bare({ resultType: 'complete', content: [text('a')] })).toEqual(ok('"a"'));
  });

  it('keeps numbers as they were written', () => {
    expect(bare('{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0}}')).toEqual(
      ok('{"n":9007199254740993,"f":1.0}'),
    );
  });

  it('stays a string if a lone surrogate would be lost otherwise', () => {
    expect(bare('{"content":[{"type":"text","text":"\\"\\ud800\\""}]}')).toEqual(ok('"\\"\\ud800\\""'));
  });
});

describe('a long text result over REST', () => {
  const words = 'He said: "no", and "never".\n'.repeat(2_000);
  const result = Buffer.from(JSON.stringify({ content: [text(words)] }));

  it('is the same in one part or in several', () => {
    expect(bareOf(result)).toEqual(ok(JSON.stringify(words)));
    expect(bareOf([result.subarray(0, 100), result.subarray(100, 20_000), result.subarray(20_000)])).toEqual(
      ok(JSON.stringify(words)),
    );
  });

  it('is the same next to other members', () => {
    const more = Buffer.from(JSON.stringify({ content: [text(words)], isError: false }));
    expect(bareOf(more)).toEqual(ok(JSON.stringify(words)));
    expect(bareOf([more.subarray(0, 100), more.subarray(100)])).toEqual(ok(JSON.stringify(words)));
  });

  it('becomes JSON if it is JSON, even in several parts', () => {
    const json = JSON.stringify({ list: Array.from({ length: 3_000 }, (_, n) => `item ${n}`) });
    const result = Buffer.from(JSON.stringify({ content: [text(json)] }));
    expect(bareOf([result.subarray(0, 100), result.subarray(100)])).toEqual(ok(json));
  });

  it('ends at the end of its string', () => {
    const long = 'x'.repeat(20_000);
    const smuggled = `{"content":[{"type":"text","text":"${long}","more":"${long}"}]}`;
    expect(bareOf(Buffer.from(smuggled))).toEqual(ok(`"${long}"`));
    const bytes = Buffer.from(smuggled);
    expect(bareOf([bytes.subarray(0, 100), bytes.subarray(100)])).toEqual(ok(`"${long}"`));
  });

  it('always equals what JSON.parse returns', () => {
    const piece = fc.constantFrom('"', '\\', '\n', 'ü', '}]}', '"}]}', '{"', 'a', ' ', '\\"', ',"text":"');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.constantFrom(1, 3_000), fc.nat(), (pieces, times, cut) => {
        const words = `A${pieces.join('').repeat(pieces.length === 0 ? 1 : times)}`;
        const bytes = Buffer.from(JSON.stringify({ content: [text(words)] }));
        const at = cut % bytes.length;
        const found = bareOf(at === 0 ? bytes : [bytes.subarray(0, at), bytes.subarray(at)]);
        expect(found === ASKS ? ASKS : JSON.parse(found.text)).toEqual(words);
      }),
      { numRuns: 60 },
    );
  });
});
