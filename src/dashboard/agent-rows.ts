/** The agents that have tokens. A token is in one answer only: that of the request that made it. */
import { GatewayError } from '../base/errors.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { agentUnknown, openAgentStore } from '../store/agents.ts';
import type { ApiContext } from './api-context.ts';
import type { AgentsReport, NewAgentToken } from './api-types.ts';
import { byOf, type PageSession } from './page-sessions.ts';

export async function agentRows(gateway: Gateway): Promise<AgentsReport> {
  const { config } = gateway;
  const stored = (await openAgentStore(config.dataDir).read()) ?? [];
  const names = new Set([...config.agents, ...stored].map(({ name }) => name));
  const clients = gateway.clients();
  return {
    agents: [...names].sort().map((name) => {
      const configured = config.agents.find((agent) => agent.name === name);
      const kept = stored.find((agent) => agent.name === name);
      const tasks = configured?.tasks ?? kept?.tasks ?? null;
      return {
        name,
        description: configured?.description || kept?.description || '',
        from: [
          ...(configured === undefined ? [] : (['configuration'] as const)),
          ...(kept === undefined ? [] : (['agents'] as const)),
        ],
        tokens: [
          ...(configured?.tokens ?? []).map(() => ({ created: null, expires: null })),
          ...(kept?.tokens ?? []).map(({ created, expires }) => ({ created, expires })),
        ],
        admin: config.http.admins.includes(name),
        tasks: tasks === null ? null : tasks.map((task) => JSON.stringify(task)),
        sessions: clients.filter(({ agent }) => agent === name).length,
      };
    }),
  };
}

interface AgentInput {
  readonly name: string;
  readonly description?: string | undefined;
  readonly lifetime?: number | null | undefined;
}

export async function addAgent(
  context: ApiContext,
  session: PageSession,
  { name, description, lifetime }: AgentInput,
): Promise<NewAgentToken> {
  const { gateway } = context;
  const store = openAgentStore(gateway.config.dataDir);
  const made = await context.trustTokens(() => store.add(name, description ?? '', lifetime ?? null));
  await changed(gateway, session, 'agent_added', name);
  return made;
}

export async function rotateAgent(
  context: ApiContext,
  session: PageSession,
  name: string,
  { grace, lifetime }: { readonly grace?: number | undefined; readonly lifetime?: number | null | undefined },
): Promise<NewAgentToken> {
  const { gateway } = context;
  const store = openAgentStore(gateway.config.dataDir);
  const made = await context.trustTokens(() => store.rotate(name, grace ?? 0, lifetime ?? null));
  await changed(gateway, session, 'agent_rotated', name);
  return made;
}

export async function revokeAgent({ gateway }: ApiContext, session: PageSession, name: string): Promise<null> {
  const store = openAgentStore(gateway.config.dataDir);
  const wasStored = await store.revoke(name);
  const isConfigured = gateway.config.agents.some((agent) => agent.name === name && agent.tokens.length > 0);
  if (wasStored) await changed(gateway, session, 'agent_revoked', name);
  if (isConfigured)
    throw new GatewayError(
      'usage',
      `The agent "${name}" still has a token in the configuration. Remove it there; the gateway notices.`,
    );
  if (!wasStored) throw agentUnknown(name, (await store.read()) ?? []);
  return null;
}

/** A revoked token must not be good for another moment, so the answer waits. */
async function changed(gateway: Gateway, session: PageSession, act: string, detail: string): Promise<void> {
  gateway.events.emit('admin', { act, agent: '', detail, ...byOf(session) });
  await gateway.change({ tokens: true });
}
