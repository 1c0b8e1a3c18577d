import { describe, expect, it } from 'vitest';
import type { Message } from './message.ts';
import { RELATED_TASK } from './meta.ts';
import { readMessage } from './read.ts';
import {
  exchangeIds,
  idIn,
  isTask,
  relatedTask,
  startedTask,
  taskIdOf,
  underSubscription,
  withoutTasks,
} from './task.ts';

const bytes = (text: string) => Buffer.from(text);
const request = (params: string, method = 'tools/call'): Message =>
  readMessage(bytes(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`));
const paramsOf = ({ bytes, paramsStart, paramsEnd }: Message) => bytes.toString('utf8', paramsStart, paramsEnd);

describe('isTask', () => {
  it.each([
    ['{"resultType":"task","taskId":"1"}', true],
    ['{"taskId":"1", "resultType" : "task"}', true],
    ['{"resultType":"complete","content":[]}', false],
    ['{"resultType":"complete","structuredContent":{"resultType":"task"}}', false],
    ['{"resultType":"complete","kind":"task"}', false],
    ['{}', false],
  ])('%s: %s', (result, expected) => {
    expect(isTask(bytes(result))).toBe(expected);
    expect(isTask([bytes(result.slice(0, 3)), bytes(result.slice(3))])).toBe(expected);
  });

  it('does not search long results', () => {
    expect(isTask(bytes(`{"resultType":"task","statusMessage":"${'x'.repeat(20_000)}"}`))).toBe(false);
  });
});

describe('exchangeIds', () => {
  const exchange = (text: string) => exchangeIds(bytes(text), (id) => `<${id}>`).toString();

  it.each([
    ['{"taskId":"a","n":1.0}', '{"taskId":"<a>","n":1.0}'],
    ['{ "task" : { "taskId" : "a" } }', '{ "task" : { "taskId" : "<a>" } }'],
    [
      `{"_meta":{"x":1,"${RELATED_TASK}":{"taskId":"ü"}},"taskId":"b"}`,
      `{"_meta":{"x":1,"${RELATED_TASK}":{"taskId":"<ü>"}},"taskId":"<b>"}`,
    ],
    ['{"taskId":"\\u0061\\"","taskId":"b"}', '{"taskId":"<a\\">","taskId":"<b>"}'],
  ])('%s becomes %s', (text, expected) => {
    expect(exchange(text)).toBe(expected);
  });

  it.each([
    '{"result":{"taskId":"a"},"content":[{"taskId":"a"}],"structuredContent":{"task":{"taskId":"a"}}}',
    '{"taskId":7,"task":"a","_meta":{"taskId":"a"}}',
    '{}',
  ])('%s stays the same', (text) => {
    expect(exchange(text)).toBe(text);
  });
});

describe('the id of a task', () => {
  it('is found in a result', () => {
    expect(startedTask(bytes('{"task":{"taskId":"a"}}'))).toBe('a');
    expect(startedTask(bytes('{"content":[]}'))).toBeNull();
    expect(startedTask(bytes('{"task":"a"}'))).toBeNull();
    expect(idIn(bytes('{"status":"working","taskId":"a"}'))).toBe('a');
  });

  it('is found in a request and in a question', () => {
    expect(taskIdOf(request('{"taskId":"a"}', 'tasks/get'))).toBe('a');
    expect(taskIdOf(request('{"taskId":1}', 'tasks/get'))).toBeNull();
    expect(relatedTask(request(`{"_meta":{"${RELATED_TASK}":{"taskId":"a"}}}`, 'elicitation/create'))).toBe('a');
    expect(relatedTask(request('{"_meta":{}}', 'elicitation/create'))).toBeNull();
  });

  it.each(['TaskId', 'taskid', 'TASK', 'tas\\u212a'])('cannot be confused with the key %s', (key) => {
    expect(() => request(`{"taskId":"a","${key}":"b"}`, 'tasks/get')).toThrow('could be taken for');
  });
});

describe('withoutTasks', () => {
  const clean = (params: string, mayRunAsTask: boolean) => paramsOf(withoutTasks(request(params), mayRunAsTask));

  it('removes related tasks, and the request to run as a task unless it is allowed', () => {
    expect(clean('{"name":"x", "task":{"ttl":1},"arguments":{"task":1.0}}', false)).toBe(
      '{"name":"x","arguments":{"task":1.0}}',
    );
    expect(clean('{"task":{},"name":"x"}', true)).toBe('{"task":{},"name":"x"}');
    expect(clean(`{"_meta":{"progressToken":1,"${RELATED_TASK}":{"taskId":"a"}},"task":{},"name":"x"}`, true)).toBe(
      '{"_meta":{"progressToken":1},"task":{},"name":"x"}',
    );
    expect(clean(`{"name":"x","_meta":{"${RELATED_TASK}":{"taskId":"a"}}}`, false)).toBe('{"name":"x","_meta":{}}');
  });

  it('returns the same request if nothing is removed', () => {
    const message = request('{"name":"x","_meta":{"traceparent":"t"}}');
    expect(withoutTasks(message, false)).toBe(message);
  });
});

it('underSubscription replaces the id of the subscription', () => {
  const id = '"io.modelcontextprotocol/subscriptionId"';
  expect(underSubscription(bytes(`{"taskId":"a","_meta":{${id}:5,"x":1}}`), bytes('"s"')).toString()).toBe(
    `{"_meta":{${id}:"s","x":1},"taskId":"a"}`,
  );
  expect(underSubscription(bytes('{"taskId":"a"}'), bytes('7')).toString()).toBe(`{"_meta":{${id}:7},"taskId":"a"}`);
});
