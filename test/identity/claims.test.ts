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

it('bind a token to tasks, and a token without one is refused', async () => {
  const issuer = await startIssuer();
  await issuer.rotate();
  const task_profiles = { default: { tools: {} }, finding: { types: ['finding'], tools: { s: ['find'] } } };
  const http = { jwt: { issuer: issuer.issuer, audience: 'me', task_claim: 'work' } };
  const own = createGateway(configOf({ http, task_rule_files: [], task_profiles }));
  atEnd(() => own.close());
  const door = await openHttpDoor(own, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  await own.tried();
  const list = async (work: unknown, task?: string) => {
    const authorization = `Bearer ${await issuer.sign({ sub: 'ann', aud: 'me', work })}`;
    const headers = { authorization, ...(task !== undefined && { 'x-task': task }) };
    const reply = await fetch(`http://127.0.0.1:${door.port}/tools`, { headers });
    const body = (await reply.json()) as { name: string }[] | { tools: { name: string }[] };
    if (!reply.ok) return reply.status;
    return (Array.isArray(body) ? body : body.tools).map(({ name }) => name);
  };
  expect(await list({ type: 'finding' })).toEqual(['s_find']);
  expect(await list(['read a book', { type: 'finding' }])).toEqual([]);
  expect(await list(['read a book', { type: 'finding' }], 'finding')).toEqual(['s_find']);
  expect(await list('read a book', '{"type":"finding"}')).toBe(403);
  for (const work of [undefined, null, 7, [], '', { kind: 'x' }, [{ type: 7 }]])
    expect(await list(work), JSON.stringify(work)).toBe(403);
});
