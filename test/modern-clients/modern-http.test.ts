/** The stateless door over HTTP: what it announces, and how it refuses requests. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { KEYS, REVISION } from '../support/modern-offer.ts';
import { ask, callTool, headersFor, post, requestText, textOf } from '../support/modern-request.ts';
import { exchange, initialize, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

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
  it('returns the capabilities and how long they are valid', async () => {
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
          extensions: {
            'io.modelcontextprotocol/tasks': {},
            'io.modelcontextprotocol/skills': { directoryRead: true },
          },
          logging: {},
        },
        ttlMs: expect.any(Number),
        cacheScope: 'private',
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'toolgate', version: expect.any(String) } },
      },
    });
  });

  it('does not require clientInfo', async () => {
    expect((await ask(gateway, 'server/discover', {}, { meta: { [KEYS.client]: undefined } })).status).toBe(200);
  });
});

describe('the revision of a stateless request', () => {
  it.each(['2099-01-01', '2025-11-25', 'v999.0.0', ''])(
    '%j in header and body is answered with the supported revisions',
    async (requested) => {
      const options = { meta: { [KEYS.version]: requested }, headers: { 'mcp-protocol-version': requested }, id: 7 };
      expect(await ask(gateway, 'tools/list', {}, options)).toMatchObject({
        status: 400,
        id: 7,
        error: { code: -32022, data: { supported: SUPPORTED, requested } },
      });
    },
  );

  it('in the header must match the body, whether it is known or not', async () => {
    const unlike = { meta: { [KEYS.version]: 'v999.0.0' } };
    expect(await ask(gateway, 'tools/list', {}, unlike)).toMatchObject({ status: 400, error: { code: -32020 } });
    const old = { headers: { 'mcp-protocol-version': '2025-11-25' } };
    expect(await ask(gateway, 'tools/list', {}, old)).toMatchObject({ status: 400, error: { code: -32020 } });
  });

  it('in the body alone is not enough', async () => {
    const reply = await gateway.post(requestText('tools/list'), { 'mcp-method': 'tools/list' });
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 1, error: { code: -32020 } }]);
  });

  it('in the header alone is refused as a missing envelope', async () => {
    const reply = await gateway.post('{"jsonrpc":"2.0","id":5,"method":"tools/list"}', headersFor('tools/list'));
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 5, error: { code: -32602 } }]);
  });
});

describe('the era of a request', () => {
  it('is decided per request: sessions and stateless requests share the address', async () => {
    const session = await startSession(gateway);
    expect(await callTool(gateway, 'up_echo', { a: 1 })).toMatchObject({
      status: 200,
      result: { resultType: 'complete' },
    });
    const legacy = await session.ask('tools/call', { name: 'up_echo', arguments: { a: 2 } });
    expect(legacy.result).toEqual({ content: [{ type: 'text', text: '{"a":2}' }] });
  });

  it('does not depend on the session header, which is ignored and never returned', async () => {
    const { id } = await startSession(gateway);
    for (const session of [id, 'no-such-session']) {
      const headers = { 'mcp-session-id': session, 'last-event-id': '3' };
      const reply = await post(gateway, 'tools/list', {}, { headers });
      expect([reply.status, reply.headers.get('mcp-session-id')]).toEqual([200, null]);
    }
  });

  it('is modern for a request with an envelope inside a session', async () => {
    const session = await startSession(gateway);
    const reply = await session.post(requestText('ping'), headersFor('ping'));
    expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: -32601 } }]);
  });

  it('is legacy for "initialize" without an envelope, unless the header says otherwise', async () => {
    expect((await gateway.post(initialize())).status).toBe(200);
    const reply = await gateway.post(initialize(), modern);
    expect([reply.status, await reply.json()]).toMatchObject([400, { id: 0, error: { code: -32602 } }]);
  });
});

describe('a stateless request', () => {
  it.each([
    ...['no/such', 'toString', 'initialize', 'ping', 'logging/setLevel'],
    ...['resources/subscribe', 'resources/unsubscribe', 'tasks/result', 'tasks/list'],
  ])('for %s, which is not part of this revision, is answered with 404', async (method) => {
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
  ])('for %s that fails because of its parameters is answered with 200 and the error', async (method, params, code) => {
    expect(await ask(gateway, method, params)).toMatchObject({ status: 200, id: 1, error: { code } });
  });

  it('for an unknown tool is answered with a result that the model can read', async () => {
    const answer = await callTool(gateway, 'up_echoo');
    expect(answer).toMatchObject({ status: 200, result: { resultType: 'complete', isError: true } });
    expect(textOf(answer)).toContain('up_echo');
  });

  it.each([['tools/call'], ['prompts/get'], ['resources/read']])(
    'for %s without a name does not match any Mcp-Name header',
    async (method) => {
      for (const name of ['up_echo', 'undefined', '']) {
        const answer = await ask(gateway, method, {}, { headers: { 'mcp-name': name } });
        expect(answer).toMatchObject({ status: 400, error: { code: -32020 } });
      }
    },
  );
});

describe('a stateless message that is not a request', () => {
  it.each([
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['one that is unknown', '{"jsonrpc":"2.0","method":"no/such"}'],
  ])('is accepted: %s', async (_, body) => {
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
  ])('is refused with a reply that has no id: %s', async (_, body, code) => {
    const reply = await gateway.post(body, headersFor('tools/list'));
    const answer = (await reply.json()) as object;
    expect([reply.status, answer]).toMatchObject([400, { error: { code } }]);
    expect(answer).not.toHaveProperty('id');
  });

  it('is refused with a reply that has no id if only the body names the revision', async () => {
    const body = requestText('notifications/x', {}, { meta: { [KEYS.version]: '2099-01-01' } }).replace('"id":1,', '');
    const answer = (await (await gateway.post(body)).json()) as object;
    expect(answer).toMatchObject({ error: { code: -32022 } });
    expect(answer).not.toHaveProperty('id');
  });

  it.each(['GET', 'DELETE', 'PUT', 'PATCH'])('is answered with 405 and an Allow header: %s', async (verb) => {
    const headers = { ...modern, accept: 'text/event-stream' };
    const reply = await fetch(gateway.url, { method: verb, headers });
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await reply.json()).not.toHaveProperty('id');
  });
});

describe('a web page of an allowed origin', () => {
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

  it('may send every header that repeats part of a request', async () => {
    const asked = 'content-type,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version';
    expect(await allowed(asked)).toEqual(expect.arrayContaining(asked.split(',')));
    expect(await allowed('Mcp-Param-Region , MCP-PARAM-x.y')).toEqual(
      expect.arrayContaining(['mcp-param-region', 'mcp-param-x.y']),
    );
  });

  it('may not send other headers', async () => {
    const headers = await allowed('x-other, mcp-parameter, mcp-param-, mcp-param-a b, cookie');
    expect(headers.filter((name) => /other|param|cookie/.test(name))).toEqual([]);
  });

  it('can read the answer', async () => {
    const reply = await post(gateway, 'tools/list', {}, { headers: { origin: 'https://app.example' } });
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example']);
  });
});
