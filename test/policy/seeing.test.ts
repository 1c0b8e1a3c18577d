/**
 * An agent learns nothing about items that it may not use: not from texts, errors, completions or notifications.
 * Policies also apply when they change at run time.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { configFromValue, type Gateway, type GatewayError, openHttpDoor, openLocalDoor } from '../../src/index.ts';
import { type Ask, DOORS, openAsk, type Reply, TOOLS_ONLY } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { clientOf } from '../support/client.ts';
import { connectHttp } from '../support/connection.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const mcpServers = {
  open: serverEntry(
    'basic',
    ...['--name', 'open', '--tools', 'read,write,echo', '--prompts', 'greet', '--resources', 'note://1'],
    ...['--templates', 'note://{id}', '--instructions', 'Read before you write.'],
  ),
  vault: serverEntry(
    'basic',
    ...['--name', 'vault', '--tools', 'canary_unlock,canary_count', '--prompts', 'canary_prompt'],
    ...['--resources', 'canary://1', '--templates', 'canary://{id}', '--instructions', 'The canary sings.'],
  ),
};
const POLICY = {
  agent_policies: {
    insider: { tool_overrides: { '*': ['*'] } },
    guest: { allowed_servers: ['open'], tool_overrides: { open: ['read', 'echo'] } },
  },
};

async function start(settings: object): Promise<{
  gateway: Gateway;
  /** The URL of the MCP endpoint. */
  url: string;
  ask(door: (typeof DOORS)[number], agent: string): Promise<Ask>;
  apply(settings: object): void;
}> {
  const cwd = tempFolder();
  const configOf = (more: object) =>
    configFromValue({ mcpServers, http: { trust_agent_header: true }, ...more }, { cwd, env: {} });
  const gateway = createGateway(configOf(settings));
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  await gateway.tried();
  return {
    gateway,
    url: door.url,
    ask: (kind, agent) => openAsk(kind, gateway, `http://127.0.0.1:${door.port}`, agent, { 'x-agent-id': agent }),
    apply: (more) => void gateway.apply(configOf(more)),
  };
}

interface Subscriber {
  /** The number of updates that it received. */
  heard(): number;
  /** Why it cannot subscribe to the resource once more, or to another one. */
  refusal(uri?: string): Promise<string>;
}

/** SDK clients of both eras that subscribe to a resource. A modern one is told only what is honoured. */
const SUBSCRIBERS: [string, (url: string, agent: string, uri: string) => Promise<Subscriber>][] = [
  [
    '2025-11-25',
    async (url, agent, uri) => {
      const { client, notifications } = await connectHttp(url, { 'x-agent-id': agent });
      await client.subscribeResource({ uri });
      return {
        heard: () => updatesIn(notifications),
        refusal: (other = uri) =>
          client.subscribeResource({ uri: other }).then(
            () => 'subscribed',
            ({ message }: Error) => message,
          ),
      };
    },
  ],
  [
    '2026-07-28',
    async (url, agent, uri) => {
      const { client, notifications } = await connectModernHttp(url, { 'x-agent-id': agent });
      await client.listen({ resourceSubscriptions: [uri] });
      return {
        heard: () => updatesIn(notifications),
        async refusal(other = uri) {
          const { honoredFilter } = await client.listen({ resourceSubscriptions: [other] });
          return JSON.stringify(honoredFilter);
        },
      };
    },
  ],
];

const updatesIn = (notifications: readonly { readonly method: string }[]) =>
  notifications.filter(({ method }) => method === 'notifications/resources/updated').length;

const textOf = (reply: Reply) => JSON.stringify(reply);
const call = (ask: Ask, name: string, args: object = {}) => ask('tools/call', { name, arguments: args });
const REMOTE = DOORS.filter((door) => !TOOLS_ONLY.includes(door));

