/** Tasks between modern clients and modern servers. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import {
  at,
  call,
  command,
  configOf,
  envelope,
  type Reply,
  request,
  send,
  startTask,
  startTasks,
  TAKES_TASKS,
  TASKS,
  textOf,
  until,
} from '../support/mcp-tasks.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';

const UNKNOWN = { code: -32_602, message: expect.stringContaining('The task is unknown') };
const MISSING = {
  code: -32_021,
  data: expect.objectContaining({ requiredCapabilities: { extensions: { [TASKS]: {} } } }),
};

describe.each(['stdio', 'http'])('modern servers on %s', (way) => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    const place = async (name: string) =>
      way === 'stdio' ? command(server('tasks', '--name', name)) : at((await startTasks('tasks', '--name', name)).url);
    gateway = await startHttp({ config: configOf({ one: await place('one'), two: await place('two') }) });
  });

  it('with the same task ids each answer for their own tasks', async () => {
    const first = await startTask(gateway, 'one_slow_compute', { label: 'a' });
    const second = await startTask(gateway, 'two_slow_compute', { label: 'b' });
    expect(first).not.toBe(second);
    const [one, two] = await Promise.all([first, second].map((id) => until(gateway, id, 'completed')));
    expect(textOf(one!)).toBe('one computed a');
    expect(textOf(two!)).toBe('two computed b');
    expect(one!.taskId).toBe(first);
  });

  it('receive the answers to the questions of a task, and report its cancellation', async () => {
    const taskId = await startTask(gateway, 'one_multi_input');
    const { inputRequests } = await until(gateway, taskId, 'input_required');
    expect(Object.values(inputRequests!).map(({ params }) => params.message)).toEqual([
      'Server "one" asks: First?',
      'Server "one" asks: Second?',
    ]);
    const answer = { action: 'accept', content: { name: 'ü' } };
    for (const key of ['first', 'second']) {
      const { result } = await request(gateway, 'tasks/update', { taskId, inputResponses: { [key]: answer } });
      expect(result).toEqual({ resultType: 'complete' });
    }
    expect(JSON.parse(textOf(await until(gateway, taskId, 'completed')))).toEqual({ first: answer, second: answer });

    const other = await startTask(gateway, 'two_slow_compute', { seconds: 60 });
    expect((await request(gateway, 'tasks/cancel', { taskId: other })).result).toEqual({ resultType: 'complete' });
    expect((await until(gateway, other, 'cancelled')).status).toBe('cancelled');
  });

  it('notify about tasks with a subscription, and about no others', async () => {
    const mine = await startTask(gateway, 'one_confirm_delete');
    const alsoMine = await startTask(gateway, 'two_confirm_delete');
    const notWanted = await startTask(gateway, 'one_confirm_delete');
    const leaving = new AbortController();
    const response = await send(
      gateway.url,
      'subscriptions/listen',
      { notifications: { toolsListChanged: true, taskIds: [mine, alsoMine, 'forged', mine] } },
      { signal: leaving.signal },
    );
    const told: { method: string; params: Record<string, unknown> & { taskId?: string; status?: string } }[] = [];
    void readEvents(response, (message) => told.push(message as (typeof told)[number])).catch(() => {});
    await waitFor(() => told.length > 0);
    const subscription = told[0]!.params._meta;
    expect(told).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: subscription, notifications: { toolsListChanged: true, taskIds: [mine, alsoMine] } },
      },
    ]);

    const inputResponses = { confirm: { action: 'accept', content: {} } };
    for (const taskId of [notWanted, mine, alsoMine])
      await request(gateway, 'tasks/update', { taskId, inputResponses });
    await waitFor(() => told.filter(({ params }) => params.status === 'completed').length === 2);
    const tasks = told.slice(1);
    expect(tasks.every(({ method, params }) => method === 'notifications/tasks' && params._meta)).toBe(true);
    expect(tasks.map(({ params }) => params._meta)).toEqual(tasks.map(() => subscription));
    expect([...new Set(tasks.map(({ params }) => params.taskId))].sort()).toEqual([mine, alsoMine].sort());

    leaving.abort();
    await waitFor(async () => {
      const { result } = await call(gateway, 'one_listening');
      return result!.content![0]!.text === '[]';
    });
  });

  it('say which server asks, also in a notification', async () => {
    const taskId = await startTask(gateway, 'one_multi_input');
    const leaving = new AbortController();
    const response = await send(
      gateway.url,
      'subscriptions/listen',
      { notifications: { taskIds: [taskId] } },
      { signal: leaving.signal },
    );
    type Asked = Record<string, { params: { message: string; _meta: object } }>;
    const told: { params: { inputRequests?: Asked } }[] = [];
    void readEvents(response, (message) => told.push(message as (typeof told)[number])).catch(() => {});
    await waitFor(() => told.length === 1);
    const { inputRequests } = await until(gateway, taskId, 'input_required');
    const [first, ...others] = Object.keys(inputRequests!);
    await request(gateway, 'tasks/update', { taskId, inputResponses: { [first!]: { action: 'accept', content: {} } } });
    const { params } = await waitFor(() => told.find(({ params }) => params.inputRequests !== undefined));
    expect(Object.keys(params.inputRequests!)).toEqual(others);
    for (const { params: question } of Object.values(params.inputRequests!))
      expect(question).toMatchObject({
        message: expect.stringMatching(/^Server "one" asks: (?!Server)/),
        _meta: { 'toolgate/server': 'one' },
      });
    leaving.abort();
  });

  it('that end a subscription are asked for missed changes', async () => {
    const taskId = await startTask(gateway, 'one_confirm_delete');
    const leaving = new AbortController();
    const response = await send(
      gateway.url,
      'subscriptions/listen',
      { notifications: { taskIds: [taskId] } },
      { signal: leaving.signal },
    );
    const told: { params: { taskId?: string; status?: string; resultType?: string } }[] = [];
    void readEvents(response, (message) => told.push(message as (typeof told)[number])).catch(() => {});
    await waitFor(() => told.length === 1);
    await call(gateway, 'one_hang_up');
    const inputResponses = { confirm: { action: 'accept', content: {} } };
    await request(gateway, 'tasks/update', { taskId, inputResponses });
    const { params } = await waitFor(() => told.find(({ params }) => params.status === 'completed'));
    expect(params.taskId).toBe(taskId);
    expect(params).not.toHaveProperty('resultType');
    leaving.abort();
  });

  it('see exactly the capabilities that the client declares', async () => {
    const told = async (capabilities: object) =>
      JSON.parse((await call(gateway, 'one_capabilities', {}, { capabilities })).result!.content![0]!.text);
    expect(await told(TAKES_TASKS)).toEqual(TAKES_TASKS);
    expect(await told({ extensions: { 'com.example/other': {}, [TASKS]: {} } })).toEqual({
      extensions: { [TASKS]: {} },
    });
    expect(await told({ extensions: { [TASKS]: true } })).toEqual({});
    expect(await told({ sampling: {} })).toEqual({ sampling: {} });
  });

  it('run a call to its end for a client without tasks, or say that they cannot', async () => {
    const options = { capabilities: {} };
    expect((await call(gateway, 'one_slow_compute', {}, options)).result).toMatchObject({ resultType: 'complete' });
    expect((await call(gateway, 'one_failing_job', {}, options)).error).toMatchObject(MISSING);
    const { result } = await call(gateway, 'one_rude', {}, options);
    expect(result).toMatchObject({ resultType: 'complete', isError: true });
    expect(result!.content![0]!.text).toContain('Server \\"one\\" answered with a task');
  });
});

describe('a modern client', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    const config = configOf({ t: command(server('tasks')) });
    gateway = await startHttp({ config });
  });

  it('sees the extension, and must declare it to use it', async () => {
    expect((await request(gateway, 'server/discover', {})).result!.capabilities).toMatchObject({
      extensions: { [TASKS]: {} },
    });
    expect((await request(gateway, 'server/discover', {})).result!.capabilities).not.toHaveProperty('tasks');
    const taskId = await startTask(gateway, 't_slow_compute');
    const options = { capabilities: { elicitation: {} } };
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const response = await send(gateway.url, method, { taskId, inputResponses: {} }, options);
      expect(response.status).toBe(400);
      expect((await response.json()) as object).toMatchObject({ error: MISSING });
    }
    const listening = await request(gateway, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, options);
    expect(listening.error).toMatchObject(MISSING);
  });

  it('gets the same error for every id that is not one of its tasks', async () => {
    const taskId = await startTask(gateway, 't_slow_compute');
    const [source, id, mac] = taskId.split('.') as [string, string, string];
    const other = Buffer.from('task-99').toString('base64url');
    const forged = [
      '',
      'task-1',
      `${source}.${other}.${mac}`,
      `9.${id}.${mac}`,
      `${taskId}x`,
      taskId.slice(0, -1),
      '.',
      id,
    ];
    for (const one of forged) {
      const answers = await Promise.all(
        ['tasks/get', 'tasks/update', 'tasks/cancel'].map((method) =>
          request(
            gateway,
            method,
            { taskId: one, inputResponses: {} },
            { headers: { 'mcp-name': one || '=?base64??=' } },
          ),
        ),
      );
      for (const { error } of answers) expect(error, one).toEqual({ ...UNKNOWN, data: expect.anything() });
    }
    expect((await request(gateway, 'tasks/get', {})).error).toMatchObject({ code: -32_020 });
  });

  it('cannot reach another task with a forged id', async () => {
    const taskId = await startTask(gateway, 't_slow_compute');
    for (const key of ['TaskId', 'taskid', 'TASKID'])
      expect((await request(gateway, 'tasks/get', { taskId, [key]: 'task-1' })).error).toMatchObject({ code: -32_600 });
  });

  it('must also name the task in a header', async () => {
    const taskId = await startTask(gateway, 't_slow_compute');
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const response = await send(gateway.url, method, { taskId }, { headers: { 'mcp-name': 'task-1' } });
      expect(response.status).toBe(400);
      expect((await response.json()) as object).toMatchObject({ error: { code: -32_020 } });
    }
  });

  it('cannot use the methods of the legacy era, and gets no task by asking for one', async () => {
    for (const method of ['tasks/result', 'tasks/list'])
      expect((await request(gateway, method, { taskId: 'x' })).error).toMatchObject({ code: -32_601 });
    const params = { name: 't_greet', arguments: { name: 'you' }, task: { ttl: 1 } };
    expect((await request(gateway, 'tools/call', params)).result!.content![0]!.text).toBe('Hello, you!');
  });

  it('has the same on stdio', async () => {
    const pipe = await startStdio({ config: configOf({ t: command(server('tasks')) }), connect: false });
    const ask = async (method: string, params: object): Promise<Reply> =>
      JSON.parse((await pipe.request(method, JSON.stringify({ ...params, _meta: envelope() }))).toString());
    const { result } = await ask('tools/call', { name: 't_confirm_delete', arguments: {} });
    const { taskId } = result!;
    void pipe
      .request('subscriptions/listen', JSON.stringify({ notifications: { taskIds: [taskId] }, _meta: envelope() }))
      .catch(() => {});
    const told = () =>
      pipe.lines.map((line) => JSON.parse(line.toString())).filter(({ method }) => method !== undefined);
    await waitFor(() => told().length === 1);
    await ask('tasks/update', { taskId, inputResponses: { confirm: { action: 'accept', content: {} } } });
    const last = await waitFor(() => told().find(({ params }) => params.status === 'completed'));
    expect(last).toMatchObject({ method: 'notifications/tasks', params: { taskId, _meta: told()[0].params._meta } });
    expect((await ask('tasks/get', { taskId })).result).toMatchObject({ taskId, status: 'completed' });
  });

  it('can be asked before a task starts', async () => {
    const params = { name: 't_test_tool_with_task', arguments: {} };
    const { result } = await request(gateway, 'tools/call', params);
    expect(result!.resultType).toBe('input_required');
    const inputResponses = { user_name: { action: 'accept', content: { name: 'Ann' } } };
    const again = await request(gateway, 'tools/call', {
      ...params,
      inputResponses,
      requestState: result!.requestState,
    });
    expect(again.result!.resultType).toBe('task');
    expect(textOf(await until(gateway, again.result!.taskId, 'completed'))).toBe('for Ann');
  });
});

/** Calls `hear` with each message of an event stream. */
async function readEvents(response: Response, hear: (message: unknown) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body!) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith('data:')) hear(JSON.parse(line.slice(5)));
  }
}
