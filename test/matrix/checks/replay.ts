/** A stream that breaks and is resumed where it ended. */
import { expect } from 'vitest';
import type { MatrixClient } from '../clients.ts';
import { NAMESPACE } from '../servers.ts';

interface Event {
  readonly id: string | undefined;
  readonly message: {
    readonly method?: string;
    readonly params?: { readonly progress: number };
    readonly result?: object;
  };
}

/** The events of a stream up to its end. */
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split('\n\n');
    text = blocks.pop()!;
    for (const block of blocks) {
      const data = /^data: (.+)$/m.exec(block)?.[1];
      if (data !== undefined)
        yield { id: /^id: (.+)$/m.exec(block)?.[1], message: JSON.parse(data) as Event['message'] };
    }
  }
}

export async function replay(subject: MatrixClient): Promise<void> {
  const { url, headers } = subject.http!;
  const abort = new AbortController();
  const params = { name: `${NAMESPACE}_late`, arguments: {}, _meta: { progressToken: 'mine' } };
  const begun = await fetch(url, {
    method: 'POST',
    signal: abort.signal,
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'dropped', method: 'tools/call', params }),
  });
  let last: string | undefined;
  for await (const { id, message } of eventsOf(begun)) {
    last = id;
    if (message.method === 'notifications/progress') break;
  }
  abort.abort();
  expect(last).toEqual(expect.any(String));
  const resumed = await fetch(url, {
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': last! },
  });
  const got: Event['message'][] = [];
  for await (const { message } of eventsOf(resumed)) {
    got.push(message);
    if (message.result !== undefined) break;
  }
  expect(got).toMatchObject([
    { method: 'notifications/progress', params: { progressToken: 'mine', progress: 2, total: 2 } },
    { id: 'dropped', result: { content: [{ type: 'text', text: 'late' }] } },
  ]);
}
