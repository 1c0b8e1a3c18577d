/** The metrics of /metrics, as exported by OpenTelemetry. */
import { describe, expect, it } from 'vitest';
import { connectHttp } from '../support/connection.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { installed, startCollector } from './telemetry.ts';

const config = `controls = []\n${serversToml({ a: server('basic') })}`;

describe('OpenTelemetry metrics', () => {
  it('match /metrics, with durations per call', async () => {
    const collector = await startCollector();
    const { url, origin } = await startHttp({ bin: installed(), config, env: collector.env });
    const { client } = await connectHttp(url);
    for (let i = 0; i < 3; i++) await client.callTool({ name: 'a_echo', arguments: {} });
    await client.callTool({ name: 'a_raw', arguments: {} }).catch(() => {});
    await client.callTool({ name: 'a_nowhere', arguments: {} });
    const value = (metric: string, attributes: object) =>
      collector.points().find((point) => {
        const all = Object.entries(attributes).every(([key, text]) => point.attributes[key] === text);
        return point.metric === metric && all;
      });
    const echo = { server: 'a', kind: 'tool', tool: 'echo', outcome: 'ok' };
    // This was requested last, so everything else has arrived by then.
    await waitFor(() => value('toolgate.calls.refused', { code: 'item_unknown' })?.value === 1 || null);
    // The door was opened later, so its metrics are collected one round later.
    await waitFor(() => value('toolgate.http.streams', {})?.value === 1 || null);
    expect(value('toolgate.calls', echo)?.value).toBe(3);
    expect(value('toolgate.calls.in_flight', {})?.value).toBe(0);
    expect(value('toolgate.sessions', { transport: 'http', era: 'legacy' })?.value).toBe(1);
    expect(value('toolgate.server.up', { server: 'a' })?.value).toBe(1);
    expect(value('toolgate.server.restarts', { server: 'a' })?.value).toBe(0);
    expect(value('toolgate.response.bytes', { tool: 'echo' })).toMatchObject({ unit: 'By' });
    const tool = { 'mcp.method.name': 'tools/call', 'toolgate.server': 'a' };
    expect(value('mcp.server.operation.duration', { ...tool, 'gen_ai.tool.name': 'a_echo' })?.value).toBe(3);
    expect(value('mcp.client.operation.duration', { ...tool, 'gen_ai.tool.name': 'echo' })?.value).toBe(3);
    expect(value('mcp.server.operation.duration', { 'error.type': '-32603' })?.value).toBe(1);
    const names = new Set(collector.points().map(({ metric }) => metric));
    const families = [...readExposition(await (await fetch(`${origin}/metrics`)).text())];
    const missing = families
      .filter(([name, { type, samples }]) => name.startsWith('toolgate_') && type !== 'histogram' && samples.length > 0)
      .map(([name]) => name.replace(/_total$/, '').replaceAll('_', '.'))
      .filter((name) => ![...names].some((one) => one.replaceAll('_', '.') === name));
    expect(missing).toEqual([]);
    // Spans are sent in batches of their own.
    await waitFor(() => collector.spans.length > 0);
  });

  it('are exported without traces if those are disabled, and trace context then passes through unchanged', async () => {
    const collector = await startCollector();
    const env = { ...collector.env, OTEL_TRACES_EXPORTER: 'none' };
    const { url } = await startHttp({
      bin: installed(),
      config: `controls = []\n${serversToml({ m: server('modern', '--era', 'modern', '--meta') })}`,
      env,
    });
    const { client } = await connectHttp(url);
    const traceparent = `00-${'ab'.repeat(16)}-${'12'.repeat(8)}-01`;
    const call = async (_meta?: object) => {
      const params = { name: 'm_meta', arguments: {}, ...(_meta && { _meta: { ..._meta } }) };
      const { content } = (await client.callTool(params)) as { content: { text: string }[] };
      return (JSON.parse(content[0]!.text) as { meta: Record<string, unknown> }).meta;
    };
    expect((await call({ traceparent })).traceparent).toBe(traceparent);
    expect(await call()).not.toHaveProperty('traceparent');
    await waitFor(() => collector.points().some(({ metric }) => metric === 'mcp.server.operation.duration') || null);
    expect(collector.spans).toEqual([]);
  });
});
