/**
 * Starts OpenTelemetry if its standard variables ask for it. Toolgate does not install the packages but loads them if
 * they are installed. Exporters, samplers and the rest are configured by those variables alone.
 */
import { GatewayError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { OtelApi } from './api.ts';
import { observeMetrics } from './instruments.ts';
import { createOtelTracer } from './tracer.ts';

/** A running OpenTelemetry SDK. */
export interface Telemetry {
  /** Sends the remaining data, for a few seconds at most. Resolves to whether all of it was sent. */
  close(): Promise<boolean>;
}

type TelemetryEnv = Readonly<Record<string, string | undefined>>;

/** Milliseconds for the last export. */
const SHUTDOWN_WAIT = 3_000;
const SDK = '@opentelemetry/sdk-node';
const API = '@opentelemetry/api';
/** The newest version that runs on Node 20 and early 22. */
const SDK_BEFORE = '0.223';

interface NodeSdkModule {
  readonly NodeSDK: new () => { start(): void; shutdown(): Promise<void> };
}

/** Null if no variable asks for it. Throws a GatewayError if one does and the packages are not installed. */
export async function startTelemetry(gateway: Gateway): Promise<Telemetry | null> {
  const { env } = gateway;
  const settings = telemetrySettings(env);
  if (settings === null) return null;
  const [{ NodeSDK }, api] = (await Promise.all([load(SDK, settings.by), load(API, settings.by)])) as [
    NodeSdkModule,
    OtelApi,
  ];
  const sdk = withDefaults(env, settings.defaults, () => {
    const started = new NodeSDK();
    started.start();
    return started;
  });
  gateway.trace(createOtelTracer(api));
  if (settings.metrics) observeMetrics(api, () => gateway.measure());
  return {
    async close() {
      gateway.trace(null);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<boolean>((resolve) => {
        timer = setTimeout(resolve, SHUTDOWN_WAIT, false);
      });
      // The collector may already have stopped, which is not a failure of the gateway.
      const sent = sdk.shutdown().then(
        () => true,
        () => false,
      );
      return Promise.race([late, sent]).finally(() => clearTimeout(timer));
    },
  };
}

export interface TelemetrySettings {
  /** The variable that turned telemetry on. */
  readonly by: string;
  readonly metrics: boolean;
  /** Variables that are set for the SDK if they are not set already. */
  readonly defaults: Readonly<Record<string, string>>;
}

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

/** Null if no variable asks for telemetry. */
export function telemetrySettings(env: TelemetryEnv): TelemetrySettings | null {
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
      // Toolgate sends no logs.
      OTEL_LOGS_EXPORTER: 'none',
      // The process detector is left out because it would send the command-line arguments.
      OTEL_NODE_RESOURCE_DETECTORS: 'env,host,serviceinstance',
      ...(namesService(env) ? {} : { OTEL_SERVICE_NAME: 'toolgate' }),
    },
  };
}

function isSet(env: TelemetryEnv, name: string): boolean {
  return (env[name] ?? '').trim() !== '';
}

function namesService(env: TelemetryEnv): boolean {
  return isSet(env, 'OTEL_SERVICE_NAME') || /(^|,)\s*service\.name\s*=/.test(env.OTEL_RESOURCE_ATTRIBUTES ?? '');
}

/** The SDK reads variables of this process while it starts. Ours are removed afterwards, so that servers do not inherit them. */
function withDefaults<T>(env: TelemetryEnv, defaults: Readonly<Record<string, string>>, work: () => T): T {
  const attributes = env.OTEL_RESOURCE_ATTRIBUTES ?? '';
  const version = `service.version=${VERSION}`;
  const all = {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('OTEL_'))),
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
      `${by} asks for OpenTelemetry, but ${name} is not installed next to Toolgate, which runs without it. Install it there with: npm install --no-save --save-optional ${API} ${sdk}`,
    );
  }
}
