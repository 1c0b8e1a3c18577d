/** Clients of three kinds: a session over Streamable HTTP, one over HTTP+SSE, and requests without a session. */
import type { ClientRequest } from 'node:http';
import { type Line, type Message, openLine } from '../support/lean-client.ts';
import { REVISION } from '../support/modern-offer.ts';
import { type Asked, answerTo, count, type Findings, type Plan, WordCall } from './word.ts';

export type Kind = 'session' | 'sse' | 'modern';

export interface WordClient {
  readonly kind: Kind;
  readonly isAskable: boolean;
  /** Makes a call. Resolves when the call is over for this client. */
  call(plan: Plan): Promise<void>;
  /** Disconnects: properly, or by dropping all connections. */
  leave(how: 'politely' | 'dropping'): Promise<void>;
}

interface Options {
  readonly name: string;
  readonly origin: string;
  readonly isAskable: boolean;
  readonly findings: Findings;
}

const ABLE = { elicitation: {}, sampling: {} };
const PREFIX = 'io.modelcontextprotocol/';
const ignore = () => {};

/** Sends a message whose reply is only a status. */
function tell(line: Line, path: string, headers: object, body: object): Promise<number> {
  return new Promise((resolve) => line.send('POST', path, { ...headers }, body, ignore, resolve));
}

const notification = (method: string, params: object = {}) => ({ jsonrpc: '2.0', method, params });
const initializeParams = (revision: string, isAskable: boolean) => ({
  protocolVersion: revision,
  capabilities: isAskable ? ABLE : {},
  clientInfo: { name: 'soak', version: '1' },
});

/** Does once what the plan says for the middle of the call. */
function interrupt(call: WordCall, act: () => void): () => void {
  const { then, after } = call.plan;
  if (then === 'wait') return ignore;
  let isDone = false;
  const once = () => {
    if (isDone || call.isOver) return;
    isDone = true;
    act();
  };
  setTimeout(once, after);
  return once;
}

export async function openSession({ name, origin, isAskable, findings }: Options): Promise<WordClient> {
  const line = openLine(origin);
  const id = await new Promise<string>((resolve, reject) => {
    const params = initializeParams('2025-11-25', isAskable);
    line.send(
      'POST',
      '/mcp',
      {},
      { jsonrpc: '2.0', id: 0, method: 'initialize', params },
      ignore,
      (status, { 'mcp-session-id': session }) =>
        typeof session === 'string' ? resolve(session) : reject(new Error(`no session: ${status}`)),
    );
  });
  const headers = { 'mcp-session-id': id };
  await tell(line, '/mcp', headers, notification('notifications/initialized'));
  // No message about a call may arrive here.
  const standing = line.send('GET', '/mcp', headers, null, (message) => strayed(name, message, findings), ignore);
  return {
    kind: 'session',
    isAskable,
    call(plan) {
      const call = new WordCall(name, plan, findings);
      let last = '';
      let sent: ClientRequest;
      let isDropped = false;
      const heard = (message: Message, eventId: string) => {
        last = eventId;
        if (message.method === undefined) call.settle(message, plan.id);
        else {
          const asked = call.hear(message);
          if (asked !== null) answer(asked);
          if (plan.tool === 'ask' || asked === null) act();
        }
      };
      const over = (status: number) => {
        if (call.isOver) return;
        if (status === 200 && plan.then === 'cancel') call.end('cancelled');
        else if (status !== 0) call.broken(`its stream ended without an answer (${status})`);
        else if (plan.then === 'wait') call.broken('its stream broke off');
      };
      const answer = (asked: Asked) => {
        const reply = answerTo(asked, plan.answering);
        if (reply !== null) void tell(line, '/mcp', headers, { jsonrpc: '2.0', id: asked.key, ...reply });
      };
      const act = interrupt(call, () => {
        if (plan.then === 'cancel') {
          void tell(line, '/mcp', headers, notification('notifications/cancelled', { requestId: plan.id }));
          return;
        }
        isDropped = true;
        sent.destroy();
        if (plan.then === 'return' && last !== '') {
          count(findings, 'returned');
          line.send('GET', '/mcp', { ...headers, 'last-event-id': last }, null, heard, over);
        } else call.end('dropped');
      });
      const params = { ...call.params, _meta: { progressToken: call.token } };
      const body = { jsonrpc: '2.0', id: plan.id, method: 'tools/call', params };
      sent = line.send('POST', '/mcp', headers, body, heard, (status) => isDropped || over(status));
      return call.over;
    },
    async leave(how) {
      standing.destroy();
      if (how === 'politely')
        await new Promise<unknown>((resolve) => line.send('DELETE', '/mcp', headers, null, ignore, resolve));
      line.close();
    },
  };
}

