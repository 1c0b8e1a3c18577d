import fc from 'fast-check';
import { expect, it } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { Queue } from './queue.ts';

it('behaves like an array from which the first element is removed', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(), { nil: null }), { maxLength: 200 }), (steps) => {
      const queue = new Queue<number>();
      const model: number[] = [];
      for (const step of steps) {
        if (step === null) expect(queue.shift()).toBe(model.shift());
        else {
          queue.push(step);
          model.push(step);
        }
        expect([queue.length, queue.first, [...queue]]).toEqual([model.length, model[0], model]);
      }
      queue.clear();
      expect([queue.length, [...queue]]).toEqual([0, []]);
    }),
  );
});

it('takes no longer for each element if it is long', () => {
  const queue = new Queue<number>();
  for (let i = 0; i < 300_000; i++) queue.push(i);
  const start = performance.now();
  while (queue.shift() !== undefined);
  // An array takes more than a minute.
  expect(performance.now() - start).toBeLessThan(patient(5_000));
});
