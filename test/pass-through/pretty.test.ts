/** JSON that an HTTP upstream spreads over lines has the same value for every client, and stays on one line where lines end messages. */
import { createServer } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { outcome, spread } from './json.ts';
import { dictate, openRoute, outcomeOf } from './paths.ts';

const unspread = (text: string) => text.replace(/[\r\n]/g, ' ');

describe.each(['stdio', 'http'] as const)('a client on %s', (client) => {
  it.each([
    ['a JSON body with line feeds', 'http json', 'lf', '\n'],
    ['a JSON body with carriage returns', 'http json', 'lf', '\r\n'],
    ['an event of several data lines', 'http sse', 'lf', '\n'],
    ['an event of several data lines that end in CR', 'http sse', 'cr', '\n'],
    ['an event of several data lines that end in CRLF', 'http sse', 'crlf', '\n'],
  ] as const)('gets the same value from %s', async (_, upstream, newline, between) => {
    const route = await openRoute(client, upstream, { newline });
    await fc.assert(
      fc.asyncProperty(outcome, async (dictated) => {
        const many = spread(dictated.slice(dictated.indexOf(':') + 1), between);
        const whole = dictated.slice(0, dictated.indexOf(':') + 1) + many;
        const got = outcomeOf(await route.request('tools/call', dictate('tools/call', whole)));
        // Plain JSON over HTTP may keep its line breaks; a pipe would have cut the message at the first.
        expect((client === 'http' ? unspread(got) : got).trimEnd()).toBe(unspread(whole).trimEnd());
      }),
      { numRuns: 60 },
    );
  });
});

/** An upstream that sends a progress notification and its answer as events of several lines. */
async function startSpreadingUpstream(): Promise<string> {
  const http = createServer(async (request, response) => {
    const message = JSON.parse(Buffer.concat(await request.toArray()).toString() || '{}') as {
      id?: number;
      method?: string;
      params?: { _meta?: { progressToken: number } };
    };
    const reply = (result: unknown) => JSON.stringify({ jsonrpc: '2.0', id: message.id, result }, null, 2);
    const event = (text: string) => `${text.replace(/^/gm, 'data: ')}\n\n`;
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (message.id === undefined) return response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (message.method === 'initialize')
      return response.end(event(reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} } })));
    if (message.method === 'tools/list')
      return response.end(event(reply({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] })));
    const params = { progressToken: message.params?._meta?.progressToken, progress: 1 };
    response.write(event(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }, null, 2)));
    return response.end(event(reply({ content: [] })));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(() => http.close());
  return `http://127.0.0.1:${(http.address() as { port: number }).port}/mcp`;
}

describe('progress that comes over several lines', () => {
  const call = '{"name":"up_a","_meta":{"progressToken":"p"}}';

  it('is one line on stdio', async () => {
    const url = await startSpreadingUpstream();
    const gateway = await startStdio({ config: `controls = []\n[[servers]]\nnamespace = "up"\nurl = "${url}"\n` });
    await gateway.request('tools/call', call);
    expect(gateway.lines.slice(-2).map((line) => JSON.parse(line.toString()))).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
      { result: { content: [] } },
    ]);
  });

  it('is one data line on HTTP', async () => {
    const url = await startSpreadingUpstream();
    const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = "up"\nurl = "${url}"\n` });
    const started = await gateway.post('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
    const headers = { 'mcp-session-id': started.headers.get('mcp-session-id') ?? '' };
    const response = await gateway.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${call}}`, headers);
    const events = (await response.text()).split('\n\n').filter((event) => event !== '');
    expect(events.map((event) => event.split('\n').length)).toEqual([2, 2]);
    expect(JSON.parse(events[0]!.split('data: ')[1]!)).toMatchObject({ params: { progressToken: 'p' } });
  });
});
