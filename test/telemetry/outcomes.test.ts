/** Spans report how calls end, but not their content. */
import { beforeAll, describe, expect, it } from 'vitest';
import { connectHttp } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { onePart } from '../support/wide.ts';
import { type AnyClient, type Collector, installed, newTrace, type Span, startCollector } from './telemetry.ts';

const TOKEN = 'hunter2-token';
const config = [
  'controls = ["activate"]',
  'active_toolsets = ["*"]',
  serversToml({
    a: server('basic', '--prompts', 'p', '--resources', 'x://secret-resource', '--name', 'a'),
    slow: server('hang'),
  }),
  `[[servers]]\nnamespace = "h"\ntimeout = "300ms"\ncommand = ${JSON.stringify(server('hang'))}`,
].join('\n');

/** In a normal run one of them: traces.test.ts has both, and what becomes of a call does not depend on its client. */
const eras = onePart(2, ['legacy', 'modern'] as const);

describe.each(eras)('the spans of a %s client', (era) => {
  let collector: Collector;
  let gateway: HttpGateway;
  let client: AnyClient;
  beforeAll(async () => {
    collector = await startCollector();
    gateway = await startHttp({
      bin: installed(),
      config,
      env: { ...collector.env, BEARER_TOKEN: TOKEN, OTEL_SERVICE_NAME: 'my-gateway' },
    });
    const headers = { authorization: `Bearer ${TOKEN}` };
    client = (await (era === 'legacy' ? connectHttp : connectModernHttp)(gateway.url, headers)).client as AnyClient;
  });

  /** The spans of one call: one towards the client, and one towards the server if it was called. */
  async function follow(name: string, args: object, options?: object): Promise<[Span, Span | null]> {
    const { traceId, traceparent } = newTrace();
    const params = { name, arguments: args as Record<string, unknown>, _meta: { traceparent } };
    const more = (era === 'legacy' ? [undefined, options] : [options]) as never[];
    await client.callTool(params, ...(options ? more : [])).catch(() => {});
    const incoming = await collector.span('server', (span) => span.traceId === traceId);
    return [incoming, collector.spans.find((span) => span.kind === 'client' && span.traceId === traceId) ?? null];
  }

  const end = ({ status, attributes }: Span) => [
    status,
    attributes['toolgate.outcome'],
    attributes['error.type'],
    attributes['rpc.response.status_code'],
  ];

  it('report that a tool returned an error result', async () => {
    const [incoming, outgoing] = await follow('a_raw', { json: '{"content":[],"isError":true}' });
    for (const span of [incoming, outgoing!]) expect(end(span)).toEqual([2, 'tool_error', 'tool_error', undefined]);
  });

  it('report that a server answered with an error', async () => {
    const [incoming, outgoing] = await follow('a_raw', {});
    for (const span of [incoming, outgoing!]) expect(end(span)).toEqual([2, 'error', '-32603', '-32603']);
  });

  it('report that a server timed out', async () => {
    const [incoming, outgoing] = await follow('h_hang', {});
    for (const span of [incoming, outgoing!]) expect(end(span)).toEqual([2, 'timeout', 'source_timeout', undefined]);
  });

  it('report that a client cancelled its call, which is not an error', async () => {
    const abort = new AbortController();
    const followed = follow('slow_hang', {}, { signal: abort.signal });
    await callsInFlight({ origin: gateway.origin, token: TOKEN });
    abort.abort();
    const [incoming, outgoing] = await followed;
    for (const span of [incoming, outgoing!]) expect(end(span)).toEqual([0, 'cancelled', undefined, undefined]);
  });

  it('report that no server was called, without the unknown name', async () => {
    const [incoming, outgoing] = await follow('hunter2-unknown', {});
    expect(end(incoming)).toEqual([2, 'refused', 'item_unknown', undefined]);
    expect(incoming.name).toBe('tools/call');
    expect(outgoing).toBeNull();
  });

  it('contain only one span for a tool of Toolgate itself', async () => {
    const [incoming, outgoing] = await follow('toolman_activate', { names: ['a_echo'] });
    expect(incoming).toMatchObject({
      name: 'tools/call toolman_activate',
      attributes: { 'toolgate.server': 'toolgate' },
    });
    expect(outgoing).toBeNull();
  });

  it('contain the name of a prompt, and no resource URI', async () => {
    const other = client as unknown as {
      getPrompt(params: object): Promise<unknown>;
      readResource(params: object): Promise<unknown>;
    };
    const [prompt, resource] = [newTrace(), newTrace()];
    await other.getPrompt({ name: 'a_p', _meta: { traceparent: prompt.traceparent } });
    await other.readResource({ uri: 'x://secret-resource', _meta: { traceparent: resource.traceparent } });
    const asked = await collector.span('server', ({ traceId }) => traceId === prompt.traceId);
    expect(asked).toMatchObject({ name: 'prompts/get a_p', attributes: { 'gen_ai.prompt.name': 'a_p' } });
    const read = await collector.span('server', ({ traceId }) => traceId === resource.traceId);
    expect(read.name).toBe('resources/read');
    expect(JSON.stringify(collector.spans)).not.toContain('secret-resource');
  });

  it('report that a server is down', async () => {
    const followed = follow('slow_hang', {});
    await callsInFlight({ origin: gateway.origin, token: TOKEN });
    await killSlow(gateway);
    const [incoming, outgoing] = await followed;
    for (const span of [incoming, outgoing!]) expect(end(span)).toEqual([2, 'failed', 'source_broken', undefined]);
  });

  it('contain the configured service name, and no arguments or results', async () => {
    await follow('a_echo', { password: 'hunter2-argument' });
    expect(collector.spans[0]!.resource['service.name']).toBe('my-gateway');
    await waitFor(() => collector.points().length > 0);
    for (const body of collector.bodies) expect(body).not.toMatch(/hunter2|password/);
  });
});

/** Asks the operating system, because a server does not report its process over MCP. */
async function killSlow({ pid }: HttpGateway): Promise<void> {
  const { descendants } = await import('../support/processes.ts');
  const { readFileSync } = await import('node:fs');
  for (const id of descendants(pid))
    if (readFileSync(`/proc/${id}/cmdline`, 'utf8').includes('hang.mjs')) process.kill(id, 'SIGKILL');
}
