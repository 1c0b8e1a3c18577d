/** Runs every feature for one kind of server and every kind of client. One file for each kind of server, so that they run beside each other. */
import { beforeAll, describe, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { features, verdictOn } from './features.ts';
import { type Guest, openGuest } from './guests.ts';
import { configFor } from './servers.ts';
import { type Side, sides, titleOf } from './sides.ts';

export function describeUpstream(upstream: Side): void {
  describe(`a server: ${titleOf(upstream)}`, () => {
    let config: string;
    let http: HttpGateway;
    beforeAll(async () => {
      config = await configFor(upstream);
      http = await startHttp({ config });
    });

    describe.each(sides.map((client) => [titleOf(client), client] as const))('a client: %s', (_, client) => {
      const cell = { client, upstream };
      const verdicts = features.map((feature) => ({ feature, verdict: verdictOn(feature, cell) }));
      const possible = verdicts.filter(({ verdict }) => verdict.kind === 'yes');
      let guest: Guest;
      beforeAll(async () => {
        if (possible.length > 0) guest = await openGuest(client, http, config);
      });

      for (const { feature } of possible) it(feature.name, () => feature.check(guest, cell));
      for (const { feature, verdict } of verdicts)
        if (verdict.kind === 'not yet') it.todo(`${feature.name}: ${verdict.reason}`);
    });
  });
}
