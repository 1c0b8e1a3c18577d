/** A gateway mounted as a function from Request to Response, and readers of its streams that are slower than the servers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { configFromValue, createGateway, createHttpDoor, fetchHandler, openLocalDoor } from '../../src/index.ts';
import { childEnv, startChild } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { headersFor, requestText } from '../support/modern-request.ts';
import { waitFor } from '../support/processes.ts';
import { fixture, serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const MIB = 1024 * 1024;

/** Calls a tool that reports progress. Returns the stream of the reply. */
async function openStream(config: object, name: string, args: Record<string, unknown>) {
  const gateway = createGateway(configFromValue({ controls: [], ...config }, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
  await gateway.tried();
  const door = await createHttpDoor(gateway, { token: 'secret' });
  atEnd(() => door.close());
  const params = { name, arguments: args };
  const response = await fetchHandler(door)(
    new Request('http://localhost/mcp', {
      method: 'POST',
      body: requestText('tools/call', params, { meta: { progressToken: 1 } }),
      headers: {
        ...headersFor('tools/call', params),
        authorization: 'Bearer secret',
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    }),
  );
  expect(response.status).toBe(200);
  const reader = response.body!.getReader();
  atEnd(() => reader.cancel().catch(() => {}));
  return { gateway, reader };
}

type Reader = Awaited<ReturnType<typeof openStream>>['reader'];

/** Reads to the end. */
async function readAll(reader: Reader, first: Uint8Array): Promise<string> {
  const chunks = [first];
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
  return Buffer.concat(chunks).toString();
}

/** A server over HTTP, and how many bytes of progress it could send. */
async function startFlooding(): Promise<{ url: string; sent(): number }> {
  const state = tempFolder();
  const args = [fixture('wordy'), '--port', '0', '--state', state];
  const child = startChild(process.execPath, args, { cwd: tempFolder(), env: childEnv() });
  const port = await waitFor(() => /listening (\d+)/.exec(child.stdout())?.[1]);
  const file = () => readdirSync(state).find((name) => name.endsWith('.json'))!;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    sent: () => (JSON.parse(readFileSync(join(state, file()), 'utf8')) as { sent: number }).sent,
  };
}

it('a mounted gateway pauses an HTTP server while its reader does not read, and then delivers everything', async () => {
  const server = await startFlooding();
  const [messages, bytes] = [1_000, 64 * 1024];
  const { gateway, reader } = await openStream({ servers: { web: { url: server.url } } }, 'web_flood', {
    word: 'w',
    messages,
    bytes,
  });
  const { value: first } = await reader.read();
  const paused = await waitFor(async () => {
    const before = server.sent();
    await sleep(500);
    return server.sent() === before && before > 0 ? before : null;
  });
  // What is on the way is in the buffers of sockets. The gateway itself holds about one MiB.
  expect(paused).toBeLessThan(32 * MIB);
  const text = await readAll(reader, first!);
  expect(text.match(/notifications\/progress/g)).toHaveLength(messages);
  expect(text).toContain('"result"');
  await waitFor(() => server.sent() === messages * bytes);
  expect(gateway.metrics.cut).toBe(0);
});

it('a mounted gateway cuts off a reader that leaves more than limits.unread of a stdio server’s messages', async () => {
  const config = { servers: { pipe: serverEntry('flood') }, limits: { unread: '1MiB' } };
  const { gateway, reader } = await openStream(config, 'pipe_flood', { progress: 4_000, bytes: 1_500 });
  const { value: first } = await reader.read();
  await waitFor(() => gateway.metrics.cut === 1);
  // The reader must not take what it has for the whole reply.
  await expect(readAll(reader, first!)).rejects.toThrow();
  // The server that flooded goes on for other callers.
  expect(String(await openLocalDoor(gateway, 'all').callTool('pipe_ok', {}))).toContain('content');
});
