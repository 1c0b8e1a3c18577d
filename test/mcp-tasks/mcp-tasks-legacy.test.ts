/** Tasks of 2025-11-25, with a client of SDK v1, which supports them. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { at, command, configOf, RELATED, startTasks } from '../support/mcp-tasks.ts';
import { waitFor } from '../support/processes.ts';
import { withoutServer } from '../support/questions.ts';
import { server } from '../support/server.ts';

const ASKED = { capabilities: { elicitation: {} } };

/** Starts a task by calling a tool, and returns its id. */
async function startTask(client: Client, name: string, args: object = {}): Promise<string> {
  const params = { name, arguments: { ...args }, task: { ttl: 60_000 } };
  const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema);
  return task.taskId;
}

interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

async function resultOf({ experimental }: Client, taskId: string): Promise<Result> {
  return (await experimental.tasks.getTaskResult(taskId, CallToolResultSchema)) as unknown as Result;
}

describe('a server on stdio', () => {
  const config = configOf({ one: command(server('tasks-legacy')) });

  it('reports progress long after it has answered the call', async () => {
    const gateway = await startHttp({ config });
    const open = async () => {
      const told: unknown[] = [];
      const { client } = await gateway.connect();
      const params = { name: 'one_slow', arguments: { ms: 300 }, task: {} };
      const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema, {
        onprogress: (progress) => told.push(progress),
      });
      return { client, told, taskId: task.taskId };
    };
    const all = await Promise.all([open(), open()]);
    expect(all.map(({ told }) => told)).toEqual([[], []]);
    for (const { client, taskId, told } of all) {
      expect((await resultOf(client, taskId)).isError).toBeUndefined();
      await waitFor(() => told.length > 0);
      expect(told).toEqual([{ progress: 1 }]);
    }
  });

  it('that asks before the client requests the result waits for that request', async () => {
    const { client } = await startStdio({ config: configOf({ one: command(server('asking-early')) }), ...ASKED });
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
      action: 'accept',
      content: { word: JSON.stringify(params._meta?.[RELATED]) },
    }));
    const id = await startTask(client, 'one_early');
    await waitFor(async () => (await client.experimental.tasks.getTask(id)).status === 'input_required');
    const { word } = JSON.parse((await resultOf(client, id)).content[0]!.text);
    expect(JSON.parse(word)).toEqual({ taskId: id });
  });
});

