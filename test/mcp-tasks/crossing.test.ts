/** MCP tasks do not cross eras: what happens instead. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { killServer, runningServers } from '../support/in-process-server.ts';
import { call, command, configOf, RELATED, request, startTask, TASKS } from '../support/mcp-tasks.ts';
import { errorOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

describe('across the eras', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({
      config: configOf({ new: command(server('tasks')), old: command(server('tasks-legacy')) }),
    });
  });

  it('a legacy client learns that a modern tool cannot run as a task, and the tool does not run', async () => {
    const { client } = await gateway.connect();
    const { tools } = await client.listTools();
    const support = Object.fromEntries(tools.map(({ name, execution }) => [name, execution?.taskSupport]));
    expect(support).toMatchObject({ new_slow_compute: undefined, new_greet: undefined, old_slow: 'optional' });
    const params = { name: 'new_slow_compute', arguments: {}, task: {} };
    await expect(client.request({ method: 'tools/call', params }, CreateTaskResultSchema)).rejects.toMatchObject({
      code: -32_601,
      message: expect.stringContaining('cannot be run as a task'),
    });
  });

  it('a legacy client gets results of modern tools, or the reason why there is none', async () => {
    const { client } = await gateway.connect({
      capabilities: { elicitation: {}, extensions: { [TASKS]: {} } } as never,
    });
    expect(await client.callTool({ name: 'new_slow_compute', arguments: { label: 'x' } })).toMatchObject({
      content: [{ text: 'tasks computed x' }],
    });
    // It is an extension of the other era, so declaring it here means nothing.
    const told = await client.callTool({ name: 'new_capabilities' });
    expect(told).toMatchObject({ content: [{ text: '{"elicitation":{}}' }] });
    expect(errorOf(await client.callTool({ name: 'new_rude' })).message).toContain('answered with a task');
    const { code, message } = errorOf(await client.callTool({ name: 'new_failing_job' }));
    expect(code).toBe('capability_missing');
    expect(message).toContain(TASKS);
  });

  it('a modern client does not see how legacy tools may run, and never gets a task from them', async () => {
    const listed = await request(gateway, 'tools/list', {});
    expect(JSON.stringify(listed)).not.toContain('taskSupport');
    const params = { name: 'old_slow', arguments: { label: 'x' }, task: { ttl: 1000 } };
    const { result } = await request(gateway, 'tools/call', params);
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'tasks-legacy did x' }] });
    expect(result).not.toHaveProperty('task');
    // A tool that runs only as a task says so itself, and its answer is passed on.
    expect((await call(gateway, 'old_fail')).result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('fail requires task augmentation') }],
    });
  });
});

describe('a message of a client about a task', () => {
  it('does not reach a server under the original id, which may be the task of another client', async () => {
    const log = join(tempFolder(), 'log');
    const config = configOf({ b: command(server('basic', '--log', log)) });
    const gateway = await startHttp({ config });
    const { client } = await gateway.connect();
    const _meta = { [RELATED]: { taskId: 'task-1' }, kept: 1 };
    await client.callTool({ name: 'b_echo', arguments: {}, _meta });
    await request(gateway, 'tools/call', { name: 'b_echo', arguments: {} }, { meta: _meta });
    const lines = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes('tools/call'));
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line).not.toContain(RELATED);
      expect(JSON.parse(line).params._meta).toMatchObject({ kept: 1 });
    }
  });
});

describe('a server that was restarted', () => {
  it('reports itself that its tasks are gone', async () => {
    const names = { new: `new-${randomUUID()}`, old: `old-${randomUUID()}` };
    const config = configOf({
      new: command(server('tasks', '--name', names.new)),
      old: command(server('tasks-legacy', '--name', names.old)),
    });
    const gateway = await startHttp({ config });
    const { client } = await gateway.connect();
    const taskId = await startTask(gateway, 'new_slow_compute', { seconds: 60 });
    const params = { name: 'old_slow', arguments: { ms: 60_000 }, task: {} };
    const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema);
    for (const name of Object.values(names)) for (const pid of runningServers(name)) killServer(pid);
    await waitFor(async () => (await call(gateway, 'new_greet', { name: 'x' })).result?.isError !== true);
    await waitFor(async () => (await call(gateway, 'old_plain')).result?.isError !== true);
    const { error } = await request(gateway, 'tasks/get', { taskId });
    expect(error).toMatchObject({ code: -32_602, message: `${names.new} has no task task-1` });
    await expect(client.experimental.tasks.getTask(task.taskId)).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('not found'),
    });
    expect((await client.experimental.tasks.listTasks()).tasks).toEqual([]);
  });
});
