/** Each agent acts with its own login at a server, and none with that of another. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, startProvider } from '../support/authorization-server.ts';
import { runCli } from '../support/cli.ts';
import type { HttpConnection } from '../support/connection.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { KEY, logIn } from './login.ts';

let provider: AuthorizationServer;
let guarded: GuardedServer;
let gateway: HttpGateway;

beforeAll(async () => {
  provider = await startProvider();
  guarded = await startGuarded(provider.issuer);
  const config = `controls = []
[http]
trust_agent_header = true
[servers.remote]
url = "${guarded.url}"
credentials = "agent"
`;
  gateway = await startHttp({ config, env: KEY });
  expect((await logIn(gateway.cwd, 'operator')).code).toBe(0);
});

const as = (agent: string) => gateway.connect({ headers: { 'x-agent-id': agent } });
const call = async ({ client }: HttpConnection) => {
  const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
  return (content as { text: string }[])[0]!.text;
};

describe('agents with logins of their own', () => {
  it('see the same list, and are told how to log in', async () => {
    const ada = await as('ada');
    await waitFor(async () => (await ada.client.listTools()).tools.length === 3);
    expect(await call(ada)).toContain('waits for a login: toolgate login remote --agent ada');
    expect(guarded.callers).toEqual([]);
  });

  it('each call the server as the person who logged in for them', async () => {
    for (const [agent, user] of [
      ['ada', 'ada@example.com'],
      ['bob', 'bob@example.com'],
    ] as const) {
      const { code, text } = await logIn(gateway.cwd, user, ['remote', '--agent', agent]);
      expect(code, text).toBe(0);
    }
    const [ada, bob, eve] = await Promise.all(['ada', 'bob', 'eve'].map(as));
    await waitFor(async () => (await call(ada!)) === 'done');
    await waitFor(async () => (await call(bob!)) === 'done');
    guarded.callers.length = 0;
    await Promise.all(Array.from({ length: 10 }, (_, i) => call(i % 2 === 0 ? ada! : bob!)));
    expect(guarded.callers.filter((one) => one === 'ada@example.com')).toHaveLength(5);
    expect(guarded.callers.filter((one) => one === 'bob@example.com')).toHaveLength(5);
    expect(await call(eve!)).toContain('toolgate login remote --agent eve');
    expect(guarded.callers).toHaveLength(10);
  });

  it('are shown with whom they are logged in as', async () => {
    const { stdout } = await runCli(['list', 'servers', '--json'], { cwd: gateway.cwd, env: KEY });
    expect(JSON.parse(stdout)[0]).toMatchObject({
      login: { who: 'operator' },
      agentLogins: [
        { agent: 'ada', who: 'ada@example.com', renews: true },
        { agent: 'bob', who: 'bob@example.com', renews: true },
      ],
    });
    expect((await runCli(['doctor'], { cwd: gateway.cwd, env: KEY })).stdout).toContain(
      'logged in as operator, renewed by itself; agents: ada as ada@example.com, bob as bob@example.com',
    );
  });

  it('lose only their own login with toolgate logout', async () => {
    const [ada, bob] = await Promise.all(['ada', 'bob'].map(as));
    const { stdout } = await runCli(['logout', 'remote', '--agent', 'ada'], { cwd: gateway.cwd, env: KEY });
    expect(stdout).toContain('Logged out of remote');
    await waitFor(async () => (await call(ada!)).includes('toolgate login remote --agent ada'));
    expect(await call(bob!)).toBe('done');
  });
});
