/** What the gateway answers on stdout to valid and invalid input. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

interface Answer {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data: Record<string, unknown> };
}

const config = `controls = []\n${serversToml({ up: server('basic'), slow: server('hang') })}`;
const PING = '{"jsonrpc":"2.0","id":"ping","method":"ping"}';

/** Writes lines and returns the next `count` messages. */
async function say(gateway: StdioGateway, count: number, ...lines: (string | Uint8Array)[]): Promise<Answer[]> {
  const before = gateway.lines.length;
  for (const line of lines) gateway.send(line);
  await waitFor(() => gateway.lines.length >= before + count);
  return gateway.lines.slice(before).map((line) => JSON.parse(line.toString()) as Answer);
}

const initialize = (revision: string, id = 'init') =>
  `{"jsonrpc":"2.0","id":"${id}","method":"initialize","params":{"protocolVersion":"${revision}","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`;

async function startRaw(revision: string): Promise<StdioGateway> {
  const gateway = await startStdio({ config, connect: false });
  await say(gateway, 1, initialize(revision));
  return gateway;
}

describe('stdio before initialize', () => {
  let gateway: StdioGateway;
  beforeAll(async () => {
    gateway = await startStdio({ config, connect: false });
  });

  it('ping is answered', async () => {
    expect(await say(gateway, 1, PING)).toEqual([{ jsonrpc: '2.0', id: 'ping', result: {} }]);
  });

  it.each(['tools/list', 'resources/list', 'prompts/list', 'tools/call', 'resources/read', 'prompts/get'])(
    '%s is refused with a hint',
    async (method) => {
      const [answer] = await say(
        gateway,
        1,
        `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"name":"up_echo"}}`,
      );
      expect(answer).toMatchObject({ id: 1 });
      expect(JSON.stringify(answer)).toContain(`Send \\"initialize\\" before`);
    },
  );

  it('a batch is refused, because no revision was negotiated', async () => {
    expect(await say(gateway, 1, `[${PING}]`)).toMatchObject([{ id: null, error: { code: -32600 } }]);
  });

  it('initialize works after all of that, and only once', async () => {
    const answers = await say(gateway, 2, initialize('2025-06-18'), initialize('2025-06-18', 'again'));
    expect(answers).toMatchObject([
      { id: 'init', result: { protocolVersion: '2025-06-18', serverInfo: { name: 'toolgate' } } },
      { id: 'again', error: { code: -32600 } },
    ]);
  });
});

