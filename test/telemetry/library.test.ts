/** Programs that trace calls themselves, together with middleware and other features around a call. */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import {
  counter,
  createOtelTracer,
  openLocalDoor,
  type SpanEnd,
  type TraceContext,
  type Tracer,
} from '../../src/index.ts';
import { connectHttp } from '../support/connection.ts';
import { readExposition } from '../support/exposition.ts';
import { connectModernHttp } from '../support/modern.ts';
import { open } from '../support/open-gateway.ts';
import { serverEntry } from '../support/server.ts';
import { tool } from '../support/tools.ts';
import { type AnyClient, newTrace, show } from './telemetry.ts';

const showing = serverEntry('modern', '--era', 'modern', '--meta');

/** A tracer that records its events and gives each server call this trace. */
function noting(context: TraceContext | null, told: unknown[] = []): Tracer & { readonly told: unknown[] } {
  return {
    told,
    start(incoming) {
      told.push(incoming);
      return {
        context,
        found: ({ name }) => void told.push(`found ${name}`),
        sent({ item }) {
          told.push(`sent ${item.name}`);
          return { context, end: ({ outcome }) => void told.push(`answered ${outcome}`) };
        },
        end: ({ outcome, error }: SpanEnd) => void told.push(`ended ${outcome} ${error}`),
      };
    },
  };
}

describe('gateway.trace', () => {
  it('reports every call in order, with its incoming trace', async () => {
    const { gateway, url } = await open({ m: showing });
    const ours = { traceparent: newTrace().traceparent, tracestate: null };
    const { told, ...tracer } = noting(ours);
    gateway.trace(tracer);
    const { client } = await connectHttp(url);
    const { traceparent } = newTrace();
    const { meta } = await show(client, 'm', { traceparent, tracestate: 'a=1' });
    expect(meta.traceparent).toBe(ours.traceparent);
    expect(meta).not.toHaveProperty('tracestate');
    expect(told).toEqual([
      {
        method: 'tools/call',
        agent: 'anonymous',
        door: 'http',
        revision: '2025-11-25',
        id: expect.stringMatching(/^\d+$/),
        parent: { traceparent, tracestate: 'a=1' },
      },
      'found m_meta',
      'sent meta',
      'answered ok',
      'ended ok null',
    ]);
    told.length = 0;
    await client.callTool({ name: 'nowhere', arguments: {} });
    expect(told.slice(1)).toEqual(['ended refused item_unknown']);
    told.length = 0;
    gateway.trace(null);
    await show(client, 'm');
    expect(told).toEqual([]);
  });

  it('passes on the trace of the caller, or none, while a program has no OpenTelemetry SDK registered', async () => {
    const { gateway, url } = await open({ m: showing });
    gateway.trace(createOtelTracer(createRequire(import.meta.url)(tool('@opentelemetry', 'api'))));
    const { client } = await connectHttp(url);
    const { traceparent } = newTrace();
    expect((await show(client, 'm', { traceparent })).meta.traceparent).toBe(traceparent);
    expect((await show(client, 'm')).meta).not.toHaveProperty('traceparent');
  });

  it('traces calls through middleware that changes arguments or answers itself', async () => {
    const { gateway } = await open({ m: showing });
    const ours = { traceparent: newTrace().traceparent, tracestate: 'ours=1' };
    const { told, ...tracer } = noting(ours);
    gateway.trace(tracer);
    const remove = gateway.use((_, next) => next({ changed: 'x'.repeat(1_000) }));
    const door = openLocalDoor(gateway);
    const result = JSON.parse((await door.callTool('m_meta', {})).toString()) as { content: { text: string }[] };
    expect(JSON.parse(result.content[0]!.text)).toMatchObject({ meta: ours });
    expect(told[0]).toMatchObject({ door: 'local', revision: null, agent: 'local', parent: null });
    expect(told.slice(1)).toEqual(['found m_meta', 'sent meta', 'answered ok', 'ended ok null']);
    told.length = 0;
    remove();
    gateway.use(() => ({ content: [] }));
    await door.callTool('m_meta', {});
    expect(told.slice(1)).toEqual(['found m_meta', 'ended ok null']);
  });

  it('traces calls that are answered by an MCP task, and those that ask a question', async () => {
    const { gateway, url } = await open({ q: serverEntry('asking'), t: serverEntry('tasks') });
    const { told, ...tracer } = noting({ traceparent: newTrace().traceparent, tracestate: null });
    gateway.trace(tracer);
    const { client } = await connectModernHttp(url, {}, { elicitation: { form: {} } });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { word: 'yes' } }));
    await client.callTool({ name: 'q_ask', arguments: { questions: 1 } });
    expect(told.slice(1)).toEqual(['found q_ask', 'sent ask', 'answered ok', 'ended ok null']);
    told.length = 0;
    const takes = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const taking = await connectModernHttp(url, {}, takes);
    await (taking.client as unknown as AnyClient).callTool({ name: 't_slow_compute', arguments: {} }).catch(() => {});
    expect(told.slice(1)).toEqual(['found t_slow_compute', 'sent slow_compute', 'answered ok', 'ended ok null']);
  });

  it('can skip calls', async () => {
    const { gateway, url } = await open({ m: showing });
    gateway.trace({ start: () => null });
    const { client } = await connectHttp(url);
    const { traceparent } = newTrace();
    expect((await show(client, 'm', { traceparent })).meta.traceparent).toBe(traceparent);
    gateway.trace(noting(null));
    expect((await show(client, 'm', { traceparent })).meta.traceparent).toBe(traceparent);
  });
});

describe('gateway.metrics.add', () => {
  it('adds metrics of the program to /metrics until they are removed', async () => {
    const { gateway, origin } = await open({});
    const remove = gateway.metrics.add(() => [counter('my_things_total', 'Things of mine.', [[{ kind: 'a"b' }, 7]])]);
    const read = async () => readExposition(await (await fetch(`${origin}/metrics`)).text()).get('my_things_total');
    expect(await read()).toEqual({
      type: 'counter',
      help: 'Things of mine.',
      samples: [{ name: 'my_things_total', labels: { kind: 'a"b' }, value: 7 }],
    });
    remove();
    expect(await read()).toBeUndefined();
  });
});
