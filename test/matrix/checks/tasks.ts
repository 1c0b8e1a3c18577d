/** Calls as MCP tasks, which go on after they were answered, in each era. */
import { expect } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import type { MatrixClient } from '../clients.ts';
import { NAMESPACE } from '../servers.ts';

interface Task {
  readonly taskId: string;
  readonly status: string;
  /** In the modern era, when the task is over. */
  readonly result?: { readonly content: unknown };
}

const content = [{ type: 'text', text: 'the work is done' }];

export async function tasks(subject: MatrixClient): Promise<void> {
  const { start, cancel, resultOf } = subject.side.era === 'legacy' ? ofLegacy(subject) : ofModern(subject);
  const get = async ({ taskId }: Task) => (await subject.request('tasks/get', { taskId })) as unknown as Task;
  const brief = await start(200);
  const long = await start(60_000);
  expect([brief, long]).toMatchObject([{ status: 'working' }, { status: 'working' }]);
  expect(brief.taskId).not.toBe(long.taskId);
  expect(await get(long)).toMatchObject({ taskId: long.taskId, status: 'working' });
  expect(await get(brief)).toMatchObject({ taskId: brief.taskId });
  await waitFor(async () => (await get(brief)).status === 'completed');
  expect((await resultOf(brief)).content).toEqual(content);
  await cancel(long);
  expect(await get(long)).toMatchObject({ taskId: long.taskId, status: 'cancelled' });
  await expect(get({ taskId: 'nobody-knows', status: '' })).rejects.toMatchObject({ code: -32_602 });
}

interface Ways {
  start(ms: number): Promise<Task>;
  cancel(task: Task): Promise<void>;
  resultOf(task: Task): Promise<{ content?: unknown }>;
}

function ofLegacy(subject: MatrixClient): Ways {
  return {
    async start(ms) {
      const params = { name: `${NAMESPACE}_job`, arguments: { ms }, task: { ttl: 60_000 } };
      const { task } = (await subject.request('tools/call', params)) as unknown as { task: Task };
      const { tasks: all } = (await subject.request('tasks/list')) as unknown as { tasks: Task[] };
      expect(all.map(({ taskId }) => taskId)).toContain(task.taskId);
      return task;
    },
    async cancel({ taskId }) {
      expect(await subject.request('tasks/cancel', { taskId })).toMatchObject({ taskId, status: 'cancelled' });
    },
    resultOf: ({ taskId }) => subject.request('tasks/result', { taskId }),
  };
}

function ofModern(subject: MatrixClient): Ways {
  return {
    async start(ms) {
      // The SDK has no tasks yet: it rejects the result, but the result has arrived.
      const from = subject.messages.length;
      await subject.call('job', { ms }).catch(() => {});
      const answers = subject.messages.slice(from).flatMap((message) => ('result' in message ? [message.result] : []));
      expect(answers).toMatchObject([{ resultType: 'task', taskId: expect.any(String) }]);
      return answers[0] as unknown as Task;
    },
    async cancel({ taskId }) {
      expect(await subject.request('tasks/cancel', { taskId })).not.toHaveProperty('status');
    },
    resultOf: async ({ taskId }) => (await subject.request('tasks/get', { taskId })).result as { content: unknown },
  };
}
