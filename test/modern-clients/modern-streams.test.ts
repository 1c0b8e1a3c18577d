/** Slow replies: what may precede an answer, who receives it, and what happens if the client disconnects. */
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { configFromValue, openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { startFixture } from '../support/conformance-suite.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { KEYS } from '../support/modern-offer.ts';
import { ask, callTool, headersFor, type Message, open, post, textOf } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

let gateway: HttpGateway;
beforeAll(async () => {
  const servers = serversToml({ up: server('basic'), slow: server('hang') });
  gateway = await startHttp({ config: `controls = []\n${servers}` });
});

const cancelled = async () => textOf(await callTool(gateway, 'slow_cancelled'));

describe('a stateless client that disconnects', () => {
  it('cancels its call before anything was received', async () => {
    const abort = new AbortController();
    const params = { name: 'slow_hang', arguments: { tag: 'left early' } };
    post(gateway, 'tools/call', params, { signal: abort.signal }).catch(() => {});
    await callsInFlight(gateway);
    expect(await cancelled()).not.toContain('left early');
    abort.abort();
    await waitFor(async () => (await cancelled()).includes('left early'));
  });

  it('cancels its call in the middle of the stream', async () => {
    const args = { ms: 60_000, steps: 600, tag: 'left late' };
    const options = { meta: { progressToken: 'p' } };
    const stream = await open(gateway, 'tools/call', { name: 'slow_slow', arguments: args }, options);
    await waitFor(() => stream.messages().length > 1);
    stream.close();
    await waitFor(async () => (await cancelled()).includes('left late'));
  });

  it('does not cancel the call of another client with the same id', async () => {
    const abort = new AbortController();
    const one = { name: 'slow_slow', arguments: { ms: 1200, tag: 'kept' } };
    const two = { name: 'slow_slow', arguments: { ms: 60_000, tag: 'given up' } };
    const kept = ask(gateway, 'tools/call', one, { id: 1 });
    post(gateway, 'tools/call', two, { id: 1, signal: abort.signal }).catch(() => {});
    await callsInFlight(gateway, 2);
    abort.abort();
    expect(textOf(await kept)).toBe('slow kept');
    expect(await cancelled()).toContain('given up');
    expect(await cancelled()).not.toContain('"kept"');
  });

  it('cannot cancel by a message, because its sender cannot be verified', async () => {
    const call = callTool(gateway, 'slow_slow', { ms: 500, tag: 'told' }, { id: 'told' });
    await callsInFlight(gateway);
    const body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"told"}}';
    expect((await gateway.post(body, headersFor('notifications/cancelled'))).status).toBe(202);
    expect(textOf(await call)).toBe('slow told');
  });
});

describe('progress of a stateless call', () => {
  it.each(['p', 7, 'größe ☃'])(
    'with the token %j precedes the answer, on a stream that proxies do not buffer',
    async (token) => {
      const params = { name: 'slow_slow', arguments: { ms: 60, steps: 3 } };
      const stream = await open(gateway, 'tools/call', params, { id: 'größe', meta: { progressToken: token } });
      await stream.ended;
      const { headers } = stream.response;
      expect(headers.get('content-type')).toBe('text/event-stream');
      expect(headers.get('x-accel-buffering')).toBe('no');
      const messages = stream.messages();
      expect(messages.slice(0, -1).map(({ params: told }) => [told?.progressToken, told?.progress])).toEqual([
        [token, 1],
        [token, 2],
        [token, 3],
      ]);
      expect(messages.at(-1)).toMatchObject({ id: 'größe', result: { resultType: 'complete' } });
    },
  );

  it('goes to the right call, even if ids and tokens are equal', async () => {
    const call = (steps: number) =>
      callTool(gateway, 'slow_slow', { ms: 150, steps }, { id: 1, meta: { progressToken: 1 } });
    const answers = await Promise.all([call(2), call(5), call(3)]);
    expect(answers.map(({ before }) => before.map(({ params }) => params?.total))).toEqual([
      [2, 2],
      [5, 5, 5, 5, 5],
      [3, 3, 3],
    ]);
  });

  it('is not sent without a token: the answer is plain JSON', async () => {
    const reply = await post(gateway, 'tools/call', { name: 'slow_slow', arguments: { ms: 60, steps: 3 } });
    expect(reply.headers.get('content-type')).toBe('application/json');
    await reply.arrayBuffer();
  });
});

