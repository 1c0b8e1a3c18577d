import { expect, it } from 'vitest';
import { mayAsk } from './asked-by.ts';

it.each([
  ['{"resultType":"input_required","inputRequests":{}}', true],
  ['{"resultType":"input_required","input\\u0052equests":{}}', true],
  ['{"content":[{"type":"text","text":"input requests"}]}', false],
])('%s: whether it may ask is seen in whatever parts it comes: %s', (text, expected) => {
  const bytes = Buffer.from(text);
  expect(mayAsk(bytes)).toBe(expected);
  expect(mayAsk(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toBe(expected);
  for (let one = 0; one <= bytes.length; one++)
    for (let two = one; two <= bytes.length; two++)
      expect(mayAsk([bytes.subarray(0, one), bytes.subarray(one, two), bytes.subarray(two)])).toBe(expected);
});
