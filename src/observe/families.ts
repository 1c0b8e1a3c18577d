/** Numbers as they are told to others: named, explained, one for each set of labels. */
import type { Duration } from './histogram.ts';

/** What a number is about, by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a figure. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/**
 * One figure in all its labels. Names are those of Prometheus: in base units, `_total` at the end of what only grows. They
 * have no label that callers can make up without bound.
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
 * A figure that only grows. `rows` is its number, or one for each set of labels.
 *
 * @example
 * gateway.metrics.add(() => [counter('orders_total', 'Orders placed.', 12)]);
 */
export function counter(name: string, help: string, rows: readonly Row[] | number): Family {
  return { name, help, type: 'counter', samples: toSamples(rows) };
}

/** A figure that goes up and down. */
export function gauge(name: string, help: string, rows: readonly Row[] | number): Family {
  return { name, help, type: 'gauge', samples: toSamples(rows) };
}

function toSamples(rows: readonly Row[] | number): Sample[] {
  if (typeof rows === 'number') return [{ labels: {}, value: rows }];
  return rows.map(([labels, value]) => ({ labels, value }));
}
