/** Random edits and reloads under load: no call to a remaining server fails, and no server restarts needlessly. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { type HttpGateway, startHttp } from './gateway.ts';
import { waitFor } from './processes.ts';
import type { Random } from './random.ts';
import { call, logOf, replaceFile, type ServerEntry, toml } from './running-gateway.ts';
import { server } from './server.ts';

export interface ReloadReport {
  readonly reloads: number;
  readonly refused: number;
  readonly calls: number;
  readonly failures: readonly string[];
  readonly restarts: readonly string[];
}

interface Server {
  /** As long as this is the same, the process must be the same. */
  launch: string;
  namespace: string;
  description: string;
}

const fixed = ['stays', 'remains', 'changes'];
const invalid = [
  'servers = [',
  '[[servers]]\nnamspace = "x"\ncommand = "y"\n',
  'start_wait = "soon"\n',
  '[[servers]]\nnamespace = "x"\n',
  '\u0000',
];

export async function reloadUnderLoad(reloads: number, random: Random): Promise<ReloadReport> {
  let serial = 0;
  const fresh = (namespace: string): Server => ({ launch: `launch-${++serial}`, namespace, description: '' });
  let servers = fixed.map(fresh);
  const gateway = await startHttp({ config: print(servers, 0), args: ['--log-level', 'info'] });
  const clients = await Promise.all([gateway.connect(), gateway.connect()]);
  const { client } = clients[0]!;
  const pids = new Map<string, number>();
  const restarts: string[] = [];

  /** Asks every server for its process. Waits for servers that are starting. */
  const look = async () => {
    for (const { namespace, launch } of servers) {
      const { pid, argv } = await waitFor(() => whoAmI(client, namespace, launch), 10_000);
      const before = pids.get(launch);
      if (before !== undefined && before !== pid)
        restarts.push(`${namespace} (${argv.join(' ')}): ${before} to ${pid}`);
      pids.set(launch, pid);
    }
  };
  await look();
  const load = startLoad(clients.map((one) => one.client));
  let refused = 0;
  try {
    await edits();
  } catch (error) {
    await load.stop();
    throw error;
  }
  return { reloads, refused, restarts, ...(await load.stop()) };

  async function edits(): Promise<void> {
    for (let round = 1; round <= reloads; round++) {
      const wrong = random.chance(0.2);
      if (wrong) refused++;
      else servers = edit(servers, random, fresh);
      replaceFile(gateway.cwd, wrong ? `# ${round}\n${random.pick(invalid)}` : print(servers, round));
      await waitFor(() => outcomes(gateway).length === round);
      if ((outcomes(gateway)[round - 1] === 'refused') !== wrong) throw new Error(`reload ${round} went the wrong way`);
      // Sometimes the next edit comes before the servers of this one are up.
      if (random.chance(0.7)) await look();
    }
    await look();
  }
}

function edit(before: readonly Server[], random: Random, fresh: (namespace: string) => Server): Server[] {
  const servers = before.map((one) => ({ ...one }));
  const extra = servers.filter(({ namespace }) => !fixed.includes(namespace));
  const name = () => `x${random.number(1_000_000)}`;
  switch (random.pick(['add', 'add', 'remove', 'rename', 'swap', 'change', 'settings', 'reorder'])) {
    case 'add':
      return extra.length > 3 ? servers.filter((one) => one !== extra[0]) : [...servers, fresh(name())];
    case 'remove':
      return servers.filter((one) => one !== extra[0]);
    case 'rename':
      for (const one of extra) one.namespace = name();
      return servers;
    case 'swap': {
      const [first, second] = extra;
      if (first && second) [first.namespace, second.namespace] = [second.namespace, first.namespace];
      return servers;
    }
    case 'change':
      return servers.map((one) => (one.namespace === 'changes' ? fresh('changes') : one));
    case 'settings':
      for (const one of servers) one.description = name();
      return servers;
    default:
      return random.shuffle(servers);
  }
}

function print(servers: readonly Server[], round: number): string {
  const entries = servers.map(
    ({ launch, namespace, description }): ServerEntry => ({
      namespace,
      description,
      command: server('basic', '--tools', 'echo,whoami', '--name', launch),
    }),
  );
  return `# ${round}\n${toml(entries)}`;
}

/** Whether each reload so far was applied or refused. */
function outcomes(gateway: HttpGateway): string[] {
  const lines = logOf(gateway).filter(({ message }) => message.startsWith('configuration: '));
  return lines.map(({ message }) => (message.includes('refused') ? 'refused' : 'applied'));
}

async function whoAmI(client: Client, namespace: string, launch: string) {
  const { text, isError } = await call(client, `${namespace}_whoami`);
  if (isError) return null;
  const me = JSON.parse(text) as { name: string; pid: number; argv: string[] };
  return me.name === launch ? me : null;
}

/** Calls the servers that stay configured, again and again. */
function startLoad(clients: readonly Client[]) {
  let stopped = false;
  let calls = 0;
  const failures: string[] = [];
  const loop = async (client: Client, namespace: string) => {
    for (let n = 0; !stopped; n++) {
      calls++;
      const { text, isError } = await call(client, `${namespace}_echo`, { n }).catch((error: Error) => ({
        text: error.message,
        isError: true,
      }));
      if (!isError && text === `{"n":${n}}`) continue;
      failures.push(`${namespace}: ${text}`);
      // If the gateway is gone, calls fail at once, and a loop without a pause would block everything else.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const loops = Promise.all(clients.flatMap((client) => fixed.map((namespace) => loop(client, namespace))));
  return {
    async stop() {
      stopped = true;
      await loops;
      return { calls, failures };
    },
  };
}
