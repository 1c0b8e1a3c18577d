/**
 * How wide tests go that hold for every way in, or for every kind of server. `npm run test:wide` takes all of them; the
 * usual run takes those that differ most, because what is behind them is the same.
 */
export const isWide = process.env.WIDE === '1';

export function some<T>(all: readonly T[], few: readonly T[]): readonly T[] {
  return isWide ? all : few;
}
