/** The gateway's own errors. The same object is a result that the model reads, or the data of a protocol error. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type RawSession, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

let gateway: HttpGateway;
let session: RawSession;
beforeAll(async () => {
  const servers = { up: server('basic', '--resources', 'up://one', '--prompts', 'greet'), flaky: server('crash') };
  gateway = await startHttp({ config: `active_toolsets = ["flaky_*"]\n${serversToml(servers)}` });
  session = await startSession(gateway);
});

describe('tools/call', () => {
  it.each([
    ['a tool that nobody has', { name: 'flaky_craash' }, 'item_unknown', 'Did you mean "flaky_crash"'],
    ['a tool that is not active', { name: 'up_echo' }, 'item_inactive', 'toolman_activate'],
    ['a server that dies', { name: 'flaky_crash' }, 'source_broken', 'Server "flaky" exited with code 1'],
  ])('answers %s with a result that says what to do', async (_, params, code, advice) => {
    const { result, error } = await session.ask('tools/call', params);
    expect(error).toBeUndefined();
    expect(result).toMatchObject({ isError: true });
    const [{ text }] = (result as { content: [{ text: string }] }).content;
    expect(JSON.parse(text)).toEqual({
      success: false,
      result: null,
      code,
      message: expect.stringContaining(advice) as string,
    });
  });

  it.each([[{}], [{ name: 5 }], [{ name: null }], [[]]])(
    'answers invalid parameters (%j) the same way',
    async (params) => {
      const { result } = await session.ask('tools/call', params);
      expect(JSON.stringify(result)).toContain('params_invalid');
    },
  );
});

describe('methods other than tools/call', () => {
  it.each([
    ['resources/read', { uri: 'no://such' }, -32002, 'resource_unknown'],
    ['resources/read', { uri: 'up_up://one' }, -32602, 'item_inactive'],
    ['resources/read', {}, -32602, 'params_invalid'],
    ['prompts/get', { name: 'no_such' }, -32602, 'item_unknown'],
    ['tools/list', { cursor: 'x' }, -32602, 'params_invalid'],
    ['logging/nothing', {}, -32601, 'method_unknown'],
  ])('%s with %j is answered with an error whose data is the same object', async (method, params, code, name) => {
    const { error, result } = await session.ask(method, params);
    expect(result).toBeUndefined();
    expect(error).toMatchObject({ code, data: { success: false, result: null, code: name, message: error!.message } });
  });
});