describe.each(REMOTE)('hidden items at the door %s', (door) => {
  let guest: Ask;
  let insider: Ask;
  beforeAll(async () => {
    const { ask } = await start({
      controls: ['activate', 'equip'],
      active_toolsets: ['*_read', '*canary*'],
      ...POLICY,
    });
    guest = await ask(door, 'guest');
    insider = await ask(door, 'insider');
  });

  it('are not in the catalog of the activation tool, which has exactly what the agent may use', async () => {
    expect(textOf(await insider('tools/list'))).toContain('vault_canary_unlock');
    const text = textOf(await guest('tools/list'));
    expect(text).toContain('open_echo - Gives its arguments back');
    expect(text).not.toContain('open_write');
    expect(text).not.toContain('canary');
  });

  it('cannot be activated, put in a toolset or found by an alias', async () => {
    const lists = {
      tools_on: ['vault_canary_unlock', 'open_write'],
      tools_off: [],
      resources_on: ['vault_canary://1'],
      resources_off: [],
    };
    const refused = textOf(await call(guest, 'toolman_activate', lists));
    expect(refused).toContain('Unknown names: vault_canary_unlock in tools_on; open_write in tools_on');
    const built = textOf(
      await call(guest, 'build-toolset', { name: 'mine', tools: [{ namespacedName: 'vault.canary_unlock' }] }),
    );
    expect(built).toContain('Nothing was saved. Unknown tools');
    for (const name of ['vault:canary_unlock', 'vault.canary_unlock', 'canary_unlock', 'open:write', 'write']) {
      const text = textOf(await call(guest, name));
      expect(text).toContain('item_unknown');
      expect(text.replaceAll(name, '')).not.toContain('canary');
    }
  });

  it('are not matched by patterns', async () => {
    const lists = { tools_on: ['*'], tools_off: [], resources_on: ['*'], resources_off: [] };
    expect(textOf(await call(guest, 'toolman_activate', lists))).toMatch(
      /"Activated 3 items\. 1 item was already active\."/,
    );
  });

  it('are left out of the toolsets of other agents', async () => {
    const tools = [{ namespacedName: 'vault.canary_unlock' }, { namespacedName: 'open.read' }];
    const made = await call(insider, 'build-toolset', { name: `both-${door.replace(' ', '-')}`, tools });
    expect(textOf(made)).toContain('success');
    for (const [name, args] of [
      ['list-saved-toolsets', { detail: 'full' }],
      ['equip-toolset', { name: `both-${door.replace(' ', '-')}`, detail: 'full' }],
      ['get-active-toolset', { detail: 'full' }],
      ['discover-all-tools', {}],
      ['list-available-tools', {}],
      ['unequip-toolset', {}],
    ] as const) {
      const text = textOf(await call(guest, name, args));
      expect(text).not.toContain('canary');
      expect(text).not.toContain('vault');
      if (name !== 'unequip-toolset') expect(text).toContain('open.read');
    }
    expect(textOf(await call(insider, 'list-saved-toolsets', { detail: 'full' }))).toContain('vault.canary_unlock');
  });

  it('are not suggested in errors', async () => {
    expect(textOf(await call(guest, 'vault_canary_unloc'))).not.toContain('Did you mean');
    expect(textOf(await call(insider, 'vault_canary_unloc'))).toContain('vault_canary_unlock');
    expect(textOf(await guest('prompts/get', { name: 'vault_canary_promp' }))).not.toContain('Did you mean');
    expect(textOf(await guest('resources/read', { uri: 'vault_canary://2' }))).not.toContain('Did you mean');
  });

  it('have their completions refused like those of unknown items', async () => {
    const complete = (ref: object) => guest('completion/complete', { ref, argument: { name: 'topic', value: 'a' } });
    const hidden = await complete({ type: 'ref/prompt', name: 'vault_canary_prompt' });
    const absent = await complete({ type: 'ref/prompt', name: 'vault_nowhere_prompt' });
    expect(hidden.error?.message).toBe(absent.error?.message.replace('nowhere', 'canary'));
    expect(hidden.error?.code).toBe(absent.error?.code);
    const uri = await complete({ type: 'ref/resource', uri: 'vault_canary://{id}' });
    expect(textOf(uri)).toContain('resource_unknown');
  });
});

describe('a server that an agent may not use', () => {
  it('does not show its instructions to that agent', async () => {
    const { gateway } = await start(POLICY);
    const introduction = (agent: string) => gateway.join(clientOf(agent)).introduction();
    expect(introduction('insider')).toContain('The canary sings.');
    expect(introduction('guest')).toContain('Read before you write.');
    expect(introduction('guest')).not.toContain('canary');
    expect(introduction('guest')).not.toContain('vault');
  });
});

