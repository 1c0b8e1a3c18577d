/**
 * A trace passes through the gateway: from the client, through two spans of the gateway, to the server, in both eras
 * and over every transport.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { connectHttp, connectSse } from '../support/connection.ts';
import { type HttpGateway, startHttp, startModernStdio, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { packageVersion } from '../support/version.ts';
import { isWide, onePart } from '../support/wide.ts';
import {
  type Collector,
  installed,
  newTrace,
  type Shown,
  serversThatShow,
  show,
  startCollector,
  upstreams,
} from './telemetry.ts';

const allDoors = ['stdio legacy', 'stdio modern', 'http legacy', 'http modern', 'sse legacy'] as const;
// Each of these loads OpenTelemetry, and there is a gateway over HTTP for other tests.
const doors: readonly (typeof allDoors)[number][] = isWide ? allDoors : onePart(2, ['stdio modern', 'http legacy']);

/** One for all clients over HTTP, because loading OpenTelemetry takes long. */
let overHttp: Promise<{ collector: Collector; gateway: HttpGateway }> | undefined;

async function startOverHttp(): Promise<{ collector: Collector; gateway: HttpGateway }> {
  const collector = await startCollector();
  const gateway = await startHttp({ bin: installed(), config: await serversThatShow(), env: collector.env });
  return { collector, gateway };
}

describe.each(doors)('a call of a client on %s', (door) => {
  let collector: Collector;
  let client: unknown;
  const isPipe = door.startsWith('stdio');
  beforeAll(async () => {
    if (isPipe) {
      collector = await startCollector();
      const options = { bin: installed(), config: await serversThatShow(), env: collector.env };
      client = (await (door === 'stdio legacy' ? startStdio(options) : startModernStdio(options))).client;
    } else {
      overHttp ??= startOverHttp();
      const { gateway } = await overHttp;
      const { url, origin } = gateway;
      ({ collector } = await overHttp);
      const connect = { 'http legacy': connectHttp, 'http modern': connectModernHttp, 'sse legacy': connectSse };
      client = (await connect[door as keyof typeof connect](door === 'sse legacy' ? `${origin}/sse` : url)).client;
    }
  });

  it.each(upstreams)('joins the trace that it names, and so does its span at server %s', async (namespace) => {
    const { traceId, spanId, traceparent } = newTrace();
    const given = { traceparent, tracestate: 'vendor=1', baggage: 'user=alice', 'io.example/x': 7 };
    const { meta, header } = await show(client, namespace, given);
    const incoming = await collector.span('server', (span) => span.traceId === traceId);
    const outgoing = await collector.span('client', (span) => span.traceId === traceId);
    expect(incoming).toMatchObject({ parentSpanId: spanId, name: `tools/call ${namespace}_meta`, status: 0 });
    expect(outgoing).toMatchObject({ parentSpanId: incoming.spanId, name: 'tools/call meta', status: 0 });
    expect(meta).toMatchObject({ ...given, traceparent: `00-${traceId}-${outgoing.spanId}-01` });
    expect(header).toBe(namespace.startsWith('h') ? meta.traceparent : null);
    expect(incoming.attributes).toEqual({
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': expect.stringMatching(/^20/),
      'jsonrpc.request.id': expect.any(String),
      'gen_ai.tool.name': `${namespace}_meta`,
      'gen_ai.operation.name': 'execute_tool',
      'network.transport': isPipe ? 'pipe' : 'tcp',
      ...(!isPipe && { 'network.protocol.name': 'http' }),
      'toolgate.agent': isPipe ? 'default' : 'anonymous',
      'toolgate.server': namespace,
      'toolgate.outcome': 'ok',
    });
    expect(outgoing.attributes).toEqual({
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'meta',
      'gen_ai.operation.name': 'execute_tool',
      'toolgate.server': namespace,
      'toolgate.outcome': 'ok',
    });
    expect(incoming.resource).toMatchObject({ 'service.name': 'toolgate', 'service.version': packageVersion });
    expect(Object.keys(incoming.resource)).not.toContain('process.command_args');
  });

  it.each(upstreams)('starts a trace if it names none, and passes it to server %s', async (namespace) => {
    const { meta } = await show(client, namespace);
    const [, traceId, spanId] = String(meta.traceparent).split('-');
    const outgoing = await collector.span('client', (span) => span.spanId === spanId);
    const incoming = await collector.span('server', (span) => span.spanId === outgoing.parentSpanId);
    expect([outgoing.traceId, incoming.traceId, incoming.parentSpanId]).toEqual([traceId, traceId, '']);
  });

  it('ignores a malformed trace', async () => {
    const { meta } = await show(client, 'pl', { traceparent: 'from-nowhere', tracestate: 'x=1' });
    const spanId = String(meta.traceparent).split('-')[2];
    const outgoing = await collector.span('client', (span) => span.spanId === spanId);
    await collector.span('server', (span) => span.spanId === outgoing.parentSpanId && span.parentSpanId === '');
    expect(meta).not.toHaveProperty('tracestate');
  });
});

describe('a call over HTTP', () => {
  let collector: Collector;
  let gateway: HttpGateway;
  beforeAll(async () => {
    overHttp ??= startOverHttp();
    ({ collector, gateway } = await overHttp);
  });

  it.each(['legacy', 'modern'])(
    'of a %s client joins the trace of its HTTP headers if the message names none',
    async (era) => {
      const { traceId, spanId, traceparent } = newTrace();
      const headers = { traceparent, tracestate: 'vendor=1' };
      const connect = era === 'legacy' ? connectHttp : connectModernHttp;
      const { client } = await connect(gateway.url, headers);
      const { meta } = await show(client, 'pm');
      const incoming = await collector.span('server', (span) => span.traceId === traceId);
      expect(incoming.parentSpanId).toBe(spanId);
      expect(meta.tracestate).toBe('vendor=1');
      const own = newTrace();
      await show(client, 'pm', { traceparent: own.traceparent });
      await collector.span('server', (span) => span.traceId === own.traceId && span.parentSpanId === own.spanId);
    },
  );

  it('of a REST client joins the trace of its HTTP headers, and so does its span at the server', async () => {
    const { traceId, spanId, traceparent } = newTrace();
    const headers = { traceparent, tracestate: 'vendor=1' };
    const response = await fetch(`${gateway.origin}/tools/hm_meta`, { method: 'POST', headers });
    const { meta, header } = (await response.json()) as Shown;
    const incoming = await collector.span('server', (span) => span.traceId === traceId);
    const outgoing = await collector.span('client', (span) => span.traceId === traceId);
    expect(incoming).toMatchObject({ parentSpanId: spanId, name: 'tools/call hm_meta', status: 0 });
    expect(outgoing).toMatchObject({ parentSpanId: incoming.spanId, name: 'tools/call meta', status: 0 });
    expect(meta).toMatchObject({ traceparent: `00-${traceId}-${outgoing.spanId}-01`, tracestate: 'vendor=1' });
    expect(header).toBe(meta.traceparent);
  });
});