const upstreams: Record<string, () => Promise<string>> = {
  'earlier, on stdio': async () => `command = ${JSON.stringify(server('conformance', '--era', 'legacy'))}`,
  'modern, on stdio': async () => `command = ${JSON.stringify(server('conformance'))}`,
  'modern, over HTTP': async () => `url = ${JSON.stringify(await startFixture())}`,
};

describe.each(Object.keys(upstreams))('log messages of a server (%s)', (upstream) => {
  let logging: HttpGateway;
  beforeAll(async () => {
    const config = `controls = []\n\n[[servers]]\nnamespace = ""\n${await upstreams[upstream]!()}\n`;
    logging = await startHttp({ config });
  });
  const log = (level?: string, id = 1) =>
    callTool(logging, 'test_logging_tool', {}, { id, meta: { [KEYS.level]: level } });
  const said = ({ before }: { before: readonly Message[] }) =>
    before.map(({ method, params }) => [method, params?.level]);
  const three = Array.from({ length: 3 }, () => ['notifications/message', 'info']);

  it('precede the answer of a caller that asked for them, from its level on', async () => {
    expect(said(await log('info'))).toEqual(three);
    expect(said(await log('debug'))).toEqual(three);
    expect(said(await log('warning'))).toEqual([]);
  });

  it('are not sent to a caller that did not ask, even after another one did', async () => {
    await log('debug');
    const answer = await log();
    expect(said(answer)).toEqual([]);
    expect(textOf(answer)).toBe('logged');
  });

  it('are not sent to other callers that are waiting', async () => {
    const [asking, silent, waiting] = await Promise.all([
      log('info'),
      log(undefined),
      callTool(logging, 'test_tool_with_progress', {}, { meta: { [KEYS.level]: 'debug' } }),
    ]);
    expect(said(silent)).toEqual([]);
    expect(said(waiting)).toEqual([]);
    // If a server does not say which call a message belongs to, the message may be dropped.
    expect(said(asking).length).toBeLessThanOrEqual(3);
    if (upstream.endsWith('HTTP')) expect(said(asking)).toEqual(three);
  });
});

it.each(['verbose', 'INFO', '', 3, null])('a log level %j is refused', async (level) => {
  const answer = await ask(gateway, 'tools/list', {}, { meta: { [KEYS.level]: level } });
  expect(answer).toMatchObject({ status: 400, id: 1, error: { code: -32602 } });
});

it('a result of a megabyte passes through unchanged', async () => {
  const text = 'größe ☃ "quoted" \\ '.repeat(50_000);
  const result = JSON.stringify({ content: [{ type: 'text', text }], structuredContent: { n: 1 }, x: [1] });
  const file = join(tempFolder({ 'result.json': result }), 'result.json');
  const answer = await callTool(gateway, 'up_raw', { file });
  expect(answer.status).toBe(200);
  expect(answer.result).toEqual({ resultType: 'complete', ...(JSON.parse(result) as object) });
});

describe('a slow stateless call', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is kept alive with comments, and so is a subscription', async () => {
    // Fakes only intervals, which send the keep-alives. Everything else needs the real clock.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const local = createGateway(
      configFromValue({ servers: { slow: serverEntry('hang') } }, { cwd: tempFolder(), env: {} }),
    );
    await local.tried();
    const door = await openHttpDoor(local, { host: '127.0.0.1', port: 0, token: null });
    atEnd(async () => {
      await door.close();
      await local.close();
    });
    const subscription = await open(door, 'subscriptions/listen', { notifications: {} });
    const call = open(door, 'tools/call', { name: 'slow_slow', arguments: { ms: 1000 } });
    await callsInFlight(local);
    vi.advanceTimersByTime(60_000);
    const stream = await call;
    await stream.ended;
    expect(stream.text().match(/^: .*$/gm)?.length).toBeGreaterThanOrEqual(3);
    expect(textOf(stream.messages()[0]!)).toBe('slow');
    expect(subscription.text().match(/^: .*$/gm)?.length).toBeGreaterThanOrEqual(3);
    expect(subscription.messages()).toHaveLength(1);
  });
});
