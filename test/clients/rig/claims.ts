/** The claims about every published client. `UPDATE_DOCS=1` writes down what it measures. */
import { describe, expect, it } from 'vitest';
import { isMissingClients, isMissingPython } from '../../support/needs.ts';
import { measure } from './measure.ts';
import type { Transport } from './place.ts';
import type { Published } from './published.ts';
import { isUpdate, readResult, writeResult } from './results.ts';

export function claim(
  clients: readonly Published[],
  transports: readonly Transport[] = ['http', 'stdio'],
  running?: () => string,
): void {
  describe.each(clients)('$title', (client) => {
    const isMissing = client.python === undefined ? isMissingClients() : isMissingPython(client.python);
    const expected = readResult(client);

    it.skipIf(isMissing).each(transports)(
      'over %s finds the memory tools, activates them and calls one, in as many requests as before',
      async (transport) => {
        const { measured, output } = await measure(client, transport, running?.());
        if (isUpdate) writeResult(client, transport, measured);
        const before = isUpdate ? measured : expected?.[transport];
        expect(before, 'run it with UPDATE_DOCS=1 first').toBeDefined();
        expect(measured.through, output.slice(-2000)).not.toBeNull();
        // When a client lists again depends on the machine, so the tools may be shown earlier or later. Some take the older
        // protocol if the answer to the newer one is slow.
        const { shownIn, calledIn, through, protocol, ...same } = measured;
        expect(before).toMatchObject(same);
        if (calledIn !== null) expect(calledIn, 'requests to the model').toBeLessThanOrEqual(before!.calledIn!);
      },
      400_000,
    );
  });
}
