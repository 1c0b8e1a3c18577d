/** A client of `toolgate connect` survives twenty restarts of its gateway, in each era. */
import { expect, it } from 'vitest';
import { outlast } from '../support/restarts.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it.each(['legacy', 'modern'] as const)(
  'keeps a %s client working through 20 restarts',
  async (era) => {
    await expect(outlast(era, 20)).resolves.toBeUndefined();
  },
  300_000,
);
