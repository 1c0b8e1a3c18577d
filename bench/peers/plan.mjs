// What `npm run bench:peers` measures: the paths of a call, and how it is called on each.

const SMALL = [
  { key: 'one', kind: 'echo', callers: 1, title: '1 caller' },
  { key: 'many', kind: 'echo', callers: 32, title: '32 callers' },
];
const BIG = { key: 'big', kind: 'big', callers: 1, title: '1 MB' };

export const PATHS = [
  { key: 'http', title: 'HTTP to HTTP', transport: 'http', modern: false, runs: [...SMALL, BIG] },
  { key: 'stdio', title: 'HTTP to stdio', transport: 'stdio', modern: false, runs: [...SMALL, BIG] },
  { key: 'modern', title: 'HTTP to HTTP, 2026-07-28', transport: 'http', modern: true, runs: SMALL },
  { key: 'modern-stdio', title: 'HTTP to stdio, 2026-07-28', transport: 'stdio', modern: true, runs: SMALL },
];

/** Rounds, milliseconds of a round, and the minutes for the rounds of one path: what does not fit is left out. */
export const PLANS = {
  full: { rounds: 5, ms: { echo: 300, big: 400 }, minutes: 2 },
  quick: { rounds: 2, ms: { echo: 150, big: 200 }, minutes: 1 },
};
