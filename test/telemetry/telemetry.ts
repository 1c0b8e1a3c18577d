/**
 * A collector on loopback that stores what it receives, Toolgate with OpenTelemetry installed, and servers that echo
 * their metadata.
 */
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../support/cleanup.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml, startListening } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { tool } from '../support/tools.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The installed program, in a folder that also has OpenTelemetry. */
export function installed(): string {
  const modules = join(tempFolder(), 'node_modules');
  const own = join(modules, 'toolgate');
  mkdirSync(own, { recursive: true });
  for (const part of ['bin', 'dist', 'package.json']) cpSync(join(root, part), join(own, part), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as { dependencies: object };
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  symlinkSync(tool('@opentelemetry'), join(modules, '@opentelemetry'));
  return join(own, 'bin', 'toolgate.mjs');
}

type Attributes = Record<string, unknown>;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: 'server' | 'client';
  readonly attributes: Attributes;
  /** 0 is unset, 2 an error. */
  readonly status: number;
  readonly resource: Attributes;
}

export interface Point {
  readonly metric: string;
  readonly unit: string;
  readonly attributes: Attributes;
  readonly value: number;
}

export interface Collector {
  readonly url: string;
  /** The environment that makes an exporter send its data here. */
  readonly env: Record<string, string>;
  /** All request bodies, unchanged. */
  readonly bodies: string[];
  readonly spans: Span[];
  /** The points of the last report. */
  points(): Point[];
  /** Waits for a span. */
  span(kind: Span['kind'], matches: (span: Span) => boolean): Promise<Span>;
}

/** Accepts OTLP over HTTP as JSON. With `answers: false` it accepts everything and never replies. */
export async function startCollector(answers = true): Promise<Collector> {
  const bodies: string[] = [];
  const spans: Span[] = [];
  let last: Point[] = [];
  const http = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    bodies.push(body);
    if (request.url === '/v1/traces') spans.push(...readSpans(JSON.parse(body) as Traces));
    else if (request.url === '/v1/metrics') last = readPoints(JSON.parse(body) as Metrics);
    if (answers) response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  // A connection that is closed just as it is reused loses the data sent over it.
  http.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    http.closeAllConnections();
    http.close();
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    url,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '200',
      OTEL_METRIC_EXPORT_TIMEOUT: '200',
    },
    bodies,
    spans,
    points: () => last,
    span: (kind, matches) => waitFor(() => spans.find((span) => span.kind === kind && matches(span)), 20_000),
  };
}

interface KeyValue {
  readonly key: string;
  readonly value: Record<string, unknown>;
}

interface Traces {
  readonly resourceSpans: {
    readonly resource: { readonly attributes: KeyValue[] };
    readonly scopeSpans: {
      readonly spans: {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly name: string;
        readonly kind: number;
        readonly attributes: KeyValue[];
        readonly status: { readonly code: number };
      }[];
    }[];
  }[];
}

function readSpans({ resourceSpans }: Traces): Span[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        name: span.name,
        kind: span.kind === 2 ? ('server' as const) : ('client' as const),
        attributes: readAttributes(span.attributes),
        status: span.status.code,
        resource: readAttributes(resource.attributes),
      })),
    ),
  );
}

interface DataPoint {
  readonly attributes: KeyValue[];
  readonly asDouble?: number;
  readonly asInt?: number;
  readonly count?: number;
}

interface Metrics {
  readonly resourceMetrics: {
    readonly scopeMetrics: {
      readonly metrics: ({ readonly name: string; readonly unit: string } & Record<
        'sum' | 'gauge' | 'histogram',
        { readonly dataPoints: DataPoint[] } | undefined
      >)[];
    }[];
  }[];
}

function readPoints({ resourceMetrics }: Metrics): Point[] {
  const metrics = resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  return metrics.flatMap(({ name, unit, sum, gauge, histogram }) =>
    (sum ?? gauge ?? histogram)!.dataPoints.map((point) => ({
      metric: name,
      unit,
      attributes: readAttributes(point.attributes),
      value: Number(point.asDouble ?? point.asInt ?? point.count),
    })),
  );
}

function readAttributes(pairs: readonly KeyValue[]): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}

export const upstreams = ['pl', 'pm', 'hl', 'hm'] as const;

/** Servers of both eras on pipes (`pl`, `pm`) and over HTTP (`hl`, `hm`), each with a tool `meta`. */
export async function serversThatShow(): Promise<string> {
  const [legacy, modern] = await Promise.all([startModern('legacy'), startModern('modern')]);
  const url = (namespace: string, address: string) => `[[servers]]\nnamespace = "${namespace}"\nurl = "${address}"\n`;
  return [
    'controls = []',
    serversToml({
      pl: server('modern', '--era', 'legacy', '--meta'),
      pm: server('modern', '--era', 'modern', '--meta'),
    }),
    url('hl', legacy),
    url('hm', modern),
  ].join('\n');
}

async function startModern(era: string): Promise<string> {
  const { origin } = await startListening('modern', '--port', 0, '--era', era, '--meta');
  return `${origin}/mcp`;
}

export interface Shown {
  readonly meta: Record<string, unknown>;
  /** The header `traceparent`; null if it is missing. */
  readonly header: string | null;
}

/** A client of either SDK. */
export interface AnyClient {
  callTool(
    params: { name: string; arguments?: Record<string, unknown>; _meta?: Record<string, unknown> },
    ...more: never[]
  ): Promise<unknown>;
}

/** The metadata that the server of that namespace received with a call. */
export async function show(client: unknown, namespace: string, meta?: Record<string, unknown>): Promise<Shown> {
  const params = { name: `${namespace}_meta`, arguments: {}, ...(meta && { _meta: meta }) };
  const result = (await (client as AnyClient).callTool(params)) as { content: { text: string }[] };
  return JSON.parse(result.content[0]!.text) as Shown;
}

let count = 0;

/** A new, unique trace. */
export function newTrace() {
  const n = (++count).toString(16).padStart(4, '0');
  const traceId = `${'ab'.repeat(14)}${n}`;
  const spanId = `${'12'.repeat(6)}${n}`;
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}
