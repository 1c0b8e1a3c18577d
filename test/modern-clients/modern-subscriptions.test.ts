/** `subscriptions/listen` over HTTP and on stdio: who is notified of what, under which id, and how it ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, type StdioGateway, startHttp, startStdio } from '../support/gateway.ts';
import {
  callTool,
  headersFor,
  listen,
  type Message,
  type Params,
  requestText,
  type Stream,
  SUBSCRIPTION,
} from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { openSocket } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const config = `controls = []\n${serversToml({ up: server('changing') })}`;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const changed = (kind: string) => `notifications/${kind}/list_changed`;
const ALL = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true };

const methods = (messages: readonly Message[]) => messages.map(({ method }) => method);
const ids = (messages: readonly Message[]) => messages.map(({ params }) => params?._meta?.[SUBSCRIPTION]);
let added = 0;
const addition = (kind: string) => ({ name: `up_add_${kind}`, arguments: { name: `x://added${++added}` } });

describe('subscriptions/listen over HTTP', () => {
  let gateway: HttpGateway;
  /** Subscribes to everything. Once it is notified, all other subscribers have been too. */
  let witness: Stream;
  beforeAll(async () => {
    gateway = await startHttp({ config });
    witness = await listen(gateway, ALL, { id: 'witness' });
  });

  async function change(kind: string): Promise<void> {
    const before = witness.messages().length;
    const { name, arguments: args } = addition(kind);
    await callTool(gateway, name, args);
    await waitFor(() => witness.messages().length > before);
    await sleep(50);
  }

  /** Waits for this many messages on each stream. An extra one shows up in the next expectation. */
  const heard = (streams: readonly Stream[], counts: readonly number[]) =>
    waitFor(() => streams.every((stream, index) => stream.messages().length >= counts[index]!));

  it('is acknowledged at once, on a stream, with what will be announced', async () => {
    const stream = await listen(gateway, { toolsListChanged: true, promptsListChanged: false }, { id: 3 });
    await waitFor(() => stream.messages().length > 0);
    expect([stream.response.status, stream.response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect(stream.response.headers.get('x-accel-buffering')).toBe('no');
    expect(stream.messages()).toEqual([
      {
        jsonrpc: '2.0',
        method: ACKNOWLEDGED,
        params: { _meta: { [SUBSCRIPTION]: 3 }, notifications: { toolsListChanged: true } },
      },
    ]);
  });

  it.each<[string, Params]>([
    ['nothing', {}],
    ['what is not possible', { resourceSubscriptions: 'changing://first', constructor: true }],
    ['what is no "true"', { toolsListChanged: 'yes', promptsListChanged: 1, resourcesListChanged: null }],
  ])('that asks for %s is acknowledged as empty and receives nothing', async (_, filter) => {
    const stream = await listen(gateway, filter);
    await change('tool');
    await heard([stream], [1]);
    expect(stream.messages().map(({ method, params }) => [method, params?.notifications])).toEqual([
      [ACKNOWLEDGED, {}],
    ]);
  });

  it.each(['tool', 'prompt', 'resource', 'template'])(
    'announces a change (%s) only to subscribers of that kind',
    async (kind) => {
      const asked = kind === 'template' ? 'resources' : `${kind}s`;
      const kinds = ['tools', 'prompts', 'resources'];
      const streams = await Promise.all(kinds.map((one) => listen(gateway, { [`${one}ListChanged`]: true })));
      await change(kind);
      await heard(
        streams,
        kinds.map((one) => (one === asked ? 2 : 1)),
      );
      expect(streams.map((stream) => methods(stream.messages()))).toEqual(
        kinds.map((one) => [ACKNOWLEDGED, ...(one === asked ? [changed(one)] : [])]),
      );
    },
  );

  it.each([0, -5, 1_784_000_000_000, 'text', '', 'größe ☃ "\\', '7'])('has its id %j in every message', async (id) => {
    const stream = await listen(gateway, ALL, { id });
    await change('tool');
    await change('prompt');
    await heard([stream], [3]);
    expect(methods(stream.messages())).toEqual([ACKNOWLEDGED, changed('tools'), changed('prompts')]);
    expect(ids(stream.messages())).toEqual([id, id, id]);
  });

  it('can be open several times, even under the same id, because clients are independent', async () => {
    const streams = await Promise.all([
      listen(gateway, ALL),
      listen(gateway, ALL),
      listen(gateway, { promptsListChanged: true }),
    ]);
    await change('tool');
    await heard(streams, [2, 2, 1]);
    streams[0]!.close();
    await sleep(30);
    await change('tool');
    await heard(streams, [2, 3, 1]);
    expect(streams.map((stream) => methods(stream.messages()).length)).toEqual([2, 3, 1]);
  });

  it('contains no messages of concurrent calls', async () => {
    const stream = await listen(gateway, ALL, { id: 1 });
    await callTool(gateway, 'up_first', {}, { id: 1, meta: { progressToken: 1 } });
    // A message of the call would come before that of the change.
    await change('tool');
    await heard([stream], [2]);
    expect(methods(stream.messages())).toEqual([ACKNOWLEDGED, changed('tools')]);
  });

  it('leaves nothing behind when the client disconnects', async () => {
    const body = requestText('subscriptions/listen', { notifications: ALL });
    const head = Object.entries(headersFor('subscriptions/listen')).map(([name, value]) => `${name}: ${value}`);
    for (let n = 0; n < 20; n++) {
      const socket = openSocket(gateway.origin);
      socket.write(
        [
          'POST /mcp HTTP/1.1',
          'Host: localhost',
          ...head,
          'Content-Type: application/json',
          `Content-Length: ${body.length}`,
          '',
          body,
        ].join('\r\n'),
      );
      await new Promise((resolve) => socket.once('data', resolve));
      socket.destroy();
    }
    await change('tool');
    expect((await fetch(`${gateway.origin}/health`)).status).toBe(200);
  });

  it('ends with an answer when the gateway stops', async () => {
    const ending = await startHttp({ config });
    const streams = await Promise.all([listen(ending, ALL, { id: 'größe' }), listen(ending, {}, { id: 8 })]);
    await waitFor(() => streams.every((stream) => stream.messages().length > 0));
    await ending.stop();
    await Promise.all(streams.map(({ ended }) => ended));
    expect(streams.map((stream) => stream.messages().at(-1))).toEqual(
      ['größe', 8].map((id) => ({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: id } },
      })),
    );
  });
});

