/** The door for requests that stand for themselves, over HTTP: what it says of itself, and what it refuses in which way. */
import { beforeAll, describe, expect, it } from 'vitest';
import { exchange, initialize, startSession } from '../http/raw.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { KEYS, REVISION } from './offer.ts';
import { ask, callTool, headersFor, post, requestText, textOf } from './request.ts';

const SUPPORTED = [REVISION, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
let gateway: HttpGateway;
beforeAll(async () => {
  const servers = serversToml({ up: server('basic', '--resources', 'note://a', '--prompts', 'greet') });
  gateway = await startHttp({
    config: `controls = []\n${servers}\n[http]\nallowed_origins = ["https://app.example"]\n`,
  });
});

const modern = { 'mcp-protocol-version': REVISION };

describe('server/discover', () => {
  it('says what there is, and for how long that holds', async () => {
    expect(await ask(gateway, 'server/discover', {}, { id: 'd-1' })).toEqual({
      status: 200,
      before: [],
      jsonrpc: '2.0',
      id: 'd-1',
      result: {
        resultType: 'complete',
        supportedVersions: SUPPORTED,
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: true, listChanged: true },
          prompts: { listChanged: true },
          completions: {},
          extensions: { 'io.modelcontextprotocol/tasks': {} },
          logging: {},
        },
        ttlMs: expect.any(Number),
        cacheScope: 'private',
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'toolgate', version: expect.any(String) } },
      },
    });
  });

  it('needs no client to name itself', async () => {
    expect((await ask(gateway, 'server/discover', {}, { meta: { [KEYS.client]: undefined } })).status).toBe(200);
  });
});

describe('the revision', () => {
  it.each(['2099-01-01', '2025-11-25', 'v999.0.0', ''])(
    '%j in header and body is answered with those there are',
    async (requested) => {
      const options = { meta: { [KEYS.version]: requested }, headers: { 'mcp-protocol-version': requested }, id: 7 };
      expect(await ask(gateway, 'tools/list', {}, options)).toMatchObject({
        status: 400,
        id: 7,
        error: { code: -32022, data: { supported: SUPPORTED, requested } },
      });
    },
  );

  it('in the header has to be the one in the body, whether that is known or not', async () => {
    const unlike = { meta: { [KEYS.version]: 'v999.0.0' } };
    expect(await ask(gateway, 'tools/list', {}, unlike)).toMatchObject({ status: 400, error: { code: -32020 } });
    const old = { headers: { 'mcp-protocol-version': '2025-11-25' } };
    expect(await ask(gateway, 'tools/list', {}, old)).toMatchObject({ status: 400, error: { code: -32020 } });
  });

  it('in the body alone is not enough', async () => {
    const reply = await gateway.post(requestText('tools/list'), { 'mcp-method': 'tools/list' });
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 1, error: { code: -32020 } }]);
  });

  it('in the header alone is an envelope that is missing', async () => {
    const reply = await gateway.post('{"jsonrpc":"2.0","id":5,"method":"tools/list"}', headersFor('tools/list'));
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 5, error: { code: -32602 } }]);
  });
});

describe('which era a request belongs to', () => {
  it('is decided for each by itself: sessions and requests without one share the address', async () => {
    const session = await startSession(gateway);
    expect(await callTool(gateway, 'up_echo', { a: 1 })).toMatchObject({
      status: 200,
      result: { resultType: 'complete' },
    });
    const legacy = await session.ask('tools/call', { name: 'up_echo', arguments: { a: 2 } });
    expect(legacy.result).toEqual({ content: [{ type: 'text', text: '{"a":2}' }] });
  });

  it('is not the session’s to decide: its header is ignored, known or not, and none is given back', async () => {
    const { id } = await startSession(gateway);
    for (const session of [id, 'no-such-session']) {
      const headers = { 'mcp-session-id': session, 'last-event-id': '3' };
      const reply = await post(gateway, 'tools/list', {}, { headers });
      expect([reply.status, reply.headers.get('mcp-session-id')]).toEqual([200, null]);
    }
  });

  it('with an envelope inside a session is that of the envelope', async () => {
    const session = await startSession(gateway);
    const reply = await session.post(requestText('ping'), headersFor('ping'));
    expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: -32601 } }]);
  });

  it('is the earlier one for "initialize" without an envelope, unless the header says otherwise', async () => {
    expect((await gateway.post(initialize())).status).toBe(200);
    const reply = await gateway.post(initialize(), modern);
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 0, error: { code: -32602 } }]);
  });
});