describe.each(['stdio', 'http'])('servers of 2025-11-25 on %s', (way) => {
  let config: string;
  let gateway: HttpGateway;
  beforeAll(async () => {
    const place = async (name: string) =>
      way === 'stdio'
        ? command(server('tasks-legacy', '--name', name))
        : at((await startTasks('tasks-legacy', '--name', name)).url);
    config = configOf({ one: await place('one'), two: await place('two') });
    gateway = await startHttp({ config });
  });

  const doors: [string, () => Promise<Client>][] = [
    ['stdio', async () => (await startStdio({ config, ...ASKED })).client],
    ['HTTP', async () => (await gateway.connect(ASKED)).client],
  ];

  it.each(doors)('run a call as a task for a client on %s', async (_, open) => {
    const client = await open();
    expect(client.getServerCapabilities()?.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === 'one_slow')?.execution).toEqual({ taskSupport: 'optional' });

    const ids = await Promise.all(['one', 'two'].map((name) => startTask(client, `${name}_slow`, { label: 'it' })));
    const results = await Promise.all(ids.map((id) => resultOf(client, id)));
    expect(results.map(({ content }) => content[0]!.text)).toEqual(['one did it', 'two did it']);
    expect(results.map(({ _meta }) => _meta![RELATED])).toEqual(ids.map((taskId) => ({ taskId })));
    const tasks = await Promise.all(ids.map((id) => client.experimental.tasks.getTask(id)));
    expect(tasks.map(({ taskId, status }) => [taskId, status])).toEqual(ids.map((id) => [id, 'completed']));
    const listed = (await client.experimental.tasks.listTasks()).tasks.map(({ taskId }) => taskId);
    expect(listed).toEqual(expect.arrayContaining(ids));
  });

  it.each(doors)('stream a task to a client on %s', async (_, open) => {
    const client = await open();
    // The SDK runs a tool as a task only after it has listed it as able to.
    await client.listTools();
    const follow = async (name: string, args: Record<string, unknown>) => {
      const seen = [];
      for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args }))
        seen.push(message);
      return seen;
    };
    const good = await follow('one_slow', { label: 'it' });
    expect(good[0]!.type).toBe('taskCreated');
    expect(good.at(-2)).toMatchObject({ type: 'taskStatus', task: { status: 'completed' } });
    expect(good.at(-1)).toMatchObject({ type: 'result', result: { content: [{ text: 'one did it' }] } });
    const bad = await follow('one_fail', {});
    expect(bad[0]!.type).toBe('taskCreated');
    expect(bad.at(-2)).toMatchObject({ type: 'taskStatus', task: { status: 'failed' } });
    expect(bad.at(-1)!.type).toBe('error');
  });

  it.each(doors)('ask during a task, and the client on %s that waits for the result answers', async (_, open) => {
    const client = await open();
    const asked: unknown[] = [];
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      const message = withoutServer(params.message);
      asked.push([message, params._meta?.[RELATED]]);
      return { action: 'accept', content: { word: message } };
    });
    // Two at once: a message that names its task has one recipient.
    const ids = [
      await startTask(client, 'one_ask', { message: 'first' }),
      await startTask(client, 'one_ask', { message: 'second' }),
    ];
    const results = await Promise.all(ids.map((id) => resultOf(client, id)));
    expect(results.map(({ content }) => JSON.parse(content[0]!.text))).toEqual([{ word: 'first' }, { word: 'second' }]);
    expect(asked).toEqual(
      expect.arrayContaining([
        ['first', { taskId: ids[0] }],
        ['second', { taskId: ids[1] }],
      ]),
    );
    // A server that has asked once gets more processes, but its tasks stay in the process that started them.
    const again = await startTask(client, 'one_slow', { label: 'again' });
    expect((await resultOf(client, again)).content[0]!.text).toBe('one did again');
  });

  it('keep the questions of two clients apart', async () => {
    const open = async (word: string) => {
      const { client } = await gateway.connect(ASKED);
      client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { word } }));
      return client;
    };
    const clients = await Promise.all(['a', 'b', 'c'].map(open));
    const words = await Promise.all(
      clients.map(async (client) => {
        const id = await startTask(client, 'two_ask', { message: '?' });
        return JSON.parse((await resultOf(client, id)).content[0]!.text);
      }),
    );
    expect(words).toEqual([{ word: 'a' }, { word: 'b' }, { word: 'c' }]);
  });

  it('cancel a task, and notify its owner that it is over', async () => {
    const { client, notifications } = await gateway.connect();
    const id = await startTask(client, 'one_slow', { ms: 60_000 });
    expect(await client.experimental.tasks.cancelTask(id)).toMatchObject({ taskId: id, status: 'cancelled' });
    await expect(client.experimental.tasks.cancelTask(id)).rejects.toMatchObject({ code: -32_602 });
    const other = await startTask(client, 'two_slow', { ms: 50 });
    const news = await waitFor(() => notifications.find(({ method }) => method === 'notifications/tasks/status'));
    expect(news.params).toMatchObject({ taskId: other, status: 'completed' });
  });

  it('answer with the same error for all unknown tasks', async () => {
    const { client } = await gateway.connect();
    const id = await startTask(client, 'one_slow');
    const messages = new Set<string>();
    for (const taskId of ['', 'task-1', `${id}x`, id.replace(/^\d+/, '7')]) {
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
        const error = await client
          .request({ method, params: { taskId } } as never, CallToolResultSchema)
          .catch((e) => e);
        expect(error).toMatchObject({ code: -32_602 });
        messages.add(error.message);
      }
    }
    expect(messages.size).toBe(1);
  });

  it('refuse with a protocol error to run as a task what they do not declare', async () => {
    const { client } = await gateway.connect();
    await expect(startTask(client, 'one_plain')).rejects.toMatchObject({
      code: -32_601,
      message: expect.stringContaining('cannot be run as a task'),
    });
    await expect(startTask(client, 'one_unknown')).rejects.toMatchObject({ code: -32_602 });
    expect(await client.callTool({ name: 'one_plain' })).toMatchObject({ content: [{ text: 'one is plain' }] });
  });
});
