import { describe, expect, it, vi } from 'vitest';
import { createStartQueue, type StartQueue, type StartTurn } from './start-queue.ts';

const busy = () => 0;

/** Joins servers by name and remembers the order in which their turns come. */
function joinAll(queue: StartQueue, ranks: Record<string, { required?: boolean; startTime?: number }>) {
  const order: string[] = [];
  const turns = new Map<string, StartTurn>();
  for (const [name, { required = false, startTime = null }] of Object.entries(ranks)) {
    const turn = queue.join({ required, startTime });
    void turn.come.then(() => order.push(name));
    turns.set(name, turn);
  }
  return { order, turn: (name: string) => turns.get(name)! };
}

/** Lets everything run that has been resolved. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('createStartQueue', () => {
  it('starts required servers first, then quick ones, then those that are not known, a few at a time', async () => {
    const ranks = { unknown: {}, long: { startTime: 900 }, short: { startTime: 20 }, needed: { required: true } };
    const { order, turn } = joinAll(createStartQueue(2, busy), ranks);
    await settle();
    expect(order).toEqual(['needed', 'short']);
    turn('needed').leave();
    await settle();
    expect(order).toEqual(['needed', 'short', 'long']);
    turn('short').leave();
    turn('long').leave();
    turn('long').leave();
    await settle();
    expect(order).toEqual(['needed', 'short', 'long', 'unknown']);
  });

  it('starts one at once that is needed now', async () => {
    const { order, turn } = joinAll(createStartQueue(1, busy), { a: {}, b: {}, c: {} });
    turn('c').skip();
    await settle();
    expect(order).toEqual(['c']);
    turn('c').leave();
    await settle();
    expect(order).toEqual(['c', 'a']);
  });

  it('starts more while the cores are idle, and when one takes long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    try {
      let idle = 0;
      const { order } = joinAll(
        createStartQueue(1, () => idle),
        { a: {}, b: {}, c: {} },
      );
      await vi.advanceTimersByTimeAsync(1_000);
      expect(order).toEqual(['a']);
      idle = 1;
      await vi.advanceTimersByTimeAsync(100);
      expect(order).toEqual(['a', 'b']);
      idle = 0;
      await vi.advanceTimersByTimeAsync(10_000);
      expect(order).toEqual(['a', 'b', 'c']);
    } finally {
      vi.useRealTimers();
    }
  });
});
