import { it } from 'vitest';
import { killAtRandom } from '../support/killing.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const KILLS = 200;

it(`keeps every secret that was acknowledged, through ${KILLS} kills`, () => killAtRandom(KILLS), 1_500_000);
