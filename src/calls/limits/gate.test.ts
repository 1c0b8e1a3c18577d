import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/wide.ts';
import { GatewayError } from '../../base/errors.ts';
import { Gate, type Waiting } from './gate.ts';

/** A call at a gate. It records what happened to it. */
class TestCall implements Waiting {
  gate: Gate | null = null;
  before: Waiting | null = null;
  after: Waiting | null = null;
  readonly agent: string;
  state: 'waiting' | 'running' | 'ended' | 'refused' = 'ended';
  readonly number: number;
  readonly admissions: number[];
  readonly endsAtOnce: boolean;
  readonly home: Gate;

  constructor(home: Gate, number: number, admissions: number[], endsAtOnce = false, agent = 'a') {
    this.agent = agent;
    this.home = home;
    this.number = number;
    this.admissions = admissions;
    this.endsAtOnce = endsAtOnce;
  }

  arrive(): void {
    if (this.home.enter()) this.admitted();
    else if (!this.home.hasRoomFor(this.agent, () => new GatewayError('source_busy', 'busy'))) this.state = 'refused';
    else {
      this.state = 'waiting';
      this.home.join(this);
    }
  }

  admitted(): void {
    this.state = 'running';
    this.admissions.push(this.number);
    if (this.endsAtOnce) this.end();
  }

  end(): void {
    const { state } = this;
    this.state = 'ended';
    if (state === 'running') this.home.leave();
    else this.home.quit(this);
  }

  refuse(): void {
    this.home.quit(this);
    this.state = 'refused';
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('arrive' as const), endsAtOnce: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat() }) },
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
          const calls: TestCall[] = [];
          let most = limit;
          const count = (state: TestCall['state']) => calls.filter((one) => one.state === state).length;
          for (const one of steps) {
            const before = count('running');
            if (one.kind === 'arrive') {
              const hadRoom = count('running') < gate.limit && count('waiting') === 0;
              const couldWait = count('waiting') < gate.room;
              const call = new TestCall(gate, calls.length, admissions, one.endsAtOnce);
              calls.push(call);
              call.arrive();
              expect(call.state === 'refused').toBe(!hadRoom && !couldWait);
            } else if (one.kind === 'end') {
              const open = calls.filter(({ state }) => state === 'running' || state === 'waiting');
              if (open.length > 0) open[one.which % open.length]!.end();
            } else if (one.kind === 'resize') {
              gate.resize(one.limit, gate.room);
              most = Math.max(one.limit, before);
            } else gate.clear(new GatewayError('source_busy', 'x'), null);
            most = Math.max(gate.limit, Math.min(most, Math.max(before, gate.limit)));
            expect(count('running')).toBe(gate.running);
            expect(count('waiting')).toBe(gate.waiting);
            expect(gate.running).toBeLessThanOrEqual(most);
            // Nothing may wait while a place is free.
            expect(gate.waiting > 0 && gate.running < gate.limit).toBe(false);
            expect(queueOf(gate)).toEqual(calls.filter(({ state }) => state === 'waiting').map(({ number }) => number));
          }
          expect(admissions).toEqual([...admissions].sort((a, b) => a - b));
          for (const call of calls) call.end();
          for (const call of calls) call.end();
          expect([gate.waiting, gate.queues.size]).toEqual([0, 0]);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  it('admits a long queue of calls that end at once without overflowing the stack', () => {
    const gate = new Gate('x', 1, 1_000_000);
    const admissions: number[] = [];
    const first = new TestCall(gate, 0, admissions);
    first.arrive();
    for (let i = 1; i <= 100_000; i++) new TestCall(gate, i, admissions, true).arrive();
    first.end();
    expect([admissions.length, gate.running, gate.waiting]).toEqual([100_001, 0, 0]);
  });
});

function queueOf(gate: Gate): number[] {
  const numbers: number[] = [];
  for (let one = gate.queues.get('a')?.first ?? null; one !== null; one = one.after)
    numbers.push((one as TestCall).number);
  return numbers;
}

describe('agents at a gate', () => {
  const arrive = (gate: Gate, admissions: number[], agent: string, ...numbers: number[]) =>
    numbers.map((number) => {
      const call = new TestCall(gate, number, admissions, false, agent);
      call.arrive();
      return call;
    });

  it('take turns, and each keeps its own order', () => {
    const gate = new Gate('Server "x"', 1, 100);
    const admissions: number[] = [];
    const calls = [
      ...arrive(gate, admissions, 'greedy', 1, 2, 3, 4, 5),
      ...arrive(gate, admissions, 'b', 11, 12),
      ...arrive(gate, admissions, 'c', 21),
    ];
    for (let left = calls.length; left > 0; left--) calls.find(({ state }) => state === 'running')!.end();
    expect(admissions).toEqual([1, 2, 11, 21, 3, 12, 4, 5]);
  });

  it('with many waiting calls give way in a full queue, from the last one on, until the shares are equal', () => {
    const gate = new Gate('Server "x"', 1, 4);
    const admissions: number[] = [];
    const greedy = arrive(gate, admissions, 'greedy', 1, 2, 3, 4, 5, 6);
    expect(greedy.map(({ state }) => state)).toEqual([
      'running',
      'waiting',
      'waiting',
      'waiting',
      'waiting',
      'refused',
    ]);
    const others = arrive(gate, admissions, 'b', 11, 12, 13);
    expect(others.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'refused']);
    expect(greedy.map(({ state }) => state)).toEqual([
      'running',
      'waiting',
      'waiting',
      'refused',
      'refused',
      'refused',
    ]);
    expect(gate.waiting).toBe(4);
    for (const call of [...greedy, ...others]) if (call.state === 'running' || call.state === 'waiting') call.end();
    expect([gate.running, gate.waiting, gate.queues.size]).toEqual([0, 0, 0]);
  });

  it('find no room where no call may wait', () => {
    const gate = new Gate('Server "x"', 1, 0);
    expect(arrive(gate, [], 'a', 1, 2).map(({ state }) => state)).toEqual(['running', 'refused']);
    expect(arrive(gate, [], 'b', 3).map(({ state }) => state)).toEqual(['refused']);
  });
});
