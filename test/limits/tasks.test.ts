/** MCP tasks and limits: a call that starts an MCP task ends with that, and the reply with the task is never cut. */
import { CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { server } from '../support/server.ts';

it('a call that starts an MCP task frees its slot as soon as the task is started', async () => {
  const gateway = await startHttp({
    config: `
controls = []
[[servers]]
namespace = "one"
command = ${JSON.stringify(server('tasks-legacy'))}
concurrency = 1
queue = 0
max_result = 20
`,
  });
  const { client } = await gateway.connect();
  const start = async () => {
    const params = { name: 'one_slow', arguments: { ms: 300 }, task: { ttl: 60_000 } };
    return (await client.request({ method: 'tools/call', params }, CreateTaskResultSchema)).task.taskId;
  };
  const ids = [await start(), await start(), await start()];
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) {
    const result = await client.experimental.tasks.getTaskResult(id, CallToolResultSchema);
    expect(JSON.stringify(result)).toContain('text');
  }
  const running = client.callTool({ name: 'one_slow', arguments: { ms: 1000 } });
  await callsInFlight(gateway);
  await expect(start()).rejects.toThrow('Server "one" is busy');
  await running;
});
