/** Many agents with different policies at one gateway. Half of their requests are forbidden, and a server hangs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childEnv, startChild } from './child.ts';
import { type HttpGateway, startHttp } from './gateway.ts';
import { type Line, type Message, openLine } from './lean-client.ts';
import { enveloped, mirrored } from './modern.ts';
import { waitFor } from './processes.ts';
import type { Random } from './random.ts';
import { server, serversToml } from './server.ts';
import { tempFolder } from './temp.ts';

export interface PolicyReport {
  readonly calls: number;
  readonly denials: number;
  /** A description of each wrong answer. */
  readonly leaks: readonly string[];
  /** In milliseconds, before and while the server hangs. */
  readonly p99: { readonly before: number; readonly during: number };
  readonly p50: { readonly before: number; readonly during: number };
  /** Calls to the server that hangs, and how many of them were refused at once. */
  readonly hanging: { readonly asked: number; readonly refused: number };
  /** The lines of the audit about these calls and denials, and the expected number. */
  readonly audited: { readonly found: number; readonly due: number };
}

export interface PolicyPlan {
  readonly agents: number;
  readonly hanging: number;
  /** How often the server hangs, and the milliseconds of each phase with and without that. */
  readonly rounds: number;
  readonly phase: number;
  /** Milliseconds between two requests of one agent. */
  readonly pace: number;
}

const SERVERS = ['alpha', 'beta', 'gamma', 'delta'];
const TOOLS = Array.from({ length: 12 }, (_, i) => `tool${i}`);
const ALL = SERVERS.flatMap((server) => TOOLS.map((tool) => ({ server, tool, name: `${server}_${tool}` })));
type Tool = (typeof ALL)[number];

interface Agent {
  readonly name: string;
  readonly token: string;
  readonly allowed: readonly Tool[];
  readonly forbidden: readonly Tool[];
}

function makeAgents(count: number, random: Random): Agent[] {
  return Array.from({ length: count }, (_, i) => {
    const share = 1 + random.number(ALL.length - 2);
    const mixed = random.shuffle(ALL);
    return {
      name: `agent-${i}`,
      token: `soak-token-of-agent-${i}-${random.number(1e9)}`,
      allowed: mixed.slice(0, share),
      forbidden: mixed.slice(share),
    };
  });
}

function print(agents: readonly Agent[]): string {
  const commands = Object.fromEntries(
    SERVERS.map((name) => [name, server('basic', '--name', name, '--tools', TOOLS.join())]),
  );
  const policies = agents.map(({ name, allowed }) => {
    const servers = [...new Set(allowed.map((tool) => tool.server))];
    const overrides = servers.map((one) => {
      const tools = allowed.filter((tool) => tool.server === one).map(({ tool }) => tool);
      return `${one} = ${JSON.stringify(tools)}`;
    });
    return `[agent_policies.${name}]\nallowed_servers = ${JSON.stringify(servers)}\ntool_overrides = { ${overrides.join(', ')} }`;
  });
  const tokens = [...agents, HANGER].map(({ name, token }) => `[agents.${name}]\ntoken = "${token}"`);
  return [
    'controls = []',
    serversToml({ ...commands, stuck: server('hang') }),
    ...policies,
    '[agent_policies.hanger]\nallowed_servers = ["stuck"]\ntool_overrides = { stuck = ["*"] }',
    ...tokens,
  ].join('\n');
}

const HANGER = { name: 'hanger', token: 'soak-token-of-the-hanger' };

interface Client {
  ask(method: string, params: object): Promise<Message>;
  close(): void;
}

async function openClient(origin: string, token: string, modern: boolean): Promise<Client> {
  const line = openLine(origin);
  const authorization = { authorization: `Bearer ${token}` };
  const session = modern ? {} : await openSession(line, authorization);
  let id = 0;
  return {
    ask(method, params) {
      const text = JSON.stringify(params);
      const body = { jsonrpc: '2.0', id: ++id, method, params: modern ? JSON.parse(enveloped(text)) : params };
      const headers = { ...authorization, ...session, ...(modern ? mirrored(method, text) : {}) };
      return new Promise((resolve) => {
        let answer: Message = {};
        const heard = (message: Message) => {
          answer = message;
        };
        line.send('POST', '/mcp', headers, body, heard, () => resolve(answer));
      });
    },
    close: () => line.close(),
  };
}

async function openSession(line: Line, authorization: Record<string, string>): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'soak', version: '1' } };
  const send = (headers: Record<string, string>, body: object) =>
    new Promise<Record<string, unknown>>((resolve) =>
      line.send(
        'POST',
        '/mcp',
        headers,
        body,
        () => {},
        (_, received) => resolve(received),
      ),
    );
  const opened = await send(authorization, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const session = { 'mcp-session-id': String(opened['mcp-session-id']) };
  await send({ ...authorization, ...session }, { jsonrpc: '2.0', method: 'notifications/initialized' });
  return session;
}

