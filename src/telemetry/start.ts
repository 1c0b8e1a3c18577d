/**
 * Starts OpenTelemetry where its standard variables ask for it. Its packages are not ours to bring: they are loaded if they
 * are installed, and everything about exporters, samplers and the like is left to them and to those variables.
 */
import { GatewayError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { OtelApi } from './api.ts';
import { observe } from './observe.ts';
import { createOtelTracer } from './tracer.ts';

/** OpenTelemetry at work. */
export interface Telemetry {
  /** Sends what is left, for a few seconds at most; whether all of it was sent. */
  close(): Promise<boolean>;
}

type Env = Record<string, string | undefined>;

const LAST_WORDS = 3_000;
const SDK = '@opentelemetry/sdk-node';
const API = '@opentelemetry/api';
/** The newest that runs on Node 20 and early 22. */
const SDK_BEFORE = '0.223';

interface Sdk {
  readonly NodeSDK: new () => { start(): void; shutdown(): Promise<void> };
}

/** Null where nothing asks for it. Throws a GatewayError where it is asked for and cannot be had. */
export async function startTelemetry(gateway: Gateway, env: Env = process.env): Promise<Telemetry | null> {
  const wanted = wantedOf(env);
  if (wanted === null) return null;
  const [{ NodeSDK }, api] = (await Promise.all([load(SDK, wanted.by), load(API, wanted.by)])) as [Sdk, OtelApi];
  const sdk = withDefaults(env, wanted.defaults, () => {
    const made = new NodeSDK();
    made.start();
    return made;
  });
  gateway.trace(createOtelTracer(api));
  if (wanted.metrics) observe(api, () => gateway.measure());
  return {
    async close() {
      gateway.trace(null);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<boolean>((resolve) => {
        timer = setTimeout(resolve, LAST_WORDS, false);
      });
      // Nobody may be listening there any more, which is no failure of ours.
      const sent = sdk.shutdown().then(
        () => true,
        () => false,
      );
      return Promise.race([late, sent]).finally(() => clearTimeout(timer));
    },
  };
}

interface Wanted {
  /** The variable that asks for it. */
  readonly by: string;
  readonly metrics: boolean;
  /** Variables that are set for the SDK where they are not set already. */
  readonly defaults: Readonly<Record<string, string>>;
}

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

export function wantedOf(env: Env): Wanted | null {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return null;
  const asks = (signal: 'TRACES' | 'METRICS') => {
    const exporter = `OTEL_${signal}_EXPORTER`;
    if (isSet(env, exporter)) return env[exporter]!.split(',').some((one) => one.trim() === 'none') ? null : exporter;
    return [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, ENDPOINT].find((name) => isSet(env, name)) ?? null;
  };
  const traces = asks('TRACES');
  const metrics = asks('METRICS');
  const by = traces ?? metrics;
  if (by === null) return null;
  return {
    by,
    metrics: metrics !== null,
    defaults: {
      OTEL_TRACES_EXPORTER: traces === null ? 'none' : 'otlp',
      OTEL_METRICS_EXPORTER: metrics === null ? 'none' : 'otlp',
      // There are none of ours.
      OTEL_LOGS_EXPORTER: 'none',
      // Not those of the process: its arguments are nobody's business.
      OTEL_NODE_RESOURCE_DETECTORS: 'env,host,serviceinstance',
      ...(namesService(env) ? {} : { OTEL_SERVICE_NAME: 'toolgate' }),
    },
  };
}

function isSet(env: Env, name: string): boolean {
  return (env[name] ?? '').trim() !== '';
}

function namesService(env: Env): boolean {
  return isSet(env, 'OTEL_SERVICE_NAME') || /(^|,)\s*service\.name\s*=/.test(env.OTEL_RESOURCE_ATTRIBUTES ?? '');
}

/** The SDK reads its variables while it starts. Nobody else is to see those that are ours, servers least of all. */
function withDefaults<T>(env: Env, defaults: Readonly<Record<string, string>>, work: () => T): T {
  const attributes = env.OTEL_RESOURCE_ATTRIBUTES ?? '';
  const version = `service.version=${VERSION}`;
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(defaults).filter(([name]) => !isSet(env, name))),
    OTEL_RESOURCE_ATTRIBUTES: attributes === '' ? version : `${version},${attributes}`,
  };
  const before = Object.keys(all).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, all);
  try {
    return work();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

async function load(name: string, by: string): Promise<unknown> {
  try {
    return await import(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    const sdk = major > 22 || (major === 22 && minor >= 15) ? SDK : `${SDK}@${SDK_BEFORE}`;
    throw new GatewayError(
      'config_missing',
      `${by} asks for OpenTelemetry, but ${name} is not installed beside Toolgate, which goes on without it. Install it there with: npm install --no-save ${API} ${sdk}`,
    );
  }
}
