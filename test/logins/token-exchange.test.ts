/** The JWT that an agent comes in with is exchanged at the identity provider for a token for the server (RFC 8693). */
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, SECRET, startProvider } from '../support/authorization-server.ts';
import { filesIn } from '../support/canary.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';

let provider: AuthorizationServer;
let guarded: GuardedServer;
let gateway: HttpGateway;

beforeAll(async () => {
  provider = await startProvider();
  guarded = await startGuarded(provider.issuer);
  const config = `controls = []
[http.jwt]
issuer = "${provider.issuer}"
audience = "https://tools.example.com/mcp"
agent_claim = "client_id"
agents = { "*" = "team" }
[servers.remote]
url = "${guarded.url}"
credentials = "agent"
[servers.remote.oauth]
grant = "token_exchange"
idp = { issuer = "${provider.issuer}", client_id = "gateway", client_secret = "${SECRET}" }
`;
  const token = { BEARER_TOKEN: 'a token without a person' };
  gateway = await startHttp({ config, env: token, args: ['--log-level', 'debug'] });
});

const tokens = new Map<string, Promise<string>>();
const tokenOf = (who: string) => {
  if (!tokens.has(who)) tokens.set(who, provider.tokenFor(who, 'https://tools.example.com/mcp', 'tools:use'));
  return tokens.get(who)!;
};
const as = async (who: string) => {
  const { client } = await gateway.connect({ headers: { authorization: `Bearer ${await tokenOf(who)}` } });
  await waitFor(async () => (await client.listTools()).tools.length === 3);
  return async (name: string) => {
    const { content } = await client.callTool({ name: `remote_${name}`, arguments: {} });
    return (content as { text: string }[])[0]!.text;
  };
};

describe('an agent with a JWT', () => {
  it('calls the server as itself, with one exchange for many calls and clients at once', async () => {
    const [first, second] = await Promise.all([as('robot-7'), as('robot-7')]);
    expect(provider.exchanges).toBe(0);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? first : second)('whoami')));
    expect(new Set(answers)).toEqual(new Set(['done']));
    expect(new Set(guarded.callers)).toEqual(new Set(['robot-7']));
    expect(provider.exchanges).toBe(1);
  });

  it('gets another token when the first is over, once for all calls', async () => {
    const call = await as('robot-7');
    guarded.expireAll();
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('whoami')));
    expect(new Set(answers)).toEqual(new Set(['done']));
    expect(provider.exchanges).toBe(2);
    expect(await call('more')).toBe('done');
    expect(provider.exchanges).toBe(3);
  });

  it('never calls as another person of the same agent, and is told what the provider says', async () => {
    guarded.callers.length = 0;
    const call = await as('stranger');
    expect(await call('whoami')).toContain('invalid_target (stranger may not use this server)');
    expect(guarded.callers).toEqual([]);
  });

  it('shows neither token to the model, in the log or in a file', async () => {
    const call = await as('robot-7');
    expect(await call('token')).toBe('you sent Bearer [redacted]');
    const written = [...filesIn(gateway.cwd), ['the log', gateway.stderr()] as const];
    for (const [name, text] of written) expect(text, name).not.toMatch(/eyJ[\w-]{20,}\./);
  });
});

it('an agent without a JWT is told that it needs one', async () => {
  const { client } = await gateway.connect({ headers: { authorization: 'Bearer a token without a person' } });
  const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
  expect((content as { text: string }[])[0]!.text).toContain('Connect with a token of the identity provider.');
});
