/** An agent behind `toolgate connect` outlasts its gateway, twenty times, in each era. */
import { expect, it } from 'vitest';
import { outlast } from '../connect/restarts.ts';

it.each(['legacy', 'modern'] as const)(
  'works through 20 restarts, for a %s client',
  async (era) => {
    await expect(outlast(era, 20)).resolves.toBeUndefined();
  },
  300_000,
);
