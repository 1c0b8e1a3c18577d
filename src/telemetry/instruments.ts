/** The metrics of `/metrics` as OpenTelemetry instruments, read at each collection. */
import { VERSION } from '../base/version.ts';
import type { Family, Sample } from '../observe/families.ts';
import type { OtelApi } from './api.ts';

export function observeMetrics(api: OtelApi, measure: () => readonly Family[]): void {
  const meter = api.metrics.getMeter('toolgate', VERSION);
  const known = new Set<string>();
  let families: readonly Family[] = [];
  let isFresh = false;

  const refresh = () => {
    // One collection reads every instrument in turn; measuring once is enough for all of them.
    if (isFresh) return;
    isFresh = true;
    setImmediate(() => {
      isFresh = false;
    });
    families = measure();
    // A door that opens later adds metrics.
    for (const family of families) add(family);
  };

  function add(family: Family): void {
    const { name, help, type } = family;
    // Durations are recorded with each call, and process metrics are left to other libraries.
    if (type === 'histogram' || known.has(name) || !name.startsWith(PREFIX)) return;
    known.add(name);
    const options = { description: help, unit: unitOf(name) };
    const instrument =
      type === 'counter'
        ? meter.createObservableCounter(otelName(name), options)
        : meter.createObservableGauge(otelName(name), options);
    instrument.addCallback((result) => {
      refresh();
      const samples = families.find((one) => one.name === name)?.samples ?? [];
      for (const { labels, value } of samples as readonly Sample[]) result.observe(value, { ...labels });
    });
  }

  refresh();
}

const PREFIX = 'toolgate_';

/**
 * `toolgate_response_bytes_total` becomes `toolgate.response.bytes`: OpenTelemetry keeps type and unit out of names.
 */
function otelName(name: string): string {
  return name
    .replace(/_total$/, '')
    .replace(PREFIX, 'toolgate.')
    .replace(/^(toolgate\.[a-z]+)_/, '$1.');
}

function unitOf(name: string): string {
  if (/_bytes(_total)?$/.test(name)) return 'By';
  return /_seconds(_total)?$/.test(name) ? 's' : '1';
}