export async function holdPolicies(plan: PolicyPlan, random: Random): Promise<PolicyReport> {
  const agents = makeAgents(plan.agents, random);
  const gateway = await startHttp({ config: print(agents) });
  const clients = await Promise.all(
    agents.map(async (agent, i) => ({ agent, client: await openClient(gateway.origin, agent.token, i % 2 === 0) })),
  );
  const leaks: string[] = [];
  const counts = { calls: 0, denials: 0 };

  async function act({ agent, client }: (typeof clients)[number], times: number[]): Promise<void> {
    if (random.chance(0.02)) {
      const { result } = await client.ask('tools/list', {});
      const names = (result?.tools as { name: string }[] | undefined)?.map(({ name }) => name).sort();
      const due = agent.allowed.map(({ name }) => name).sort();
      if (JSON.stringify(names) !== JSON.stringify(due))
        leaks.push(`${agent.name} is shown ${names} instead of ${due}`);
      return;
    }
    const isForbidden = random.chance(0.5);
    const { server, tool, name } = random.pick(isForbidden ? agent.forbidden : agent.allowed);
    const nonce = `${agent.name}-${random.number(1e9)}`;
    const said = random.chance(0.2) ? `${server}:${tool}` : name;
    const start = performance.now();
    const answer = await client.ask('tools/call', { name: said, arguments: { nonce } });
    times.push(performance.now() - start);
    const text = JSON.stringify(answer);
    if (isForbidden) {
      counts.denials++;
      const isRefused = text.includes('item_unknown') && !text.includes(nonce);
      const names: string[] = text.match(/[a-z]+_tool\d+/g) ?? [];
      const told = agent.forbidden.filter((one) => one.name !== name && names.includes(one.name));
      if (!isRefused || told.length > 0) leaks.push(`${agent.name} got for ${said}: ${text}`);
    } else {
      counts.calls++;
      const due = JSON.stringify(JSON.stringify({ server, tool, arguments: { nonce } }));
      if (!text.includes(due)) leaks.push(`${agent.name} got for ${said} (${nonce}): ${text}`);
    }
  }

  async function phase(): Promise<number[]> {
    const times: number[] = [];
    const end = Date.now() + plan.phase;
    await Promise.all(
      clients.map(async (one, i) => {
        await sleep((plan.pace * i) / clients.length);
        while (Date.now() < end) {
          const next = sleep(plan.pace);
          await act(one, times);
          await next;
        }
      }),
    );
    return times.sort((a, b) => a - b);
  }

  await phase();
  const calm: number[][] = [];
  const hung: number[][] = [];
  let refused = 0;
  // Alternates, so that other load on the machine affects both phases alike.
  for (let round = 0; round < plan.rounds; round++) {
    calm.push(await phase());
    const stuck = await hang(gateway, plan.hanging);
    // Waits until the burst of calls is over: only the hanging server is measured.
    await phase();
    hung.push(await phase());
    refused += stuck.refused();
    await stuck.end();
    await phase();
  }
  for (const { client } of clients) client.close();
  const due = counts.calls + counts.denials;
  const quantile = (share: number) => (times: number[]) => times[Math.floor(times.length * share)] ?? 0;
  const middle = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;
  const compare = (share: number) => ({
    before: middle(calm.map(quantile(share))),
    during: middle(hung.map(quantile(share))),
  });
  return {
    ...counts,
    leaks,
    p99: compare(0.99),
    p50: compare(0.5),
    hanging: { asked: plan.hanging * plan.rounds, refused },
    audited: { found: await countAudited(gateway, due), due },
  };
}

/** Starts many calls at once that are never answered. */
async function hang({ origin }: HttpGateway, count: number) {
  const params = JSON.stringify({ name: 'stuck_hang', arguments: {} });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: JSON.parse(enveloped(params)) });
  const { host, port } = new URL(origin);
  const headers = {
    host,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${HANGER.token}`,
    ...mirrored('tools/call', params),
    'content-length': Buffer.byteLength(body),
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = Buffer.from(`POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${body}`).toString('base64');
  const child = startChild(process.execPath, [HANGING, port, String(count), request], {
    cwd: tempFolder(),
    env: childEnv(),
    ending: 'stdin',
  });
  await waitFor(() => child.stdout().includes('sent'));
  return {
    refused: () => child.stdout().split('answered').length - 1,
    end: () => child.stop(),
  };
}

const HANGING = fileURLToPath(new URL('hanging.mjs', import.meta.url));

/** Waits until the audit is complete, or no more lines arrive. */
async function countAudited({ cwd }: HttpGateway, due: number): Promise<number> {
  const folder = join(cwd, '.toolgate', 'logs');
  const count = () =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.jsonl'))
      .flatMap((file) => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n'))
      .map((line) => JSON.parse(line) as { kind: string; agent: string; method?: string })
      .filter(({ kind, agent, method }) => kind !== 'admin' && agent !== HANGER.name && method === 'tools/call').length;
  await waitFor(() => count() >= due, 5_000).catch(() => {});
  return count();
}
