/**
 * Calls as OpenTelemetry spans, following the semantic conventions for MCP as far as they are stable: one SERVER span
 * from the request to its answer, and inside it one CLIENT span for the request to the server. Arguments and results
 * are not recorded.
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

/** The histogram bounds that the conventions prescribe, in seconds. */
const BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

interface OtelHistogram {
  record(value: number, attributes: Attributes): void;
}

interface OtelInstruments {
  readonly api: OtelApi;
  readonly tracer: OtelTracer;
  readonly server: OtelHistogram;
  readonly client: OtelHistogram;
}

/**
 * Creates a tracer that sends spans and durations through `@opentelemetry/api` to the SDK registered there. Pass it to
 * `gateway.trace`.
 */
export function createOtelTracer(api: OtelApi): Tracer {
  const meter = api.metrics.getMeter('toolgate', VERSION);
  const histogram = (name: string, description: string) =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: BOUNDS } });
  const otel: OtelInstruments = {
    api,
    tracer: api.trace.getTracer('toolgate', VERSION),
    server: histogram('mcp.server.operation.duration', 'From the request of a client to its answer.'),
    client: histogram('mcp.client.operation.duration', 'From the request to a server to its answer.'),
  };
  return { start: (incoming) => new OtelCall(otel, incoming) };
}

/** A span, and a histogram that records its duration. */
class TimedSpan {
  readonly otel: OtelInstruments;
  readonly span: OtelSpan;
  readonly histogram: OtelHistogram;
  /** Also set on durations, so each must have few distinct values. */
  readonly attributes: Attributes;
  readonly started = performance.now();

  constructor(otel: OtelInstruments, span: OtelSpan, histogram: OtelHistogram, attributes: Attributes) {
    this.otel = otel;
    this.span = span;
    this.histogram = histogram;
    this.attributes = attributes;
  }

  get context(): TraceContext | null {
    const { isSpanContextValid } = this.otel.api.trace;
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

class OtelCall extends TimedSpan implements CallSpan {
  readonly method: string;

  constructor(otel: OtelInstruments, { method, agent, door, revision, id, parent }: Incoming) {
    const attributes: Attributes = {
      'mcp.method.name': method,
      ...(revision !== null && { 'mcp.protocol.version': revision }),
      ...TRANSPORTS[door],
    };
    const all = { ...attributes, 'jsonrpc.request.id': id, 'toolgate.agent': agent };
    const span = otel.tracer.startSpan(method, { kind: SERVER, attributes: all }, contextOf(otel.api, parent));
    super(otel, span, otel.server, attributes);
    this.method = method;
  }

  found(entry: Entry): void {
    const target = targetOf(entry, entry.name);
    Object.assign(this.attributes, target.attributes, { 'toolgate.server': entry.sourceKey });
    // The exposed name, not the requested one: a client may request anything, and the number of span names must stay
    // small.
    if (target.name !== null) this.span.updateName(`${this.method} ${target.name}`);
  }

  sent(entry: Entry): SentSpan {
    const { otel, method } = this;
    const { api, tracer } = otel;
    const target = targetOf(entry, entry.item.name);
    const attributes = { 'mcp.method.name': method, ...target.attributes, 'toolgate.server': entry.sourceKey };
    const name = target.name === null ? method : `${method} ${target.name}`;
    const inside = api.trace.setSpan(api.ROOT_CONTEXT, this.span);
    const span = tracer.startSpan(name, { kind: CLIENT, attributes }, inside);
    return new TimedSpan(otel, span, otel.client, attributes);
  }
}

const TRANSPORTS: Readonly<Record<DoorKind, Attributes>> = {
  stdio: { 'network.transport': 'pipe' },
  http: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  sse: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  rest: { 'network.transport': 'tcp', 'network.protocol.name': 'http' },
  local: {},
};

/** URIs are left out: their number is unlimited, and they may contain anything. */
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
