/** Questions that send the user to a URL (elicitation with the mode "url"). */
import { setTimeout as sleep } from 'node:timers/promises';
import { ElicitRequestSchema, type ElicitResult, McpError } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { errorOf, textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, type ModernReply, request } from '../support/questions.ts';
import { server } from '../support/server.ts';
import { SHARED_OVER, startPersonal } from './personal.ts';

const FORMS = { elicitation: {} };
const URLS = { elicitation: { url: {} } };
const BOTH = { elicitation: { form: {}, url: {} } };

/**
 * A client with a session that gives this answer. It records its questions and the URLs that were reported as
 * completed.
 */
async function open(gateway: HttpGateway, capabilities: object, action: ElicitResult['action'] = 'accept') {
  const { client, notifications } = await gateway.connect({ capabilities });
  const asked: Record<string, unknown>[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params);
    return { action };
  });
  const done = () =>
    notifications
      .filter(({ method }) => method === 'notifications/elicitation/complete')
      .map(({ params }) => params?.elicitationId);
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    textOf(await client.callTool({ name, arguments: args }));
  return { client, asked, done, call };
}

const callModern = (gateway: HttpGateway, name: string, args: object, capabilities: object, more: object = {}) =>
  request(gateway, 'tools/call', { name, arguments: args, ...more }, capabilities);

/** What a question says, and which server asks it. */
const saying = (message: string) => ({
  message: expect.stringMatching(new RegExp(`^Server "[\\w-]+" asks: ${message}$`)),
  _meta: { 'toolgate/server': expect.stringMatching(/^[\w-]+$/) },
});

