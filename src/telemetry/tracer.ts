/**
 * Calls as spans of OpenTelemetry, by its conventions for MCP as far as those are settled: one of kind SERVER from the
 * request to its answer, and inside of it one of kind CLIENT for the way to the server. Of what is in a call nothing is told.
 */

import { VERSION } from '../base/version.ts';
import type { DoorKind } from '../calls/caller.ts';
import type { Entry } from '../catalog/entry.ts';
import type { CallSpan, Incoming, SentSpan, SpanEnd, Tracer } from '../observe/span.ts';
import type { TraceContext } from '../protocol/trace.ts';
import type { Attributes, OtelApi, OtelContext, OtelSpan, OtelTracer } from './api.ts';

const SERVER = 1;
const CLIENT = 2;
const STATUS_ERROR = 2;

/** The bounds that the conventions ask for, in seconds. */
const BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

interface Histogram {
  record(value: number, attributes: Attributes): void;
}

interface Kit {
  readonly api: OtelApi;
  readonly tracer: OtelTracer;
  readonly server: Histogram;
  readonly client: Histogram;
}

/** Traces and durations by way of an `@opentelemetry/api`: whatever is registered there gets them. Give it to `gateway.trace`. */
export function createOtelTracer(api: OtelApi): Tracer {
  const meter = api.metrics.getMeter('toolgate', VERSION);
  const histogram = (name: string, description: string) =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: BOUNDS } });
  const kit: Kit = {
    api,
    tracer: api.trace.getTracer('toolgate', VERSION),
    server: histogram('mcp.server.operation.duration', 'From the request of a client to its answer.'),
    client: histogram('mcp.client.operation.duration', 'From the request to a server to its answer.'),
  };
  return { start: (incoming) => new OtelCall(kit, incoming) };
}

/** One span, and the duration beside it. */
class Timed {
  readonly kit: Kit;
  readonly span: OtelSpan;
  readonly histogram: Histogram;
  /** Those that durations have too: few values each. */
  readonly attributes: Attributes;
  readonly started = performance.now();

  constructor(kit: Kit, span: OtelSpan, histogram: Histogram, attributes: Attributes) {
    this.kit = kit;
    this.span = span;
    this.histogram = histogram;
    this.attributes = attributes;
  }

  get context(): TraceContext | null {
    const { isSpanContextValid } = this.kit.api.trace;
    const context = this.span.spanContext();
    if (!isSpanContextValid(context)) return null;
    const { traceId, spanId, traceFlags, traceState } = context;
    const flags = traceFlags.toString(16).padStart(2, '0');
    return { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: traceState?.serialize() || null };
  }

  end({ outcome, error, rpcCode }: SpanEnd): void {
    const { span, attributes } = this;
    if (error !== null) attributes['error.type'] = error;
    if (rpcCode !== null) attributes['rpc.response.status_code'] = String(rpcCode);
    this.histogram.record((performance.now() - this.started) / 1_000, attributes);
    if (span.isRecording()) span.setAttributes({ ...attributes, 'toolgate.outcome': outcome });
    if (error !== null) span.setStatus({ code: STATUS_ERROR });
    span.end();
  }
}

class OtelCall extends Timed implements CallSpan {
  readonly method: string;

  constructor(kit: Kit, { method, agent, door, revision, id, parent }: Incoming) {
    const attributes: Attributes = {
      'mcp.method.name': method,
      ...(revision !== null && { 'mcp.protocol.version': revision }),
      ...TRANSPORTS[door],
    };
    const all = { ...attributes, 'jsonrpc.request.id': id, 'toolgate.agent': agent };
    const span = kit.tracer.startSpan(method, { kind: SERVER, attributes: all }, contextOf(kit.api, parent));
    super(kit, span, kit.server, attributes);
    this.method = method;
  }

  found(entry: Entry): void {
    const target = targetOf(entry, entry.name);
    Object.assign(this.attributes, target.attributes, { 'toolgate.server': entry.sourceKey });
    // The name that was asked for may be anything; the one that was found is one of those that are listed.
    if (target.name !== null) this.span.updateName(`${this.method} ${target.name}`);
  }

  sent(entry: Entry): SentSpan {
    const { kit, method } = this;
    const { api, tracer } = kit;
    const target = targetOf(entry, entry.item.name);
    const attributes = { 'mcp.method.name': method, ...target.attributes, 'toolgate.server': entry.sourceKey };
    const name = target.name === null ? method : `${method} ${target.name}`;
    const inside = api.trace.setSpan(api.ROOT_CONTEXT, this.span);
    const span = tracer.startSpan(name, { kind: CLIENT, attributes }, inside);
    return new Timed(kit, span, kit.client, attributes);
  }
}

const TRANSPORTS: Readonly<Record<DoorKind, Attributes>> = {
  stdio: { 'network.transport': 'pipe' },
  http: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  sse: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  rest: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  local: {},
};

/** URIs are left out: there may be any number of them, with anything in them. */
function targetOf({ kind }: Entry, name: string): { name: string | null; attributes: Attributes } {
  if (kind === 'tool')
    return { name, attributes: { 'gen_ai.tool.name': name, 'gen_ai.operation.name': 'execute_tool' } };
  if (kind === 'prompt') return { name, attributes: { 'gen_ai.prompt.name': name } };
  return { name: null, attributes: {} };
}

function contextOf(api: OtelApi, parent: TraceContext | null): OtelContext {
  if (parent === null) return api.ROOT_CONTEXT;
  const [, traceId, spanId, flags] = parent.traceparent.split('-') as [string, string, string, string];
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(parent.tracestate !== null && { traceState: api.createTraceState(parent.tracestate) }),
  });
}
