import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { runs } from '../../test/support/wide.ts';
import { definitionOf } from '../catalog/entry.ts';
import { countAll } from './token-counter.ts';
import { meterTokens } from './token-meter.ts';

it('counts a definition as it is in a list', async () => {
  const catalog = catalogOf({
    namespace: 'a',
    tool: ['one', { name: 'two', description: 'Finds <|endoftext|> things' }],
  });
  const entries = [...catalog.entries.tool.values()];
  const meter = await meterTokens(entries);
  for (const entry of entries) {
    const text = definitionOf(entry, 'legacy').toString();
    expect(meter.of(entry)).toBe(encode(text, { disallowedSpecial: new Set() }).length);
  }
  expect(meter.ofAll(entries)).toBe(meter.of(entries[0]!) + meter.of(entries[1]!));
});

it('takes any text', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 200 })), (texts) => {
      const counts = countAll(texts);
      expect(counts.map((count) => count > 0)).toEqual(texts.map((text) => text !== ''));
    }),
    { numRuns: runs(200) },
  );
});

it.each(['a', 'é', '字', '!', ' ', '\n', 'ab'])('does not take long for a long run of %j', (character) => {
  const before = performance.now();
  expect(countAll([character.repeat(200_000)])[0]).toBeGreaterThan(1_000);
  // Without cuts it takes minutes.
  expect(performance.now() - before).toBeLessThan(20_000);
});

it('knows the tokens of definitions that it has counted before, in another catalog', async () => {
  const offer = { namespace: 'a', tool: ['one', 'two'] };
  await meterTokens(catalogOf(offer).entries.tool.values());
  const again = [...catalogOf(offer).entries.tool.values()];
  const meter = await meterTokens(again);
  expect(again.map((entry) => meter.of(entry))).toEqual(
    again.map((entry) => encode(definitionOf(entry, 'legacy').toString()).length),
  );
});
