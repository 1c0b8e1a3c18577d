/** The stateless door on stdio: the first message of a client decides its era. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { KEYS, REVISION } from '../support/modern-offer.ts';
import { type Message, requestText, textOf } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `controls = []\n${serversToml({ up: server('basic'), slow: server('hang') })}`;
const start = () => startStdio({ config, connect: false });

/**
 * Writes lines and returns the next `count` messages in the order of the lines. Replies that wait for servers come
 * later.
 */
async function say(gateway: StdioGateway, count: number, ...lines: string[]): Promise<Message[]> {
  const before = gateway.lines.length;
  for (const line of lines) gateway.send(line);
  await waitFor(() => gateway.lines.length >= before + count);
  const place = ({ id }: Message) => lines.findIndex((line) => line.includes(`"id":${JSON.stringify(id)},`));
  const messages = gateway.lines.slice(before).map((line) => JSON.parse(line.toString()) as Message);
  return messages.sort((one, two) => place(one) - place(two));
}

const INITIALIZE =
  '{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}';
const BARE = '{"jsonrpc":"2.0","id":"bare","method":"tools/list","params":{}}';

describe('a stdio client whose first message has an envelope', () => {
  it('is answered in the revision it names, whichever method comes first', async () => {
    const [list] = await say(await start(), 1, requestText('tools/list'));
    expect(list).toMatchObject({ id: 1, result: { resultType: 'complete', cacheScope: 'private' } });
    const [found] = await say(await start(), 1, requestText('server/discover', {}, { id: 'd' }));
    expect(found).toMatchObject({
      id: 'd',
      result: {
        resultType: 'complete',
        supportedVersions: expect.arrayContaining([REVISION, '2025-11-25']),
        capabilities: { tools: { listChanged: true } },
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'toolgate' } },
      },
    });
  });

  it('must send an envelope with every later request', async () => {
    const gateway = await start();
    const [, bare, again] = await say(
      gateway,
      3,
      requestText('server/discover'),
      BARE,
      requestText('tools/list', {}, { id: 'again' }),
    );
    expect(bare).toMatchObject({ id: 'bare', error: { code: -32602 } });
    expect(again).toMatchObject({ result: { resultType: 'complete' } });
  });

  it('may still open a session, and then stays in it', async () => {
    const gateway = await start();
    const [, opened] = await say(gateway, 2, requestText('server/discover'), INITIALIZE);
    expect(opened).toMatchObject({ id: 'init', result: { protocolVersion: '2025-11-25' } });
    const [bare, enveloped] = await say(gateway, 2, BARE, requestText('tools/list', {}, { id: 'again' }));
    for (const answer of [bare!, enveloped!]) {
      expect(answer.result).toHaveProperty('tools');
      expect(answer.result).not.toHaveProperty('resultType');
    }
    expect(await say(gateway, 1, '{')).toEqual([expect.objectContaining({ id: null })]);
  });

  it('with an unknown revision is told the supported ones, and can continue', async () => {
    const gateway = await start();
    const unknown = requestText('server/discover', {}, { id: 5, meta: { [KEYS.version]: '2099-01-01' } });
    const [refused] = await say(gateway, 1, unknown);
    expect(refused).toMatchObject({
      id: 5,
      error: { code: -32022, data: { supported: expect.arrayContaining([REVISION]), requested: '2099-01-01' } },
    });
    expect(await say(gateway, 1, requestText('tools/list'))).toMatchObject([{ result: { resultType: 'complete' } }]);
    expect(await say(gateway, 1, INITIALIZE)).toMatchObject([{ result: { protocolVersion: '2025-11-25' } }]);
  });
});

describe('a stdio client that opens a session', () => {
  it('stays in it, even if a request has an envelope', async () => {
    const gateway = await start();
    const discover = requestText('server/discover', {}, { id: 'd' });
    const call = requestText('tools/call', { name: 'up_echo', arguments: { a: 1 } }, { id: 'c' });
    const [, found, called] = await say(gateway, 3, INITIALIZE, discover, call);
    expect(found).toMatchObject({ id: 'd', error: { code: -32601 } });
    expect(called?.result).toEqual({ content: [{ type: 'text', text: '{"a":1}' }] });
  });
});

describe('a stateless message on stdio', () => {
  let gateway: StdioGateway;
  beforeAll(async () => {
    gateway = await start();
    await say(gateway, 1, requestText('server/discover'));
  });

  it.each([
    ['no JSON', '{', -32700],
    ['a batch', `[${requestText('tools/list')}]`, -32600],
    ['a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', -32600],
  ])('that cannot be parsed is answered without an id: %s', async (_, line, code) => {
    const [answer] = await say(gateway, 1, line);
    expect(answer).toMatchObject({ error: { code } });
    expect(answer).not.toHaveProperty('id');
  });

  it.each<[string, Record<string, unknown>]>([
    ['no capabilities', { [KEYS.capabilities]: undefined }],
    ['capabilities that are no object', { [KEYS.capabilities]: [] }],
    ['a revision that is no text', { [KEYS.version]: 1 }],
    ['a client without a version', { [KEYS.client]: { name: 'a' } }],
    ['a log level that is none', { [KEYS.level]: 'loud' }],
  ])('is refused for %s', async (_, meta) => {
    expect(await say(gateway, 1, requestText('tools/list', {}, { id: 'x', meta }))).toMatchObject([
      { id: 'x', error: { code: -32602 } },
    ]);
  });

  it.each(['ping', 'logging/setLevel', 'resources/subscribe', 'no/such'])(
    'of the method %s is answered as unknown',
    async (method) => {
      expect(await say(gateway, 1, requestText(method))).toMatchObject([{ id: 1, error: { code: -32601 } }]);
    },
  );

  it('that is a response or an unknown notification is not answered', async () => {
    const lines = ['{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","method":"no/such"}'];
    expect(await say(gateway, 1, ...lines, requestText('tools/list', {}, { id: 'next' }))).toMatchObject([
      { id: 'next' },
    ]);
  });

  it.each([7, 'seven', 'größe ☃'])('with the id %j can be cancelled, and is then not answered', async (id) => {
    const call = requestText('tools/call', { name: 'slow_hang', arguments: { tag: `tag ${id}` } }, { id });
    const cancel = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    const asked = requestText('tools/call', { name: 'slow_cancelled' }, { id: 'asked' });
    const [answer] = await say(gateway, 1, call, cancel, asked);
    expect(answer?.id).toBe('asked');
    expect(textOf(answer!)).toContain(`tag ${id}`);
  });

  it('receives progress under its own token, before the answer', async () => {
    const params = { name: 'slow_slow', arguments: { ms: 60, steps: 3 } };
    const messages = await say(
      gateway,
      4,
      requestText('tools/call', params, { id: 'p', meta: { progressToken: 'größe' } }),
    );
    expect(messages.map((one) => one.params?.progressToken ?? one.id)).toEqual(['größe', 'größe', 'größe', 'p']);
  });

  it('can have an answer of a megabyte', async () => {
    const result = { content: [{ type: 'text', text: 'größe\n'.repeat(180_000) }] };
    const file = join(tempFolder({ 'result.json': JSON.stringify(result) }), 'result.json');
    const [answer] = await say(gateway, 1, requestText('tools/call', { name: 'up_raw', arguments: { file } }));
    expect(answer?.result).toEqual({ resultType: 'complete', ...result });
  });
});
