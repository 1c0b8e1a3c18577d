import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Message } from '../protocol/message.ts';
import type { Question } from '../protocol/question.ts';
import { readMessage } from '../protocol/read.ts';
import type { Holder } from './holder.ts';
import { asFirst, createParkedCalls, type ParkedCalls } from './parked.ts';

const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function callMessage(params: object = {}): Message {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'n', ...params } };
  return readMessage(Buffer.from(JSON.stringify(message)));
}

/** A holder that records the states it was parked with. */
function createHolder() {
  const states: string[] = [];
  const fail = vi.fn();
  const holder = { park: (_: unknown, state: string) => states.push(state), fail } as unknown as Holder;
  return { holder, states, fail };
}

function createQuestion() {
  const answer = vi.fn<(result: Buffer) => void>();
  const refuse = vi.fn<(error: Buffer) => void>();
  const question: Question = {
    method: 'elicitation/create',
    params: null,
    lasting: false,
    answer,
    refuse,
    withdrawn() {},
  };
  return { question, answer, refuse };
}

function parkOne(parked: ParkedCalls, agent = 'a') {
  const { holder, states } = createHolder();
  const cancel = vi.fn<(reason: string) => void>();
  const call = parked.begin(agent, callMessage(), holder, cancel);
  const asked = createQuestion();
  call.ask(asked.question);
  return { call, cancel, state: states[0]!, ...asked };
}

const back = (requestState: string) =>
  callMessage({ requestState, inputResponses: { 'question-1': { action: 'accept' } } });

describe('a parked call', () => {
  it('expires if the client does not return within two minutes', () => {
    const parked = createParkedCalls();
    const { cancel, refuse, state } = parkOne(parked);
    vi.advanceTimersByTime(2 * MINUTE - 1);
    expect([parked.size, cancel.mock.calls.length, refuse.mock.calls.length]).toEqual([1, 0, 0]);
    vi.advanceTimersByTime(1);
    expect([parked.size, cancel.mock.calls.length, refuse.mock.calls.length]).toEqual([0, 1, 1]);
    expect(() => parked.resume('a', back(state), createHolder().holder)).toThrow('requestState');
  });

  it('restarts its time limit with each question, and has none while the server is working', () => {
    const parked = createParkedCalls();
    const { call, cancel, state, answer } = parkOne(parked);
    vi.advanceTimersByTime(MINUTE);
    const { holder, states } = createHolder();
    parked.resume('a', back(state), holder);
    expect(answer.mock.calls.map(String)).toEqual(['{"action":"accept"}']);
    vi.advanceTimersByTime(10 * MINUTE);
    call.ask(createQuestion().question);
    expect(states).toHaveLength(1);
    vi.advanceTimersByTime(2 * MINUTE - 1);
    expect(cancel).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('cannot be resumed by another agent', () => {
    const parked = createParkedCalls();
    const { state, answer } = parkOne(parked);
    expect(() => parked.resume('b', back(state), createHolder().holder)).toThrow('requestState');
    expect(answer).not.toHaveBeenCalled();
    expect(parked.resume('a', back(state), createHolder().holder)).not.toBeNull();
  });

  it('is refused if its agent has eight of them, which does not affect other agents', () => {
    const parked = createParkedCalls();
    const calls = Array.from({ length: 9 }, () => parkOne(parked));
    expect(calls.map(({ refuse }) => refuse.mock.calls.length)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(parkOne(parked, 'b').refuse).not.toHaveBeenCalled();
    expect(parked.size).toBe(9);
  });

  it('keeps its result until the client returns, with or without an answer', () => {
    for (const params of [back, (requestState: string) => callMessage({ requestState })]) {
      const parked = createParkedCalls();
      const { call, state } = parkOne(parked);
      call.deliver((holder) => holder.fail(new Error('the end') as never));
      const { holder, fail } = createHolder();
      parked.resume('a', params(state), holder);
      expect(fail).toHaveBeenCalledOnce();
      expect(parked.size).toBe(0);
    }
  });

  it('is cancelled when the gateway closes', () => {
    const parked = createParkedCalls();
    const { cancel, refuse } = parkOne(parked);
    parked.close();
    expect([parked.size, cancel.mock.calls.length, refuse.mock.calls.length]).toEqual([0, 1, 1]);
    vi.advanceTimersByTime(5 * MINUTE);
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('continues without the answer if the server withdraws its question', () => {
    const parked = createParkedCalls();
    const { call, question, state, answer } = parkOne(parked);
    const other = createQuestion();
    call.ask(other.question);
    question.withdrawn('never mind');
    other.question.withdrawn('never mind');
    const { holder, states, fail } = createHolder();
    parked.resume('a', back(state), holder);
    expect([answer.mock.calls.length, states.length]).toEqual([0, 0]);
    call.deliver((current) => current.fail(new Error('the end') as never));
    expect(fail).toHaveBeenCalledOnce();
  });

  it('is not needed for a request that starts over, which fails if the user declined', () => {
    const parked = createParkedCalls();
    const { holder, fail } = createHolder();
    const state = parked.stateFor('a', callMessage());
    expect(parked.resume('a', back(state), holder)).toBeNull();
    expect(JSON.parse(asFirst(back(state)).bytes.toString()).params).toEqual({ name: 'n' });
    expect(() => parked.resume('b', back(state), holder)).toThrow('requestState');
    const no = callMessage({ requestState: state, inputResponses: { x: { action: 'decline' } } });
    expect(parked.resume('a', no, holder)).not.toBeNull();
    expect(fail).toHaveBeenCalledOnce();
    const foreign = back('of a server');
    expect(asFirst(foreign)).toBe(foreign);
  });

  it('is not resumed if the request has no state of ours', () => {
    const parked = createParkedCalls();
    expect(parked.resume('a', back('of a server'), createHolder().holder)).toBeNull();
    expect(parked.resume('a', callMessage(), createHolder().holder)).toBeNull();
  });
});
