import { expect, it } from 'vitest';
import { DURATION, SIZE, toBytes, toMilliseconds } from './units.ts';

it.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5s', 1500],
  ['10m', 600_000],
  ['24h', 86_400_000],
  [1234, 1234],
])('reads the duration %j', (written, milliseconds) => {
  expect(toMilliseconds(written)).toBe(milliseconds);
});

it.each([
  ['100B', 100],
  ['1KB', 1000],
  ['512KiB', 524_288],
  ['1MB', 1_000_000],
  ['4MiB', 4_194_304],
  ['0.5GiB', 536_870_912],
  ['2GB', 2e9],
  [77, 77],
])('reads the size %j', (written, bytes) => {
  expect(toBytes(written)).toBe(bytes);
});

it.each(['', '5', 's', '-1s', '1 s', '1d', '1e3s', '1S', '.5s', '1s '])('refuses the duration %j', (written) => {
  expect(written).not.toMatch(DURATION);
});

it.each(['', '5', 'MiB', '-1KB', '1 KB', '1TB', '1kb', '1M'])('refuses the size %j', (written) => {
  expect(written).not.toMatch(SIZE);
});
