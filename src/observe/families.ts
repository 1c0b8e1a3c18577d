/** Metrics in the form in which they are exported: with a name, a description and one number for each set of labels. */
import type { Duration } from './histogram.ts';

/** The labels of a number, by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a metric, with its labels. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/**
 * One metric with all its labels. Names follow Prometheus: base units, and `_total` at the end of a counter. No label
 * may have values that callers can invent without bound.
 */
export type Family =
  | {
      readonly name: string;
      readonly help: string;
      readonly type: 'counter' | 'gauge';
      readonly samples: readonly Sample[];
    }
  | {
      readonly name: string;
      readonly help: string;
      readonly type: 'histogram';
      readonly samples: readonly { readonly labels: Labels; readonly value: Duration }[];
    };

type Row = readonly [labels: Labels, value: number];

/**
 * A metric that only grows. `rows` is its value, or one value for each set of labels.
 *
 * @example
 * gateway.metrics.add(() => [counter('orders_total', 'Orders placed.', 12)]);
 */
export function counter(name: string, help: string, rows: readonly Row[] | number): Family {
  return { name, help, type: 'counter', samples: toSamples(rows) };
}

/** A metric that goes up and down. */
export function gauge(name: string, help: string, rows: readonly Row[] | number): Family {
  return { name, help, type: 'gauge', samples: toSamples(rows) };
}

function toSamples(rows: readonly Row[] | number): Sample[] {
  if (typeof rows === 'number') return [{ labels: {}, value: rows }];
  return rows.map(([labels, value]) => ({ labels, value }));
}
