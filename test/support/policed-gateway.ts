/** A gateway with the servers of random policies, and every agent at every door of it. */
import { beforeAll } from 'vitest';
import { createDashboard } from '../../src/dashboard/dashboard.ts';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { type Ask, type Door, OPERATOR, openAsk } from './asking.ts';
import { atEnd } from './cleanup.ts';
import { openGateway } from './in-process-gateway.ts';
import { AGENTS, NAMES, type RandomPolicy, SERVERS } from './policies.ts';
import { startRedis } from './redis.ts';
import { serverEntry } from './server.ts';
import { tempFolder } from './temp.ts';

export interface PolicedGateway {
  /** From now on this policy holds. */
  apply(policy: RandomPolicy, more?: object): void;
  ask(door: Door, agent: string): Ask;
}

export interface PolicedOptions {
  readonly doors: readonly Door[];
  /** Further flags of a server. */
  readonly flags?: (server: string) => readonly string[];
  /** What the configuration has besides the policy. */
  readonly config?: object;
}

/** For all tests of a file. */
export function usePolicedGateway({ doors, flags = () => [], config = {} }: PolicedOptions): PolicedGateway {
  const cwd = tempFolder();
  const offers = (['tool', 'resource', 'template', 'prompt'] as const).flatMap((kind) => [
    `--${kind}s`,
    NAMES[kind].join(),
  ]);
  const mcpServers = Object.fromEntries(
    SERVERS.map((name) => [name, serverEntry('basic', '--name', name, ...offers, ...flags(name))]),
  );
  const env = { TOOLGATE_OPERATOR_KEY: OPERATOR, SECRETS_KEY: 'a key that all replicas have' };
  let store = {};
  const configOf = (policy: RandomPolicy, more = {}) =>
    configFromValue(
      { mcpServers, http: { trust_agent_header: true }, ...store, ...config, ...more, ...policy },
      { cwd, env },
    );
  const gateways: Gateway[] = [];
  const asks = new Map<string, Ask>();

  /** Opens a gateway and returns where it is. */
  async function open(): Promise<string> {
    const gateway = await openGateway(configOf({}), { env });
    atEnd(() => gateway.close());
    const dashboard = createDashboard(gateway, { trustServers: () => async () => {}, trustTokens: (act) => act() });
    const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null, dashboard });
    atEnd(() => http.close());
    await gateway.tried();
    const down = gateway.statuses().filter(({ state }) => state !== 'up');
    if (down.length > 0) throw new Error(`Not all servers are up: ${JSON.stringify(down)}`);
    gateways.push(gateway);
    return `http://127.0.0.1:${http.port}`;
  }

  beforeAll(async () => {
    const hasReplica = doors.includes('replica');
    if (hasReplica) store = { store: (await startRedis()).url };
    const origin = await open();
    const other = hasReplica ? await open() : origin;
    for (const door of doors)
      for (const agent of AGENTS) {
        const headers = { 'x-agent-id': agent };
        asks.set(`${door} ${agent}`, await openAsk(door, gateways[0]!, origin, agent, headers, other));
      }
  });

  return {
    apply: (policy, more) => {
      for (const gateway of gateways) gateway.apply(configOf(policy, more));
    },
    ask: (door, agent) => asks.get(`${door} ${agent}`)!,
  };
}