export async function openSse({ name, origin, isAskable, findings }: Options): Promise<WordClient> {
  const line = openLine(origin);
  /** All calls of the session, because messages about a cancelled one may still arrive. */
  const calls: WordCall[] = [];
  let path = '';
  let isReady = ignore;
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const post = (body: object) => tell(line, path, {}, { jsonrpc: '2.0', ...body });
  const acts = new Map<WordCall, () => void>();

  const find = ({ id, params = {} }: Message): WordCall | undefined => {
    // In a question the name of the server stands before it.
    const [, word] = /["\s]([^"\s]*?-\d+)[#"]/.exec(JSON.stringify(params)) ?? [];
    return calls.find((call) => call.plan.id === id || call.token === params.progressToken || call.word === word);
  };
  const heard = (message: Message) => {
    if (message.method === 'endpoint') {
      path = String(message.params!.path);
      isReady();
      return;
    }
    if (message.id === 'hello') return;
    const call = find(message);
    if (call === undefined) strayed(name, message, findings);
    else if (message.method === undefined) call.settle(message, call.plan.id);
    else {
      const asked = call.hear(message);
      const reply = asked === null ? null : answerTo(asked, call.plan.answering);
      if (reply !== null) void post({ id: asked!.key, ...reply });
      if (call.plan.tool === 'ask' || asked === null) acts.get(call)?.();
    }
  };
  const lost = () => {
    for (const call of calls) {
      if (call.isOver) continue;
      if (call.plan.then === 'vanish') call.end('vanished');
      else call.broken('the stream of its session ended');
    }
  };
  const stream = line.send('GET', '/sse', {}, null, heard, lost);
  await ready;
  await post({ id: 'hello', method: 'initialize', params: initializeParams('2024-11-05', isAskable) });
  await post({ method: 'notifications/initialized' });
  return {
    kind: 'sse',
    isAskable,
    async call(plan) {
      const call = new WordCall(name, plan, findings);
      calls.push(call);
      const act = interrupt(call, () => {
        if (plan.then === 'vanish') stream.destroy();
        else {
          void post(notification('notifications/cancelled', { requestId: plan.id }));
          call.end('cancelled');
        }
      });
      acts.set(call, act);
      const params = { ...call.params, _meta: { progressToken: call.token } };
      const status = await post({ id: plan.id, method: 'tools/call', params });
      if (status !== 202 && !call.isOver) call.broken(`its message was answered with ${status}`);
      await call.over;
      acts.delete(call);
    },
    async leave() {
      stream.destroy();
      line.close();
    },
  };
}

export function openModern({ name, origin, isAskable, findings }: Options): WordClient {
  const line = openLine(origin);
  const envelope = {
    [`${PREFIX}protocolVersion`]: REVISION,
    [`${PREFIX}clientInfo`]: { name: 'soak', version: '1' },
    [`${PREFIX}clientCapabilities`]: isAskable ? ABLE : {},
    [`${PREFIX}logLevel`]: 'info',
  };
  return {
    kind: 'modern',
    isAskable,
    async call(plan) {
      const call = new WordCall(name, plan, findings);
      const { params } = call;
      const headers = {
        'mcp-protocol-version': REVISION,
        'mcp-method': 'tools/call',
        'mcp-name': String(params.name),
      };
      let sent: ClientRequest;
      const act = interrupt(call, () => {
        call.end('dropped');
        sent.destroy();
      });
      const go = (id: number | string, more: object) => {
        const body = { ...params, ...more, _meta: { ...envelope, progressToken: call.token } };
        const heard = (message: Message) => {
          if (message.method !== undefined) {
            if (call.hear(message) !== null) call.foreign(message);
            act();
          } else if (message.result?.resultType === 'input_required') goOn(message.result);
          else call.settle(message, id);
        };
        const over = (status: number) => {
          if (!isAnswered && !call.isOver) call.broken(`its reply ended without an answer (${status})`);
        };
        let isAnswered = false;
        const note = (message: Message) => {
          if (message.method === undefined) isAnswered = true;
          heard(message);
        };
        sent = line.send(
          'POST',
          '/mcp',
          headers,
          { jsonrpc: '2.0', id, method: 'tools/call', params: body },
          note,
          over,
        );
      };
      let rounds = 0;
      const goOn = (result: Record<string, unknown>) => {
        const requests = Object.entries(result.inputRequests as Record<string, { method: string; params: object }>);
        const answers = requests.map(([key, { method, params: asked }]) => {
          const reply = answerTo(call.ask(key, method, { ...asked }), plan.answering);
          return reply === null || 'error' in reply ? null : ([key, reply.result] as const);
        });
        if (answers.includes(null)) {
          call.end('left unanswered');
          return;
        }
        const inputResponses = Object.fromEntries(answers as (readonly [string, object])[]);
        call.mayGiveWay = true;
        go(`${plan.id}-${++rounds}`, { inputResponses, requestState: result.requestState });
      };
      go(plan.id, {});
      await call.over;
    },
    async leave() {
      line.close();
    },
  };
}

function strayed(name: string, message: Message, findings: Findings): void {
  // The id of a withdrawn question is the same for every client.
  if (/(list_changed|cancelled)$/.test(message.method ?? '')) return;
  findings.foreign.push(`${name} got ${JSON.stringify(message).slice(0, 300)} on the stream of nothing`);
}
