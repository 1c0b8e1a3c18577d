/** The claims of a JWT, for conditions of a policy. */
import { describe, expect, it } from 'vitest';
import { configFromValue, openHttpDoor } from '../../src/index.ts';
import { openAsk } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { startIssuer } from './issuer.ts';

const cwd = tempFolder();
const configOf = (more: object) =>
  configFromValue(
    { mcpServers: { s: serverEntry('basic', '--tools', 'find') }, controls: [], ...more },
    { cwd, env: {} },
  );

describe('the claims of a JWT', () => {
  it('decide for the token that is used, also in a session that another token opened', async () => {
    const issuer = await startIssuer();
    await issuer.rotate();
    const own = createGateway(
      configOf({
        http: { jwt: { issuer: issuer.issuer, audience: 'me' } },
        conditions: [{ tools: ['s.find'], when: '"ops" in claims.groups' }],
      }),
    );
    atEnd(() => own.close());
    const door = await openHttpDoor(own, { host: '127.0.0.1', port: 0, token: null });
    atEnd(() => door.close());
    await own.tried();
    const sign = async (groups: string[]) => `Bearer ${await issuer.sign({ sub: 'ann', aud: 'me', groups })}`;
    const wide = await sign(['ops']);
    const narrow = await sign(['web']);
    const url = `http://127.0.0.1:${door.port}`;
    for (const kind of ['http', 'modern http', 'rest'] as const) {
      const headers = { authorization: wide };
      const ask = await openAsk(kind, own, url, 'ann', headers);
      const find = async () => JSON.stringify(await ask('tools/call', { name: 's_find', arguments: {} }));
      expect(await find(), kind).not.toContain('There is no tool');
      headers.authorization = narrow;
      expect(await find(), kind).toContain('There is no tool');
      headers.authorization = wide;
      expect(await find(), kind).not.toContain('There is no tool');
    }
  });
});