describe('subscriptions/listen on stdio', () => {
  const messagesOf = ({ lines }: StdioGateway) => lines.map((line) => JSON.parse(line.toString()) as Message);
  const of = (gateway: StdioGateway, id: unknown) =>
    messagesOf(gateway).filter(({ params }) => params?._meta?.[SUBSCRIPTION] === id);
  const open = async (gateway: StdioGateway, id: number | string, notifications: Params) => {
    gateway.send(requestText('subscriptions/listen', { notifications }, { id }));
    await waitFor(() => of(gateway, id).length > 0);
  };
  const answered = (gateway: StdioGateway, id: unknown) =>
    waitFor(() => messagesOf(gateway).find((one) => one.id === id));
  let calls = 0;
  /** Changes a list and waits until the subscription `witness` has received this many messages. */
  const change = async (gateway: StdioGateway, kind: string, witness: unknown, count: number) => {
    const id = `change-${++calls}`;
    gateway.send(requestText('tools/call', addition(kind), { id }));
    await answered(gateway, id);
    await waitFor(() => of(gateway, witness).length >= count);
    await sleep(20);
  };

  it('can be open several times, each under its own id, until it is cancelled', async () => {
    const gateway = await startStdio({ config, connect: false });
    await open(gateway, 1, { toolsListChanged: true });
    await open(gateway, '1', ALL);
    await open(gateway, 'größe ☃', { promptsListChanged: true, resourceSubscriptions: ['x://y'] });
    expect(of(gateway, 'größe ☃')[0]?.params?.notifications).toEqual({
      promptsListChanged: true,
      resourceSubscriptions: [],
    });
    await change(gateway, 'tool', '1', 2);
    await change(gateway, 'prompt', '1', 3);
    expect([1, '1', 'größe ☃'].map((id) => methods(of(gateway, id)))).toEqual([
      [ACKNOWLEDGED, changed('tools')],
      [ACKNOWLEDGED, changed('tools'), changed('prompts')],
      [ACKNOWLEDGED, changed('prompts')],
    ]);

    gateway.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}');
    await change(gateway, 'tool', 1, 3);
    expect([of(gateway, 1).length, of(gateway, '1').length]).toEqual([3, 3]);
    // There were no unsolicited messages, and none for the cancelled subscriptions.
    expect(messagesOf(gateway).filter(({ method, params }) => method && !params?._meta?.[SUBSCRIPTION])).toEqual([]);
    expect(messagesOf(gateway).filter(({ id }) => id === '1')).toEqual([]);
  });

  it('needs a unique id', async () => {
    const gateway = await startStdio({ config, connect: false });
    await open(gateway, 'taken', ALL);
    gateway.send(requestText('tools/list', {}, { id: 'taken' }));
    expect(await answered(gateway, 'taken')).toMatchObject({ error: { code: -32600 } });
    await change(gateway, 'tool', 'taken', 2);
    expect(methods(of(gateway, 'taken'))).toEqual([ACKNOWLEDGED, changed('tools')]);
  });

  it.each(['stdin', 'SIGTERM'] as const)('ends with an answer when the gateway stops by %s', async (how) => {
    const gateway = await startStdio({ config, connect: false });
    await open(gateway, 'größe', ALL);
    await open(gateway, 2, ALL);
    await gateway.stop(how);
    const answers = messagesOf(gateway).filter(({ result }) => result !== undefined);
    expect(answers).toEqual(
      ['größe', 2].map((id) => ({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: id } },
      })),
    );
  });
});
