/** Checks every feature for one kind of server and each kind of client. Each kind of server has a file, so that they run in parallel. */
import { beforeAll, describe, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type MatrixClient, openMatrixClient } from './clients.ts';
import { features, verdictOn } from './features.ts';
import { configFor } from './servers.ts';
import { clientsFor, type Side, titleOf } from './sides.ts';

export function describeUpstream(upstream: Side): void {
  describe(`a server: ${titleOf(upstream)}`, () => {
    let config: string;
    let http: HttpGateway;
    beforeAll(async () => {
      config = await configFor(upstream);
      http = await startHttp({ config });
    });

    describe.each(clientsFor(upstream).map((client) => [titleOf(client), client] as const))(
      'a client: %s',
      (_, client) => {
        const cell = { client, upstream };
        const verdicts = features.map((feature) => ({ feature, verdict: verdictOn(feature, cell) }));
        const possible = verdicts.filter(({ verdict }) => verdict.kind === 'yes');
        let subject: MatrixClient;
        beforeAll(async () => {
          if (possible.length > 0) subject = await openMatrixClient(client, http, config);
        });

        for (const { feature } of possible) it(feature.name, () => feature.check(subject, cell));
        for (const { feature, verdict } of verdicts)
          if (verdict.kind === 'not yet') it.todo(`${feature.name}: ${verdict.reason}`);
      },
    );
  });
}
