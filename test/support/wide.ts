/**
 * How many combinations of doors and kinds of servers the tests cover. `npm run test:wide` covers all of them. A normal run
 * covers those that differ most, because they share most of their code.
 */
export const isWide = process.env.WIDE === '1';

export function some<T>(all: readonly T[], few: readonly T[]): readonly T[] {
  return isWide ? all : few;
}
