import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CollectedParts } from './collected-parts.ts';

it('gives back what came, in whatever parts it came', () => {
  const part = fc.oneof(fc.nat(3), fc.nat(1_500), fc.constantFrom(1_023, 1_024, 1_025));
  fc.assert(
    fc.property(fc.array(fc.tuple(part, fc.nat(20)), { maxLength: 30 }), (given) => {
      const collected = new CollectedParts();
      let next = 0;
      let expected: Buffer[] = [];
      for (const [length, choice] of given) {
        const bytes = Buffer.alloc(length, ++next);
        collected.push(bytes);
        expected.push(bytes);
        if (choice === 0) expect(Buffer.concat(collected.parts)).toEqual(Buffer.concat(expected));
        if (choice !== 1) continue;
        expect(collected.takeJoined()).toEqual(Buffer.concat(expected));
        expected = [];
      }
      expect(Buffer.concat(collected.take())).toEqual(Buffer.concat(expected));
      expect([collected.size, collected.take()]).toEqual([0, []]);
    }),
    { numRuns: 30 },
  );
});

it('keeps long parts, and a single one, without a copy', () => {
  const collected = new CollectedParts();
  const short = Buffer.from('{"short":1}');
  collected.push(short);
  expect(collected.take()[0]).toBe(short);
  const long = Buffer.alloc(4_096);
  collected.push(short);
  collected.push(long);
  collected.push(long);
  expect(collected.take().slice(1)).toEqual([long, long]);
});

it('keeps a hundred thousand single bytes in a few parts', () => {
  const collected = new CollectedParts();
  for (let i = 0; i < 100_000; i++) collected.push(Buffer.from([i & 255]));
  expect(collected.parts.length).toBeLessThan(12);
});
