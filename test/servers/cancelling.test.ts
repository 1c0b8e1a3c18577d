/** How a server is told, on the wire, that an answer is no longer needed. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import type { ModernConnection } from '../support/modern.ts';
import { messagesOf, stdioServer } from '../support/modern-servers.ts';
import { type HttpServer, legacyMethods, modernMethods, SILENCE, startServer } from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callError, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const CANCELLED = 'notifications/cancelled';
const folder = tempFolder();
let http: Record<'modern' | 'legacy', HttpServer>;
let legacy: HttpConnection;
let modern: ModernConnection;

beforeAll(async () => {
  const silent = { 'tools/call': () => SILENCE };
  http = { modern: await startServer(modernMethods(silent)), legacy: await startServer(legacyMethods(silent)) };
  const stdio = { modern: [], legacy: ['--discover', 'error'] };
  const eras = ['modern', 'legacy'] as const;
  const entries = eras.flatMap((era) => [
    { namespace: `${era}-http`, url: http[era].url, timeout: '700ms' },
    { namespace: `${era}-stdio`, command: stdioServer(...stdio[era], '--chunks', join(folder, era)), timeout: '700ms' },
  ]);
  const gateway = await startHttp({ config: toml(entries, { controls: [] }) });
  [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
});

/** A call that clients of both eras cancel as soon as the server has received it. */
async function cancelBoth(name: string, count: () => number): Promise<void> {
  for (const isModern of [false, true]) {
    const controller = new AbortController();
    const { signal } = controller;
    const before = count();
    const call = isModern
      ? modern.client.callTool({ name }, { signal })
      : legacy.client.callTool({ name }, undefined, { signal });
    const ended = call.then(
      () => 'answered',
      () => 'cancelled',
    );
    await waitFor(() => count() === before + 1);
    controller.abort();
    expect(await ended).toBe('cancelled');
  }
}

describe('cancelling a call over HTTP', () => {
  it('closes the request to a modern server and sends nothing else', async () => {
    const calls = () => http.modern.of('tools/call');
    await cancelBoth('modern-http_echo', () => calls().length);
    expect(await callError(legacy.client, 'modern-http_echo')).toMatchObject({ code: 'source_timeout' });
    await waitFor(() => calls().every(({ ended }) => ended === 'dropped'));
    expect(calls()).toHaveLength(3);
    expect(http.modern.of(CANCELLED)).toEqual([]);
  });

  it('also sends notifications/cancelled to a legacy server', async () => {
    const calls = () => http.legacy.of('tools/call');
    await cancelBoth('legacy-http_echo', () => calls().length);
    expect(await callError(legacy.client, 'legacy-http_echo')).toMatchObject({ code: 'source_timeout' });
    await waitFor(() => http.legacy.of(CANCELLED).length === 3);
    const ids = http.legacy.of(CANCELLED).map(({ message }) => message.params!.requestId);
    expect(ids).toEqual(calls().map(({ message }) => message.id));
  });
});

describe('cancelling a call over stdio', () => {
  it.each(['modern', 'legacy'])('sends notifications/cancelled to a %s server', async (era) => {
    const sent = (method: string) => messagesOf(join(folder, era)).filter((message) => message.method === method);
    await cancelBoth(`${era}-stdio_hang`, () => sent('tools/call').length);
    expect(await callError(legacy.client, `${era}-stdio_hang`)).toMatchObject({ code: 'source_timeout' });
    await waitFor(() => sent(CANCELLED).length === 3);
    expect(sent(CANCELLED).map(({ params }) => params!.requestId)).toEqual(sent('tools/call').map(({ id }) => id));
    expect(sent(CANCELLED).at(-1)!.params!.reason).toBe('timed out');
  });
});
