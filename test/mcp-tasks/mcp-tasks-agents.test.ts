/** An MCP task belongs to the agent that started it, in the era in which it started it. With the peers of doors, in this process. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/doors/answer.ts';
import { ModernPeer } from '../../src/doors/modern.ts';
import { Peer } from '../../src/doors/peer.ts';
import { configFromValue, type Gateway } from '../../src/index.ts';
import { readAbilities } from '../../src/protocol/envelope.ts';
import { join } from '../../src/protocol/parts.ts';
import { readMessage } from '../../src/protocol/read.ts';
import { atEnd } from '../support/cleanup.ts';
import { clientOf } from '../support/client.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { envelope, type Reply } from '../support/mcp-tasks.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

interface ListedReply extends Omit<Reply, 'result'> {
  readonly result?: {
    readonly taskId: string;
    readonly status: string;
    readonly task: { readonly taskId: string };
    readonly tasks: readonly { readonly taskId: string }[];
  };
}

type Ask = (method: string, params: object) => Promise<ListedReply>;

let count = 0;

/** The messages of an exchange, with the answer last. */
function exchangeFor(resolve: (reply: ListedReply) => void): Exchange {
  return {
    send() {},
    finish: ({ head, body, tail }) => resolve(JSON.parse(`${head}${join(body)}${tail}`)),
    abandon() {},
    keepAlive() {},
    isFull: false,
    whenDrained: (goOn) => goOn(),
  };
}

function read(method: string, params: object) {
  return readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: ++count, method, params })));
}

function openModern(gateway: Gateway, agent: string): Ask {
  const peer = new ModernPeer(gateway, { ...clientOf(agent), isSingle: false });
  const _meta = envelope();
  return (method, params) =>
    new Promise((resolve) => {
      const message = read(method, { ...params, _meta });
      peer.request(message, readAbilities(message), exchangeFor(resolve), null);
    });
}

interface Session {
  readonly ask: Ask;
  /** Messages that belong to no request. */
  readonly told: { method: string; params: { taskId: string; status: string } }[];
}

async function openSession(gateway: Gateway, agent: string, protocolVersion = '2025-11-25'): Promise<Session> {
  const told: Session['told'] = [];
  const peer = new Peer(gateway, { ...clientOf(agent), notify: (bytes) => told.push(JSON.parse(String(bytes))) });
  const ask: Ask = (method, params) =>
    new Promise((resolve) => peer.request(read(method, params), exchangeFor(resolve)));
  await ask('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  return { ask, told };
}

const UNKNOWN = { code: -32_602, message: expect.stringContaining('The task is unknown') };

describe('two agents', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    const command = (name: string, ...args: string[]) => ({ command: server(name, ...args) });
    const value = {
      controls: [],
      servers: [
        { namespace: 'new', ...command('tasks') },
        { namespace: 'old', ...command('tasks-legacy') },
        { namespace: 'older', ...command('tasks-legacy', '--name', 'second') },
        { namespace: 'unlisted', ...command('tasks-legacy', '--no-list') },
      ],
    };
    gateway = createGateway(configFromValue(value, { cwd: tempFolder(), env: process.env }));
    atEnd(() => gateway.close());
    await gateway.tried();
  });

  it('cannot see the tasks of each other in the modern era', async () => {
    const [ann, ben] = [openModern(gateway, 'ann'), openModern(gateway, 'ben')];
    const { result } = await ann('tools/call', { name: 'new_slow_compute', arguments: { seconds: 30 } });
    const { taskId } = result!;
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect((await ben(method, { taskId, inputResponses: {} })).error).toMatchObject(UNKNOWN);
    expect((await ann('tasks/get', { taskId })).result).toMatchObject({ taskId, status: 'working' });
  });

  it('cannot see the tasks of each other in the legacy era, and list only their own', async () => {
    const ann = await openSession(gateway, 'ann');
    const ben = await openSession(gateway, 'ben');
    const start = async ({ ask }: Session, name: string) =>
      (await ask('tools/call', { name, arguments: { ms: 30_000 }, task: {} })).result!.task.taskId;
    const anns = [await start(ann, 'old_slow'), await start(ann, 'older_slow')];
    const bens = await start(ben, 'old_slow');
    const list = async ({ ask }: Session) =>
      (await ask('tasks/list', {})).result!.tasks.map(({ taskId }) => taskId).sort();
    expect(await list(ann)).toEqual(anns.sort());
    expect(await list(ben)).toEqual([bens]);
    expect(await list(await openSession(gateway, 'ann'))).toEqual(anns);
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      expect((await ben.ask(method, { taskId: anns[0] })).error).toMatchObject(UNKNOWN);

    const other = await openSession(gateway, 'ann');
    expect((await other.ask('tasks/cancel', { taskId: anns[0] })).result).toMatchObject({
      taskId: anns[0],
      status: 'cancelled',
    });
    // Only the session that started it is notified.
    const { result } = await ann.ask('tools/call', { name: 'old_slow', arguments: {}, task: {} });
    await waitFor(() => ann.told.length > 0);
    expect(ann.told).toMatchObject([
      { method: 'notifications/tasks/status', params: { taskId: result!.task.taskId, status: 'completed' } },
    ]);
    expect([...ben.told, ...other.told]).toEqual([]);
  });

  it('cannot see the tasks of one era in the other', async () => {
    const [modern, legacy] = [openModern(gateway, 'ann'), await openSession(gateway, 'ann')];
    const started = await modern('tools/call', { name: 'new_slow_compute', arguments: {} });
    const asked = await legacy.ask('tools/call', { name: 'old_slow', arguments: {}, task: {} });
    for (const method of ['tasks/get', 'tasks/cancel']) {
      expect((await legacy.ask(method, { taskId: started.result!.taskId })).error).toMatchObject(UNKNOWN);
      expect((await modern(method, { taskId: asked.result!.task.taskId })).error).toMatchObject(UNKNOWN);
    }
  });

  it('of a revision without tasks get none, even if they ask for one', async () => {
    const { ask } = await openSession(gateway, 'ann', '2025-06-18');
    for (const method of ['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel'])
      expect((await ask(method, { taskId: 'x' })).error).toMatchObject({ code: -32_601 });
    const { result } = await ask('tools/call', { name: 'old_slow', arguments: {}, task: { ttl: 1000 } });
    expect(result).toMatchObject({ content: [{ text: 'tasks-legacy did ' }] });
  });

  it('can use tasks that their server does not list', async () => {
    const { ask } = await openSession(gateway, 'cat');
    const { result } = await ask('tools/call', { name: 'unlisted_slow', arguments: {}, task: {} });
    const { taskId } = result!.task;
    expect((await ask('tasks/list', {})).result).toEqual({ tasks: [] });
    expect((await ask('tasks/get', { taskId })).result).toMatchObject({ taskId });
  });
});
