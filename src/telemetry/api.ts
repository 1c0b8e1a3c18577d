/**
 * What is used of `@opentelemetry/api`, in types of our own: the package is there only where somebody wants it, and a
 * program that has it may hand in its own.
 */

export type Attributes = Record<string, string | number>;

/** Stands for a context; only its own library knows what is in it. */
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

interface Description {
  readonly description: string;
  readonly unit: string;
  readonly advice?: { explicitBucketBoundaries: number[] };
}

export interface OtelObservable {
  addCallback(callback: (result: { observe(value: number, attributes: Attributes): void }) => void): void;
}

export interface OtelMeter {
  createHistogram(name: string, options: Description): { record(value: number, attributes: Attributes): void };
  createObservableCounter(name: string, options: Description): OtelObservable;
  createObservableGauge(name: string, options: Description): OtelObservable;
}

/** What is used of the package `@opentelemetry/api`. Handed in, so that it is yours. */
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
