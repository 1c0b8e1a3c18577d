import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/wide.ts';
import { GatewayError } from '../../base/errors.ts';
import { Gate, type Waiting } from './gate.ts';

/** A call at a gate. It records what happened to it. */
class Visitor implements Waiting {
  gate: Gate | null = null;
  before: Waiting | null = null;
  after: Waiting | null = null;
  state: 'waiting' | 'in' | 'gone' | 'refused' = 'gone';
  readonly number: number;
  readonly admissions: number[];
  readonly goesAtOnce: boolean;
  readonly home: Gate;

  constructor(home: Gate, number: number, admissions: number[], goesAtOnce = false) {
    this.home = home;
    this.number = number;
    this.admissions = admissions;
    this.goesAtOnce = goesAtOnce;
  }

  come(): void {
    if (this.home.enter()) this.admitted();
    else if (this.home.isFull) this.state = 'refused';
    else {
      this.state = 'waiting';
      this.home.join(this);
    }
  }

  admitted(): void {
    this.state = 'in';
    this.admissions.push(this.number);
    if (this.goesAtOnce) this.go();
  }

  go(): void {
    const { state } = this;
    this.state = 'gone';
    if (state === 'in') this.home.leave();
    else this.home.quit(this);
  }

  refuse(): void {
    this.home.quit(this);
    this.state = 'refused';
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('come' as const), goesAtOnce: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('go' as const), which: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('resize' as const), limit: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
);

describe('a gate', () => {
  it('never exceeds its limit, admits in order, and loses or leaks no call under any sequence of operations', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.nat(4),
        fc.array(step, { maxLength: 80 }),
        (limit, room, steps) => {
          const gate = new Gate('x', limit, room);
          const admissions: number[] = [];
          const visitors: Visitor[] = [];
          let most = limit;
          const count = (state: Visitor['state']) => visitors.filter((one) => one.state === state).length;
          for (const one of steps) {
            const before = count('in');
            if (one.kind === 'come') {
              const hadRoom = count('in') < gate.limit && count('waiting') === 0;
              const couldWait = count('waiting') < gate.room;
              const visitor = new Visitor(gate, visitors.length, admissions, one.goesAtOnce);
              visitors.push(visitor);
              visitor.come();
              expect(visitor.state === 'refused').toBe(!hadRoom && !couldWait);
            } else if (one.kind === 'go') {
              const open = visitors.filter(({ state }) => state === 'in' || state === 'waiting');
              if (open.length > 0) open[one.which % open.length]!.go();
            } else if (one.kind === 'resize') {
              gate.resize(one.limit, gate.room);
              most = Math.max(one.limit, before);
            } else gate.clear(new GatewayError('source_busy', 'x'));
            most = Math.max(gate.limit, Math.min(most, Math.max(before, gate.limit)));
            expect(count('in')).toBe(gate.running);
            expect(count('waiting')).toBe(gate.waiting);
            expect(gate.running).toBeLessThanOrEqual(most);
            // Nothing may wait while a place is free.
            expect(gate.waiting > 0 && gate.running < gate.limit).toBe(false);
            expect(row(gate)).toEqual(visitors.filter(({ state }) => state === 'waiting').map(({ number }) => number));
          }
          expect(admissions).toEqual([...admissions].sort((a, b) => a - b));
          for (const visitor of visitors) visitor.go();
          for (const visitor of visitors) visitor.go();
          expect([gate.waiting, gate.first, gate.last]).toEqual([0, null, null]);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  it('admits a long queue of calls that end at once without overflowing the stack', () => {
    const gate = new Gate('x', 1, 1_000_000);
    const admissions: number[] = [];
    const first = new Visitor(gate, 0, admissions);
    first.come();
    for (let i = 1; i <= 100_000; i++) new Visitor(gate, i, admissions, true).come();
    first.go();
    expect([admissions.length, gate.running, gate.waiting]).toEqual([100_001, 0, 0]);
  });
});

function row(gate: Gate): number[] {
  const numbers: number[] = [];
  for (let one = gate.first; one !== null; one = one.after) numbers.push((one as Visitor).number);
  return numbers;
}
