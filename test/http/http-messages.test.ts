/** Which messages are accepted: revisions, batches, nesting, and keys that only resemble the ones with a meaning. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { initialize, PING, type RawSession, readMessages, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runs } from '../support/wide.ts';

let gateway: HttpGateway;
let session: RawSession;
const log = join(tempFolder(), 'upstream.log');
beforeAll(async () => {
  const servers = serversToml({ up: server('basic', '--log', log), slow: server('hang') });
  gateway = await startHttp({ config: `controls = []\n${servers}` });
  session = await startSession(gateway);
});

/** The calls that have reached the upstream. */
const upstreamCalls = () =>
  readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"tools/call"'));

const call = (params: string, id: string | number = 1) =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":${params}}`;

describe('the protocol revision', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    '%s is accepted by initialize',
    async (revision) => {
      const reply = await gateway.post(initialize(revision));
      expect(await reply.json()).toMatchObject({
        result: { protocolVersion: revision, serverInfo: { name: 'toolgate' }, capabilities: { tools: {} } },
      });
    },
  );

  it.each([
    ['an old one', '"2024-10-07"'],
    ['one of the future', '"2099-01-01"'],
    ['nonsense', '"x"'],
    ['a number', '1'],
    ['null', 'null'],
  ])('is the newest one of the gateway if the client asks for %s', async (_, wanted) => {
    const params = `{"protocolVersion":${wanted},"capabilities":{},"clientInfo":{"name":"a","version":"1"}}`;
    const reply = await gateway.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}`);
    expect(await reply.json()).toMatchObject({ result: { protocolVersion: '2025-11-25' } });
  });

  const ALL = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

  it.each(ALL)('%s is the only one accepted in the header of a session that negotiated it', async (revision) => {
    const agreed = await startSession(gateway, { revision });
    for (const version of ALL) {
      const reply = await agreed.post(PING, { 'mcp-protocol-version': version });
      expect(reply.status).toBe(version === revision ? 200 : 400);
      if (version !== revision) expect(await reply.text()).toContain(`uses revision ${revision}`);
    }
    expect((await agreed.post(PING)).status).toBe(200);
  });

  it.each(['1999-01-01', '2024-10-07', 'x', ''])('%j in the header is answered with 400', async (version) => {
    const reply = await session.post(PING, { 'mcp-protocol-version': version });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { data: { code: 'version_unsupported' } } });
  });
});

describe('a batch', () => {
  it.each(['2024-11-05', '2025-03-26'])('is answered in a session of %s', async (revision) => {
    const old = await startSession(gateway, { revision });
    const parts = [
      call('{"name":"up_echo","arguments":{"n":1}}', 'a'),
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      call('{"name":"slow_slow","arguments":{"ms":40}}', 'b'),
      '{"jsonrpc":"2.0","id":"c","method":"no/such"}',
    ];
    const answers = (await readMessages(await old.post(`[${parts.join(',')}]`))) as { id: string }[];
    expect(answers.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c']);
    expect(answers.find(({ id }) => id === 'b')).toMatchObject({ result: { content: [{ text: 'slow' }] } });
    expect(answers.find(({ id }) => id === 'c')).toMatchObject({ error: { code: -32601 } });
  });

  it('of notifications only is answered with 202', async () => {
    const old = await startSession(gateway, { revision: '2025-03-26' });
    const reply = await old.post('[{"jsonrpc":"2.0","method":"notifications/initialized"}]');
    expect([reply.status, await reply.text()]).toEqual([202, '']);
  });

  it('with a duplicate id answers both requests, one of them with an error', async () => {
    const old = await startSession(gateway, { revision: '2025-03-26' });
    const one = call('{"name":"slow_slow","arguments":{"ms":30}}', 5);
    const answers = (await readMessages(await old.post(`[${one},${one}]`))) as { result?: unknown; error?: unknown }[];
    expect(answers.map((answer) => 'result' in answer).sort()).toEqual([false, true]);
  });

  it.each([
    ['that is empty', '[]'],
    ['with a part that is no message', `[${PING},3]`],
    ['within a batch', `[[${PING}]]`],
    ['with an initialize in it', `[${initialize('2025-03-26')}]`],
  ])('%s is answered with 400 or an error, and the session keeps working', async (_, body) => {
    const old = await startSession(gateway, { revision: '2025-03-26' });
    const reply = await old.post(body);
    expect(await reply.text()).toContain('"error"');
    expect((await old.post(PING)).status).toBe(200);
  });

  it.each(['2025-06-18', '2025-11-25'])('is refused in a session of %s', async (revision) => {
    const newer = await startSession(gateway, { revision });
    const before = upstreamCalls().length;
    const reply = await newer.post(`[${call('{"name":"up_echo"}')}]`);
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { code: -32600 } }]);
    expect(upstreamCalls()).toHaveLength(before);
  });
});

describe('nesting depth', () => {
  const nested = (levels: number) => `{"name":"up_echo","arguments":${'['.repeat(levels)}${']'.repeat(levels)}}`;

  // The message and its parameters are two of the 64 levels that limits.depth allows.
  it.each([
    [61, 200],
    [62, 200],
    [63, 400],
    [5_000, 400],
    [200_000, 400],
    [1_900_000, 400],
  ])('of %i levels in the arguments is answered with %i', async (levels, status) => {
    const start = performance.now();
    expect((await session.post(call(nested(levels)))).status).toBe(status);
    // A reader that looks at every level again takes minutes.
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  it('counts objects, metadata and unknown members like arrays', async () => {
    const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
    const statuses = async (levels: number) =>
      Promise.all(
        [
          call(`{"name":"up_echo","arguments":${objects(levels)}}`),
          call(`{"name":"up_echo","x":${objects(levels)}}`),
          call(`{"name":"up_echo","_meta":{"x":${objects(levels - 1)}}}`),
          PING.replace('{', `{"x":${objects(levels + 1)},`),
        ].map(async (body) => (await session.post(body)).status),
      );
    expect(await statuses(62)).toEqual([200, 200, 200, 200]);
    expect(await statuses(63)).toEqual([400, 400, 400, 400]);
  });

  it.each([
    ['a number of three megabytes', `{"name":"up_echo","arguments":{"n":${'9'.repeat(3_000_000)}}}`],
    [
      'three hundred thousand keys',
      `{"name":"up_echo","arguments":{${Array.from({ length: 300_000 }, (_, i) => `"k${i}":1`).join()}}}`,
    ],
  ])('is not the only size limit: %s is answered, and other requests do not wait for it', async (_, params) => {
    const big = session.post(call(params, 'big'));
    const start = performance.now();
    expect((await session.post(PING)).status).toBe(200);
    // A reader that compares every key with all others takes minutes.
    expect(performance.now() - start).toBeLessThan(20_000);
    expect((await big).status).toBe(200);
  });
});

describe('keys that resemble protocol keys', () => {
  it.each([
    ['Name', '{"name":"up_echo","Name":"up_count"}'],
    ['NAME', '{"NAME":"up_count","name":"up_echo"}'],
    ['a second name', '{"name":"up_echo","name":"up_count"}'],
    ['a second name in escapes', '{"name":"up_echo","\\u006e\\u0061me":"up_count"}'],
    ['a second arguments', '{"name":"up_echo","arguments":{"a":1},"arguments":{"a":2}}'],
    ['arguments with a long s', '{"name":"up_echo","argument\u017f":{}}'],
    ['Arguments', '{"name":"up_echo","Arguments":{}}'],
    ['a second _meta', '{"name":"up_echo","_meta":{},"_meta":{"progressToken":1}}'],
    ['a second _meta that is no object', '{"name":"up_echo","_meta":{},"_meta":1}'],
    ['_META', '{"name":"up_echo","_META":{"progressToken":1}}'],
    ['a second progress token', '{"name":"up_echo","_meta":{"progressToken":1,"progressToken":2}}'],
    ['progresstoken', '{"name":"up_echo","_meta":{"progresstoken":1}}'],
    ['ProgressToken beside the right one', '{"name":"up_echo","_meta":{"progressToken":"a","ProgressToken":1}}'],
    ['progressToken with a Kelvin sign', '{"name":"up_echo","_meta":{"progressTo\u212aen":1}}'],
    ['Uri', '{"name":"up_echo","Uri":"x://y"}'],
  ])('are refused before a call is made: %s', async (_, params) => {
    const before = upstreamCalls().length;
    const reply = await session.post(call(params));
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { code: -32600 } }]);
    expect(upstreamCalls()).toHaveLength(before);
  });

  it.each([
    ['a second id', `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`],
    ['ID', `{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`],
    ['a second method', `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`],
    ['Method', `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}`],
    ['a second params', `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`],
    ['PARAMS', `{"jsonrpc":"2.0","id":1,"method":"ping","PARAMS":{}}`],
    ['Result', `{"jsonrpc":"2.0","id":1,"method":"ping","Result":{}}`],
  ])('are refused next to the parameters too: %s', async (_, body) => {
    expect((await session.post(body)).status).toBe(400);
  });

  it('never reach the upstream, in any spelling', async () => {
    const known = ['name', 'arguments', 'uri', '_meta'];
    const folds: Record<string, string[]> = {
      s: ['S', '\u017f', '\\u0073', '\\u017F'],
      i: ['I', '\u0131'],
      k: ['K', '\u212a'],
    };
    const spelling = fc.constantFrom(...known).chain((word) =>
      fc
        .tuple(...[...word].map((c) => fc.constantFrom(c, ...(folds[c] ?? [c.toUpperCase()]))))
        .map((letters) => letters.join(''))
        .filter((written) => written !== word),
    );
    const before = upstreamCalls().length;
    await fc.assert(
      fc.asyncProperty(spelling, fc.boolean(), async (key, first) => {
        const decoy = `"${key}":"up_count"`;
        const right = '"name":"up_echo","arguments":{},"_meta":{},"uri":"x:"';
        const reply = await session.post(call(`{${first ? `${decoy},${right}` : `${right},${decoy}`}}`));
        expect(reply.status).toBe(400);
      }),
      { numRuns: runs(150) },
    );
    expect(upstreamCalls()).toHaveLength(before);
  });

  it('pass through to the upstream inside arguments', async () => {
    const args = '{"Name":1,"name":2,"name":3,"__proto__":{"x":1},"progresstoken":4,"ARGUMENTS":{"constructor":5}}';
    expect((await session.post(call(`{"name":"up_echo","arguments":${args}}`))).status).toBe(200);
    expect(upstreamCalls().at(-1)).toContain(`"arguments":${args}`);
  });
});
