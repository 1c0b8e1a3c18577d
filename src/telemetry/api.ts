/**
 * The parts of `@opentelemetry/api` that Toolgate uses, declared as its own types: the package is an optional install,
 * and a program may pass its own copy.
 */

export type Attributes = Record<string, string | number>;

/** An OpenTelemetry context. Its contents are private to the library that created it. */
export type OtelContext = object;

export interface OtelSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
  readonly traceState?: { serialize(): string } | undefined;
}

export interface OtelSpan {
  spanContext(): OtelSpanContext;
  isRecording(): boolean;
  updateName(name: string): unknown;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number }): unknown;
  end(): void;
}

export interface OtelTracer {
  startSpan(name: string, options: { kind: number; attributes: Attributes }, context: OtelContext): OtelSpan;
}

interface InstrumentOptions {
  readonly description: string;
  readonly unit: string;
  readonly advice?: { explicitBucketBoundaries: number[] };
}

export interface OtelObservable {
  addCallback(callback: (result: { observe(value: number, attributes: Attributes): void }) => void): void;
}

export interface OtelMeter {
  createHistogram(name: string, options: InstrumentOptions): { record(value: number, attributes: Attributes): void };
  createObservableCounter(name: string, options: InstrumentOptions): OtelObservable;
  createObservableGauge(name: string, options: InstrumentOptions): OtelObservable;
}

/** The parts of `@opentelemetry/api` that Toolgate uses. You pass the module in, so that your copy is used. */
export interface OtelApi {
  readonly ROOT_CONTEXT: OtelContext;
  readonly trace: {
    getTracer(name: string, version: string): OtelTracer;
    setSpan(context: OtelContext, span: OtelSpan): OtelContext;
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext;
    isSpanContextValid(spanContext: OtelSpanContext): boolean;
  };
  readonly metrics: { getMeter(name: string, version: string): OtelMeter };
  createTraceState(text: string): { serialize(): string };
}
