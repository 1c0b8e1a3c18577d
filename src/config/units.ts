/** Durations and sizes as people write them: `"30s"` is 30000 milliseconds, `"4MiB"` is 4194304 bytes. */

const milliseconds = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

const bytes = {
  B: 1,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
} as const;

export const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;
export const SIZE = /^(\d+(?:\.\d+)?)(B|KB|MB|GB|KiB|MiB|GiB)$/;

/** Node keeps the delay of a timer in 31 bits. A longer one would fire at once. */
export const MAX_DURATION = 2 ** 31 - 1;

/** Milliseconds of a text that matches `DURATION`; a number is taken as milliseconds. */
export function toMilliseconds(duration: string | number): number {
  return measure(duration, DURATION, milliseconds);
}

const days = { ...milliseconds, d: 86_400_000, w: 604_800_000 } as const;
const LIFETIME = /^([1-9]\d{0,5})(s|m|h|d|w)$/;

/**
 * Milliseconds of "90s", "12h", "30d" or "4w"; null for anything else. It is used for dates, so it may exceed the
 * longest timer.
 */
export function toLifetime(text: string): number | null {
  return LIFETIME.test(text) ? measure(text, LIFETIME, days) : null;
}

/** Bytes of a text that matches `SIZE`; a number is taken as bytes. */
export function toBytes(size: string | number): number {
  return measure(size, SIZE, bytes);
}

function measure(value: string | number, form: RegExp, units: Readonly<Record<string, number>>): number {
  if (typeof value === 'number') return value;
  const [, amount, unit] = form.exec(value) ?? [];
  return Number(amount) * (units[unit ?? ''] ?? Number.NaN);
}
