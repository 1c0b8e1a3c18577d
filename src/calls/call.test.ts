import { beforeEach, describe, expect, it } from 'vitest';
import { catalogOf, entryOf } from '../../test/support/catalog.ts';
import { GatewayError } from '../base/errors.ts';
import { READS_AT_ONCE, type Sink } from '../protocol/contract.ts';
import { NO_ABILITIES } from '../protocol/envelope.ts';
import { readMessage } from '../protocol/read.ts';
import { Call, type CallContext, type Callee, type Step } from './call.ts';
import type { Caller } from './caller.ts';
import { OUTCOMES, REFUSED } from './outcome.ts';

const message = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'));
const entry = entryOf('tool', 'x');
const result = Buffer.from('{"content":[]}');
const nameOf = (outcome: number) => (outcome === REFUSED ? 'refused' : OUTCOMES[outcome]!);

/** What the call reported and what its caller received, in order. */
let reports: string[] = [];
let answers: string[] = [];

const context: CallContext = {
  events: { emit: (name) => reports.push(`event ${name}`) },
  counters: {
    of: () => ({
      cacheMisses: 0,
      begin: () => reports.push('begin'),
      end: (outcome) => reports.push(`count ${nameOf(outcome)}`),
    }),
    ofAgent: () => ({ inFlight: 0 }),
    refuse: (_, code) => reports.push(`refuse ${code}`),
    tried: (decision) => reports.push(`tried ${decision}`),
  },
  audit: {
    stops: false,
    before: false,
    recorder: {
      keepsResults: false,
      begun: () => ({ id: '', isWritten: Promise.resolve(true) }),
      ended: (_, outcome, __, error) =>
        reports.push(`record ${nameOf(outcome)}${error === null ? '' : ` ${error.code}`}`),
    },
  },
  start(call) {
    call.found(entry, entry.upstreamName, message.nameStart, message.nameEnd);
    call.advance();
  },
  recheck() {},
};

const sink: Sink = {
  ...NO_ABILITIES,
  ...READS_AT_ONCE,
  owner: {},
  awaySince: null,
  result: () => answers.push('result'),
  error: () => answers.push('error'),
  fail: ({ code }) => answers.push(`fail ${code}`),
  notify() {},
  ask() {},
};

function callOf(...steps: Step[]): Call {
  const caller = { counter: { inFlight: 0 }, found: null, view: () => ({ catalog: catalogOf() }) } as unknown as Caller;
  const call = new Call(context, caller, message, sink, null);
  call.steps = steps;
  return call;
}

const sendTo =
  (source: Callee['call']): Step =>
  (call) => {
    call.counter = context.counters.of(call.entry, call.method);
    call.source = { call: source } as Callee;
    call.send();
    return false;
  };
const waits: Step = (call) => {
  call.waiting = { quit: () => reports.push('quit') };
  return false;
};

beforeEach(() => {
  reports = [];
  answers = [];
});

describe('a call', () => {
  it('runs its steps in order and ends with the answer of its source', () => {
    const passed: string[] = [];
    const pass = (name: string): Step => {
      return () => passed.push(name) > 0;
    };
    const send = sendTo((call) => {
      call.result(result, 'legacy');
      return { cancel() {} };
    });
    callOf(pass('a'), pass('b'), send).start();
    expect(passed).toEqual(['a', 'b']);
    expect(reports).toEqual(['begin', 'count ok', 'record ok']);
    expect(answers).toEqual(['result']);
  });

  it('refused by a step is counted and recorded once, as refused', () => {
    callOf(() => {
      throw new GatewayError('rate_limited', 'Too many.');
    }).start();
    expect(reports).toEqual(['refuse rate_limited', 'record refused rate_limited']);
    expect(answers).toEqual(['fail rate_limited']);
  });

  it('whose source throws is counted and recorded once, as failed', () => {
    callOf(
      sendTo(() => {
        throw new GatewayError('source_unavailable', 'Gone.');
      }),
    ).start();
    expect(reports).toEqual(['begin', 'count failed', 'record failed source_unavailable']);
    expect(answers).toEqual(['fail source_unavailable']);
  });

  it('that hits a bug reports the details to observers but not to its caller', () => {
    callOf(() => {
      throw new TypeError('a secret detail');
    }).start();
    expect(reports).toEqual(['event failure', 'refuse internal', 'record refused internal']);
    expect(answers).toEqual(['fail internal']);
  });

  it('cancelled while it waits gives up its place and is recorded, but not counted as refused', () => {
    const call = callOf(waits);
    call.start();
    call.cancel('enough');
    expect(reports).toEqual(['quit', 'record cancelled cancelled']);
    expect(answers).toEqual([]);
  });

  it('cancelled after it was sent cancels the request at its source and sends nothing to its caller', () => {
    const call = callOf(sendTo(() => ({ cancel: (reason) => reports.push(`cancel ${reason}`) })));
    call.start();
    call.cancel('enough');
    expect(reports).toEqual(['begin', 'count cancelled', 'record cancelled', 'cancel enough']);
    expect(answers).toEqual([]);
  });

  it('ends only once and ignores everything that arrives later', () => {
    const call = callOf(sendTo(() => ({ cancel() {} })));
    call.start();
    call.fail(new GatewayError('source_timeout', 'Too slow.'));
    call.result(result, 'legacy');
    call.error(result, 'legacy');
    call.fail(new GatewayError('source_broken', 'Broken.'));
    call.cancel('enough');
    expect(reports).toEqual(['begin', 'count timeout', 'record timeout source_timeout']);
    expect(answers).toEqual(['fail source_timeout']);
  });

  it('resumes with the next step after waiting, unless it is no longer allowed', () => {
    const allowed = callOf(waits, () => {
      answers.push('went on');
      return false;
    });
    allowed.start();
    allowed.resume();
    expect(answers).toEqual(['went on']);
    const denied = new Call(
      {
        ...context,
        recheck() {
          throw new GatewayError('item_unknown', 'No longer.');
        },
      },
      { counter: { inFlight: 0 } } as Caller,
      message,
      sink,
      null,
    );
    denied.steps = [waits, () => false];
    denied.start();
    denied.resume();
    expect(answers).toEqual(['went on', 'fail item_unknown']);
  });
});