describe('a stdio message', () => {
  let gateway: StdioGateway;
  beforeAll(async () => {
    gateway = await startStdio({ config });
  });

  it.each([
    ['text', 'hello'],
    ['half a message', '{"jsonrpc":"2.0","id":5,'],
    ['two messages on one line', `${PING}${PING}`],
    ['a batch without an end', `[${PING}`],
    ['not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d)],
    ['a NUL', Uint8Array.of(0)],
  ])('that is %s is answered as a parse error or an invalid request with the id null', async (_, line) => {
    const [answer, next] = await say(gateway, 2, line, PING);
    expect(answer).toMatchObject({ jsonrpc: '2.0', id: null, error: { data: { success: false, result: null } } });
    expect([-32700, -32600]).toContain(answer?.error?.code);
    expect(next).toMatchObject({ id: 'ping', result: {} });
  });

  it.each(['{}', '3', '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","id":1,"method":""}', '[]', `[${PING}]`])(
    'that is %s is an invalid request',
    async (line) => {
      expect(await say(gateway, 1, line)).toMatchObject([{ id: null, error: { code: -32600 } }]);
    },
  );

  it.each(['no/such', 'tools', 'toString', '__proto__', 'notifications/x'])(
    'of the method %s is answered as unknown',
    async (method) => {
      const [answer] = await say(gateway, 1, JSON.stringify({ jsonrpc: '2.0', id: 9, method }));
      expect(answer).toMatchObject({ id: 9, error: { code: -32601, data: { code: 'method_unknown' } } });
    },
  );

  it('is read on a line that ends in CRLF, and between empty lines', async () => {
    expect(await say(gateway, 1, '', `${PING}\r`, '\r', '')).toMatchObject([{ id: 'ping', result: {} }]);
  });

  it('that is a notification or a response is not answered', async () => {
    const lines = [
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","method":"no/such"}',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never"}}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
    ];
    expect(await say(gateway, 1, ...lines, PING)).toMatchObject([{ id: 'ping' }]);
  });

  it.each(['0', '-1', '1.0', '1e3', '9007199254740993', '""', '"\\u0041\\/"', '"é 日本 😀"', '"null"'])(
    'gets its id %s back verbatim',
    async (id) => {
      const before = gateway.lines.length;
      await say(gateway, 1, `{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
      expect(gateway.lines[before]!.toString()).toContain(`"id":${id}`);
      const [answer] = await say(
        gateway,
        1,
        `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"up_count"}}`,
      );
      expect(answer).toMatchObject({ id: JSON.parse(id) as unknown, result: {} });
    },
  );

  it.each(['7', '"seven"', '"é 日本 😀"', '"\\u0041\\/"', '1e3'])('with the id %s can be cancelled', async (id) => {
    const tag = `tag ${id}`;
    const call = { name: 'slow_hang', arguments: { tag } };
    const lines = [
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${JSON.stringify(call)}}`,
      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"enough"}}`,
    ];
    const asked = '{"jsonrpc":"2.0","id":"asked","method":"tools/call","params":{"name":"slow_cancelled"}}';
    const [answer] = await say(gateway, 1, ...lines, asked);
    expect(JSON.stringify(answer)).toContain(JSON.stringify(JSON.stringify(tag)).slice(1, -1));
  });
});

describe('a stdio line over limits.body', () => {
  it('is refused with the id null, and the next line is read', async () => {
    const gateway = await startStdio({ config: `controls = []\n[limits]\nbody = 10000\n` });
    const sized = (bytes: number) => `${PING.slice(0, -1)},"x":"${'x'.repeat(bytes - PING.length - 7)}"}`;
    expect(sized(10_000)).toHaveLength(10_000);
    const answers = await say(gateway, 4, sized(10_000), sized(10_001), 'y'.repeat(3_000_000), PING);
    expect(answers).toMatchObject([
      { id: 'ping', result: {} },
      { id: null, error: { data: { code: 'too_large' } } },
      { id: null, error: { data: { code: 'too_large' } } },
      { id: 'ping', result: {} },
    ]);
  });
});

describe('a stdio batch', () => {
  it.each(['2024-11-05', '2025-03-26'])('is answered, part by part, in %s', async (revision) => {
    const gateway = await startRaw(revision);
    const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"up_count"}}';
    const answers = await say(gateway, 2, `[${PING},{"jsonrpc":"2.0","method":"notifications/initialized"}, ${call}]`);
    expect(answers.flat().map((answer) => answer.id)).toEqual(['ping', 2]);
  });

  it('with an invalid part gets an error for that part and answers for the others', async () => {
    const gateway = await startRaw('2025-03-26');
    const answers = await say(gateway, 4, `[${PING},{"x":1},3,${PING.replace('"ping"', '"last"')}]`);
    expect(answers.flat().map(({ id }) => id)).toEqual(['ping', null, null, 'last']);
  });

  it.each(['[]', ' [ ] '])('that is empty (%s) is an invalid request', async (line) => {
    const gateway = await startRaw('2025-03-26');
    expect(await say(gateway, 1, line)).toMatchObject([{ id: null, error: { code: -32600 } }]);
  });

  it('that is not JSON is a parse error', async () => {
    const gateway = await startRaw('2025-03-26');
    const answers = await say(gateway, 2, `[${PING}`, `[${PING}] x`);
    expect(answers).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: null, error: { code: -32700 } },
    ]);
  });

  it.each(['2025-06-18', '2025-11-25'])('is refused in %s', async (revision) => {
    const gateway = await startRaw(revision);
    expect(await say(gateway, 1, `[${PING}]`)).toMatchObject([{ id: null, error: { code: -32600 } }]);
  });
});
