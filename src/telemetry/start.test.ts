import { describe, expect, it } from 'vitest';
import { telemetrySettings } from './start.ts';

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const TRACES = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const METRICS = 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT';

describe('OpenTelemetry', () => {
  it.each([
    ['nothing', {}],
    ['empty variables', { [ENDPOINT]: ' ', OTEL_TRACES_EXPORTER: '' }],
    ['only a service name', { OTEL_SERVICE_NAME: 'x', OTEL_LOG_LEVEL: 'debug' }],
    ['the exporter "none"', { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none', [ENDPOINT]: 'x' }],
    ['an endpoint, if the SDK is disabled', { OTEL_SDK_DISABLED: 'TRUE', [ENDPOINT]: 'x' }],
    ['an endpoint for logs, which Toolgate does not send', { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'x' }],
  ])('is not started by %s', (_, env) => {
    expect(telemetrySettings(env)).toBeNull();
  });

  it.each([
    ['an endpoint', { [ENDPOINT]: 'x' }, ENDPOINT, 'otlp', 'otlp'],
    ['one for traces', { [TRACES]: 'x' }, TRACES, 'otlp', 'none'],
    ['one for metrics', { [METRICS]: 'x' }, METRICS, 'none', 'otlp'],
    ['an exporter of traces', { OTEL_TRACES_EXPORTER: 'console' }, 'OTEL_TRACES_EXPORTER', 'otlp', 'none'],
    ['one of metrics', { OTEL_METRICS_EXPORTER: 'console' }, 'OTEL_METRICS_EXPORTER', 'none', 'otlp'],
    ['an endpoint without traces', { [ENDPOINT]: 'x', OTEL_TRACES_EXPORTER: 'none' }, ENDPOINT, 'none', 'otlp'],
    [
      'an endpoint, if the SDK is not disabled',
      { [ENDPOINT]: 'x', OTEL_SDK_DISABLED: 'false' },
      ENDPOINT,
      'otlp',
      'otlp',
    ],
  ])('is started by %s', (_, env, by, traces, metrics) => {
    // Defaults, for variables that are not set.
    const defaults = { OTEL_TRACES_EXPORTER: traces, OTEL_METRICS_EXPORTER: metrics, OTEL_LOGS_EXPORTER: 'none' };
    expect(telemetrySettings(env)).toMatchObject({ by, metrics: metrics !== 'none', defaults });
  });

  it('uses the service name toolgate unless another is set', () => {
    const name = (env: Record<string, string>) =>
      telemetrySettings({ [ENDPOINT]: 'x', ...env })!.defaults.OTEL_SERVICE_NAME;
    expect(name({})).toBe('toolgate');
    expect(name({ OTEL_RESOURCE_ATTRIBUTES: 'team=a' })).toBe('toolgate');
    expect(name({ OTEL_SERVICE_NAME: 'mine' })).toBeUndefined();
    expect(name({ OTEL_RESOURCE_ATTRIBUTES: 'team=a, service.name=mine' })).toBeUndefined();
  });
});