describe.each(SHARED_OVER)('URL elicitation by a server over %s with share = "%s"', (over, share) => {
  const start = () => startPersonal(over, `share = "${share}"\n`);

  it('sends the user of a client with a session to the URL, and reports completion only to that client', async () => {
    const { gateway } = await start();
    const [one, two] = await Promise.all([open(gateway, BOTH), open(gateway, URLS)]);
    expect(JSON.parse(await one.call('url', { id: 'first' }))).toEqual({ action: 'accept' });
    expect(JSON.parse(await two.call('url', { id: 'second' }))).toEqual({ action: 'accept' });
    expect(one.asked).toEqual([
      { mode: 'url', elicitationId: 'first', url: 'https://example.com/first', ...saying('Go to first') },
    ]);
    await one.call('finish', { id: 'first' });
    await two.call('finish', { id: 'second' });
    await waitFor(() => one.done().length > 0 && two.done().length > 0);
    await sleep(50);
    expect([one.done(), two.done()]).toEqual([['first'], ['second']]);
  });

  it('does not send a URL to a client that supports only forms, or a form to one that supports only URLs', async () => {
    const { gateway } = await start();
    const [forms, urls] = await Promise.all([open(gateway, FORMS), open(gateway, URLS)]);
    const refused = { error: { code: expect.any(Number) } };
    expect(JSON.parse(await forms.call('url', { id: 'x' }))).toMatchObject(refused);
    expect(JSON.parse(await urls.call('ask', { word: 'w' }))).toMatchObject(refused);
    const modern = await callModern(gateway, 'url', { id: 'x' }, FORMS);
    expect(JSON.parse(modern.result!.content![0]!.text)).toMatchObject(refused);
    expect([forms.asked, urls.asked]).toEqual([[], []]);
    expect(JSON.parse(await forms.call('ask', { word: 'w' }))).toMatchObject({ action: 'accept' });
  });

  it('forwards the URL error of the server to a client with a session, and the completion too', async () => {
    const { gateway } = await start();
    const one = await open(gateway, BOTH);
    const other = await open(gateway, BOTH);
    const failure = await one.client.callTool({ name: 'required', arguments: { id: 'e' } }).catch((error) => error);
    expect(failure).toBeInstanceOf(McpError);
    expect(failure).toMatchObject({ code: -32_042, data: { elicitations: [{ elicitationId: 'e', mode: 'url' }] } });
    await (share === 'session' ? one : other).call('finish', { id: 'e' });
    await waitFor(() => one.done().length > 0);
    expect([one.done(), other.done()]).toEqual([['e'], []]);
    expect(await one.call('required', { id: 'e' })).toBe('welcome');
  });

  it('asks a client without a session in the middle of a call', async () => {
    const { gateway } = await start();
    const asked = await callModern(gateway, 'url', { id: 'm' }, URLS);
    expect(Object.values(asked.result!.inputRequests!)).toEqual([
      {
        method: 'elicitation/create',
        params: { mode: 'url', url: 'https://example.com/m', ...saying('Go to m') },
      },
    ]);
    const { result } = await callModern(gateway, 'url', { id: 'm' }, URLS, answersTo(asked, { action: 'accept' }));
    expect(JSON.parse(result!.content![0]!.text)).toEqual({ action: 'accept' });
  });

  it('turns the URL error of the server into a question to a client without a session, which repeats the call', async () => {
    const { gateway } = await start();
    const call = (more: object = {}, capabilities: object = URLS) =>
      callModern(gateway, 'required', { id: 'r' }, capabilities, more);
    const first = await call();
    expect(first.result).toEqual({
      resultType: 'input_required',
      inputRequests: {
        'address-1': {
          method: 'elicitation/create',
          params: { mode: 'url', url: 'https://example.com/r', ...saying('Go to r') },
        },
      },
      requestState: expect.stringMatching(/^toolgate\./),
    });
    // The user has agreed to open the URL, but has not completed it yet.
    const second = await call(answersTo(first, { action: 'accept' }));
    expect(second.result?.resultType).toBe('input_required');
    await callModern(gateway, 'finish', { id: 'r' }, URLS);
    const third: ModernReply = await call(answersTo(second, { action: 'accept' }));
    expect(third.result).toMatchObject({ resultType: 'complete', content: [{ text: 'welcome' }] });
  });

  it('does not repeat the call if the user declined, or with the state of another call', async () => {
    const { gateway } = await start();
    const first = await callModern(gateway, 'required', { id: 'n' }, URLS);
    const no = await callModern(gateway, 'required', { id: 'n' }, URLS, answersTo(first, { action: 'decline' }));
    expect(errorOf(no.result!)).toMatchObject({ code: 'question_unanswered' });
    const yes = answersTo(first, { action: 'accept' });
    for (const [name, args] of [
      ['required', { id: 'other' }],
      ['finish', { id: 'n' }],
    ] as const) {
      const { error } = await callModern(gateway, name, args, URLS, yes);
      expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining('requestState') });
    }
  });

  it('tells a client without a session which capability is missing', async () => {
    const { gateway } = await start();
    const { error } = await callModern(gateway, 'required', { id: 'f' }, FORMS);
    expect(error).toMatchObject({ code: -32_021, data: { requiredCapabilities: { elicitation: { url: {} } } } });
  });
});

describe('URL elicitation by a modern server', () => {
  const start = () =>
    startHttp({
      config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${JSON.stringify(server('asking-modern'))}\n`,
    });

  it.each(['accept', 'decline'] as const)(
    'sends the user of a client with a session to the URL, and the server gets the answer: %s',
    async (action) => {
      const one = await open(await start(), URLS, action);
      expect(JSON.parse(await one.call('visit'))).toEqual({ go: { action } });
      expect(one.asked).toEqual([
        {
          mode: 'url',
          url: 'https://example.com/visit',
          ...saying('Go there'),
          elicitationId: expect.stringMatching(/^[\w-]{36}$/),
        },
      ]);
    },
  );

  it('is not sent to a client that supports only forms', async () => {
    const one = await open(await start(), FORMS);
    const { code, message } = errorOf(await one.client.callTool({ name: 'visit' }));
    expect([code, message]).toEqual(['capability_missing', expect.stringContaining('"url"')]);
    expect(one.asked).toEqual([]);
  });

  it('passes through to a client without a session', async () => {
    const gateway = await start();
    const asked = await callModern(gateway, 'visit', {}, URLS);
    expect(asked.result).toMatchObject({ requestState: 'visiting', inputRequests: { go: {} } });
    const { result } = await callModern(gateway, 'visit', {}, URLS, answersTo(asked, { action: 'accept' }));
    expect(JSON.parse(result!.content![0]!.text)).toEqual({ go: { action: 'accept' } });
  });
});
