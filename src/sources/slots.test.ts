import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Slots } from './slots.ts';

it('behaves like a map whose ids are never reused', () => {
  const steps = fc.array(fc.oneof(fc.constant(null), fc.nat({ max: 400 })), { maxLength: 600 });
  fc.assert(
    fc.property(steps, (plan) => {
      const slots = new Slots<{ id: number }>();
      const model = new Map<number, { id: number }>();
      const assigned = new Set<number>();
      for (const step of plan) {
        if (step === null) {
          const item = { id: slots.nextId() };
          expect(assigned.has(item.id)).toBe(false);
          assigned.add(item.id);
          slots.put(item);
          model.set(item.id, item);
        } else {
          expect(slots.take(step)).toBe(model.get(step));
          model.delete(step);
        }
        expect(slots.size).toBe(model.size);
      }
      expect(new Set(slots.all())).toEqual(new Set(model.values()));
      for (const id of [...assigned, -1, 1e9, Number.NaN, 1.5]) expect(slots.get(id)).toBe(model.get(id));
    }),
  );
});

it('has room for any number, even if one entry is never removed', () => {
  const slots = new Slots<{ id: number }>();
  const stuck = { id: slots.nextId() };
  slots.put(stuck);
  for (let i = 0; i < 10_000; i++) {
    const item = { id: slots.nextId() };
    slots.put(item);
    if (i >= 1000) slots.take(item.id);
  }
  expect(slots.size).toBe(1001);
  expect(slots.get(stuck.id)).toBe(stuck);
});