describe('a policy that changes at run time', () => {
  it('applies to connected agents, and notifies those whose lists changed', async () => {
    const { gateway, ask, apply } = await start(POLICY);
    const told: string[] = [];
    for (const agent of ['guest', 'insider'])
      gateway.join({ ...clientOf(agent), changed: (kind) => told.push(`${agent} ${kind}`) }).list('tool', 'legacy');
    const guest = await ask('http', 'guest');
    expect(textOf(await call(guest, 'open_echo'))).not.toContain('item_unknown');

    apply({
      agent_policies: {
        ...POLICY.agent_policies,
        guest: { allowed_servers: ['open'], tool_overrides: { open: ['read'] } },
      },
    });
    expect(told).toEqual(['guest tools']);
    expect(textOf(await call(guest, 'open_echo'))).toContain('item_unknown');

    apply({ agent_policies: { ...POLICY.agent_policies, guest: {} }, default_policy: { allow_unknown_tools: true } });
    expect(told.slice(1)).toEqual(['guest tools', 'guest resources', 'guest prompts']);
    expect(textOf(await call(guest, 'vault_canary_count'))).toContain('vault');
  });

  it('with a time condition applies at the minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-16T07:59:30Z') });
    atEnd(() => void vi.useRealTimers());
    const { ask, gateway } = await start({ conditions: [{ tools: ['open.*'], between: ['08:00', '18:00'] }] });
    const asks = await Promise.all(REMOTE.map((door) => ask(door, 'anyone')));
    const changed: string[] = [];
    const caller = gateway.join({ ...clientOf('anyone'), changed: (kind) => changed.push(kind) });
    caller.list('tool', 'legacy');
    const answers = () => Promise.all(asks.map(async (one) => textOf(await call(one, 'open_echo'))));
    for (const text of await answers()) expect(text).toContain('item_unknown');
    vi.setSystemTime(new Date('2026-11-16T08:00:00Z'));
    for (const text of await answers()) expect(text).not.toContain('item_unknown');
    expect(JSON.parse(caller.list('tool', 'legacy').toString()).tools).toHaveLength(5);
    vi.setSystemTime(new Date('2026-11-16T18:00:00Z'));
    for (const text of await answers()) expect(text).toContain('item_unknown');
    vi.useRealTimers();
  });

  it.each(SUBSCRIBERS)('suspends resource subscriptions that it hides, for a client of %s', async (_, subscribe) => {
    const [own, exposed] = ['changing://first', 'news_changing://first'];
    const policyFor = (...readers: string[]) => ({
      mcpServers: { news: serverEntry('changing') },
      agent_policies: Object.fromEntries(
        ['guest', 'insider'].map((agent) => [agent, { allowed_servers: readers.includes(agent) ? ['news'] : [] }]),
      ),
      default_policy: { allow_unknown_tools: true },
    });
    const { gateway, url, apply } = await start(policyFor('guest', 'insider'));
    const operator = openLocalDoor(gateway, 'all');
    /** Lets the server announce a change to its subscribers, and returns what it is subscribed to. */
    const touch = async () => {
      const result = JSON.parse(String(await operator.callTool('news_touch_resource', { uri: own })));
      return JSON.parse(result.content[0].text) as string[];
    };
    const guest = await subscribe(url, 'guest', exposed);
    const insider = await subscribe(url, 'insider', exposed);
    expect(await touch()).toEqual([own]);
    await waitFor(() => guest.heard() === 1 && insider.heard() === 1);

    apply(policyFor('insider'));
    expect(await touch()).toEqual([own]);
    await waitFor(() => insider.heard() === 2);
    expect(await guest.refusal()).toBe(
      (await guest.refusal('news_nowhere://1')).replace('nowhere://1', 'changing://first'),
    );

    // Nobody may see it, so the server is unsubscribed.
    apply(policyFor());
    expect(await touch()).toEqual([]);

    apply(policyFor('guest'));
    expect(await touch()).toEqual([own]);
    await waitFor(() => guest.heard() >= 2);
    // Notifications keep their order: the guest got none while the resource was hidden.
    expect([guest.heard(), insider.heard()]).toEqual([2, 2]);
  });

  it('refuses a subscription to a hidden resource in the same words as to an unknown one', async () => {
    const { gateway } = await start(POLICY);
    const caller = gateway.join(clientOf('guest'));
    const codeAndWords = (uri: string) =>
      caller.subscribe(uri).then(
        () => 'subscribed',
        (error: GatewayError) => `${error.code}: ${error.message}`,
      );
    const hidden = await codeAndWords('vault_canary://1');
    expect(hidden).toBe((await codeAndWords('vault_nowhere://1')).replace('nowhere', 'canary'));
    expect(hidden).toMatch(/^resource_unknown: /);
    // The server of this one does not announce changes.
    expect(await codeAndWords('open_note://1')).toMatch(/^method_unknown: /);
  });
});

describe('policy conditions on arguments', () => {
  const settings = { conditions: [{ tools: ['open.echo'], arguments: { path: '/srv/*' } }] };

  it.each(REMOTE)('are checked for every call at the door %s', async (door) => {
    const { ask } = await start(settings);
    const one = await ask(door, 'anyone');
    expect(textOf(await one('tools/list'))).toContain('open_echo');
    expect(textOf(await call(one, 'open_echo', { path: '/srv/a' }))).toContain('/srv/a');
    for (const args of [{}, { path: '/etc/passwd' }, { path: '/srv/../etc' }]) {
      for (const name of ['open_echo', 'open:echo', 'echo']) {
        const text = textOf(await call(one, name, args));
        expect(text).toContain('arguments_denied');
        expect(text).not.toContain('passwd');
      }
    }
  });
});