describe('a method', () => {
  it.each([
    ...['no/such', 'toString', 'initialize', 'ping', 'logging/setLevel'],
    ...['resources/subscribe', 'resources/unsubscribe', 'tasks/result', 'tasks/list'],
  ])('%s that is not of this revision answers 404', async (method) => {
    const answer = await ask(gateway, method, { level: 'info', uri: 'up_note://a' }, { id: 'x' });
    expect(answer).toMatchObject({ status: 404, id: 'x', error: { code: -32601 } });
  });

  it.each([
    ['resources/read', { uri: 'no://such' }, -32602],
    ['prompts/get', { name: 'no_such' }, -32602],
    ['tools/list', { cursor: 'x' }, -32602],
    ['subscriptions/listen', {}, -32602],
    // The fixture fails without arguments.
    ['tools/call', { name: 'up_raw' }, -32603],
  ])('%s that fails for what it asks answers 200 and the error', async (method, params, code) => {
    expect(await ask(gateway, method, params)).toMatchObject({ status: 200, id: 1, error: { code } });
  });

  it('tools/call of a tool that is not there answers with a result that models read', async () => {
    const answer = await callTool(gateway, 'up_echoo');
    expect(answer).toMatchObject({ status: 200, result: { resultType: 'complete', isError: true } });
    expect(textOf(answer)).toContain('up_echo');
  });

  it.each([['tools/call'], ['prompts/get'], ['resources/read']])(
    '%s without a name is no match for any header',
    async (method) => {
      for (const name of ['up_echo', 'undefined', '']) {
        const answer = await ask(gateway, method, {}, { headers: { 'mcp-name': name } });
        expect(answer).toMatchObject({ status: 400, error: { code: -32020 } });
      }
    },
  );
});

describe('what is no request', () => {
  it.each([
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['one that is unknown', '{"jsonrpc":"2.0","method":"no/such"}'],
  ])('is taken: %s', async (_, body) => {
    const reply = await gateway.post(body, modern);
    expect([reply.status, await reply.text()]).toEqual([202, '']);
  });

  it.each([
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', -32600],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', -32600],
    ['a batch', `[${requestText('tools/list')}]`, -32600],
    ['an empty batch', '[]', -32600],
    ['no JSON', '{', -32700],
    ['nothing', '', -32700],
    ['an id that is null', requestText('tools/list').replace('"id":1', '"id":null'), -32600],
  ])('is refused without an id: %s', async (_, body, code) => {
    const reply = await gateway.post(body, headersFor('tools/list'));
    const answer = (await reply.json()) as object;
    expect([reply.status, answer]).toMatchObject([400, { error: { code } }]);
    expect(answer).not.toHaveProperty('id');
  });

  it('is refused without an id also where only the body says the revision', async () => {
    const body = requestText('notifications/x', {}, { meta: { [KEYS.version]: '2099-01-01' } }).replace('"id":1,', '');
    const answer = (await (await gateway.post(body)).json()) as object;
    expect(answer).toMatchObject({ error: { code: -32022 } });
    expect(answer).not.toHaveProperty('id');
  });

  it.each(['GET', 'DELETE', 'PUT', 'PATCH'])('answers 405 with what is possible: %s', async (verb) => {
    const headers = { ...modern, accept: 'text/event-stream' };
    const reply = await fetch(gateway.url, { method: verb, headers });
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await reply.json()).not.toHaveProperty('id');
  });
});

describe('a page of an allowed origin', () => {
  const preflight = (headers: string) =>
    exchange(
      gateway.origin,
      [
        'OPTIONS /mcp HTTP/1.1',
        'Host: localhost',
        'Origin: https://app.example',
        'Access-Control-Request-Method: POST',
        `Access-Control-Request-Headers: ${headers}`,
        'Connection: close',
        '',
        '',
      ].join('\r\n'),
    );
  const allowed = async (headers: string) => {
    const reply = await preflight(headers);
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([204, 'https://app.example']);
    return reply.headers.get('access-control-allow-headers')!.split(', ');
  };

  it('may send every header that a request has to repeat itself in', async () => {
    const asked = 'content-type,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version';
    expect(await allowed(asked)).toEqual(expect.arrayContaining(asked.split(',')));
    expect(await allowed('Mcp-Param-Region , MCP-PARAM-x.y')).toEqual(
      expect.arrayContaining(['mcp-param-region', 'mcp-param-x.y']),
    );
  });

  it('may send no others', async () => {
    const headers = await allowed('x-other, mcp-parameter, mcp-param-, mcp-param-a b, cookie');
    expect(headers.filter((name) => /other|param|cookie/.test(name))).toEqual([]);
  });

  it('reads the answer', async () => {
    const reply = await post(gateway, 'tools/list', {}, { headers: { origin: 'https://app.example' } });
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example']);
  });
});
