/**
 * Listens to the MCP tasks of a modern server. This uses a separate subscription, so that the other subscriptions need
 * not be reopened for each task.
 */
import { BadQuestion, inquiryOf, mayAsk } from '../../protocol/asked-by.ts';
import { READS_AT_ONCE, type Sink, type SourceRequest, type Ticket } from '../../protocol/contract.ts';
import { NO_ABILITIES, TASKS_CAPABILITY } from '../../protocol/envelope.ts';
import { decodeString, findMember, JsonError, readElements, toBytes } from '../../protocol/json.ts';
import type { Message } from '../../protocol/message.ts';
import { CLIENT_CAPABILITIES } from '../../protocol/meta.ts';
import { join } from '../../protocol/parts.ts';
import { unanswerable } from '../../protocol/question.ts';
import { readMessage } from '../../protocol/read.ts';
import { requestMessage } from '../../protocol/rpc.ts';
import { asNotified } from '../../protocol/task.ts';
import { ownParams } from '../../sources/ask.ts';
import { keepListening, type Listening } from '../../sources/listening.ts';
import type { Source } from '../../sources/source.ts';
import { TaskCall } from './task-calls.ts';

export interface TaskListening {
  /** The tasks that the server agreed to report; empty if it did not agree in time. */
  readonly agreed: Promise<readonly string[]>;
  stop(): void;
}

const METHOD = 'subscriptions/listen';

/** A sink that ignores everything. */
const SILENT: Sink = {
  ...NO_ABILITIES,
  ...READS_AT_ONCE,
  owner: {},
  awaySince: null,
  result() {},
  error() {},
  fail() {},
  notify() {},
  ask: ({ method, refuse }) => refuse(unanswerable(method, 'it was asked outside of a call')),
};

/** `server` is what its questions are told to be from. `notify` gets the parameters of each notification. */
export function listenToTasks(
  source: Source,
  server: string,
  ids: readonly string[],
  timeout: number,
  notify: (params: Buffer) => void,
): TaskListening {
  let ticket: Ticket | null = null;
  let listening: Listening | null = null;
  let isAgreed = false;
  let agree: (ids: readonly string[]) => void = () => {};
  const agreed = new Promise<readonly string[]>((resolve) => {
    agree = resolve;
  });
  const late = setTimeout(settle, timeout, []);
  late.unref();

  function settle(tasks: readonly string[]): void {
    clearTimeout(late);
    agree(tasks);
  }

  function lost(): void {
    settle([]);
    if (isAgreed) listening?.lost();
  }

  const sink: Sink = {
    ...SILENT,
    result: lost,
    error: lost,
    fail: lost,
    notify(bytes) {
      const message = readMessage(bytes);
      if (message.method === 'notifications/tasks') {
        const told = withAsker(server, bytes.subarray(message.paramsStart, message.paramsEnd));
        if (told !== null) notify(told);
      } else {
        isAgreed = true;
        settle(readAgreed(message));
        listening?.taken();
      }
    },
  };
  const params = { notifications: { taskIds: ids }, _meta: { [CLIENT_CAPABILITIES]: TASKS_CAPABILITY } };
  const request: SourceRequest = {
    method: METHOD,
    encode: (id, era) => requestMessage(id, METHOD, ownParams(params, era)),
    headers: () => ['mcp-method', METHOD],
    token: null,
    timeout: Number.POSITIVE_INFINITY,
    totalTimeout: Number.POSITIVE_INFINITY,
    sink,
    client: null,
    pinned: true,
  };
  const open = () => {
    ticket = source.call(request);
  };
  // After an interruption the current state of each task is requested, so that the client does not have to poll.
  const missed = () => {
    for (const id of ids) reportState(source, id, timeout, notify);
  };
  listening = keepListening(open, missed);
  return {
    agreed,
    stop() {
      listening.stop();
      ticket?.cancel('nobody listens any more');
    },
  };
}

/** With the name of the server in each question. Null if a question must not be passed on: asking for the task says why. */
function withAsker(server: string, params: Buffer): Buffer | null {
  if (!mayAsk(params)) return params;
  try {
    return join(inquiryOf(server, params));
  } catch (error) {
    if (error instanceof BadQuestion || error instanceof JsonError) return null;
    throw error;
  }
}

/** Reports the current state of an MCP task, if the task still exists. */
function reportState(source: Source, id: string, timeout: number, notify: (params: Buffer) => void): void {
  const method = 'tasks/get';
  const message = readMessage(requestMessage(0, method, toBytes({ taskId: id })));
  const sink: Sink = {
    ...SILENT,
    capabilities: JSON.stringify(TASKS_CAPABILITY),
    result: (result) => notify(asNotified(join(result))),
  };
  source.call(new TaskCall(message, id, sink, timeout));
}

function readAgreed({ bytes, paramsStart, paramsEnd }: Message): string[] {
  const filter = findMember(bytes, 'notifications', paramsStart, paramsEnd);
  const ids = filter === null ? null : findMember(bytes, 'taskIds', filter.start, filter.end);
  const elements = ids === null ? null : readElements(bytes, ids.start, ids.end);
  return (elements ?? [])
    .filter(({ start }) => bytes[start] === 0x22)
    .map(({ start, end }) => decodeString(bytes, start, end));
}
