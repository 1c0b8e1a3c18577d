import { expect, it } from 'vitest';
import { type Death, die, ways } from '../support/dying.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const ROUNDS = 50;

it(`leaves no process behind in ${ROUNDS} rounds of start, use and every kind of death`, {
  timeout: 600_000,
}, async () => {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const deaths: Death[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const way = ways[round % ways.length]!;
    const death = await die(way, random);
    if (death.left > 0) console.log(`round ${round}: ${death.left} left after ${Object.values(way).join(' ')}`);
    deaths.push(death);
  }
  const sum = (key: 'processes' | 'left') => deaths.reduce((total, death) => total + death[key], 0);
  const slowest = Math.round(Math.max(...deaths.map(({ ms }) => ms)));
  console.log(`${ROUNDS} deaths, ${sum('processes')} processes, ${sum('left')} left, slowest ${slowest} ms`);
  expect(sum('left')).toBe(0);
});
