/** The toolsets, and who has them. */
import { toolsWithin } from '../access/toolset.ts';
import { tokensOf } from '../catalog/tokens.ts';
import { type ListedToolset, listToolsets, showToolset } from '../doors/commands/toolsets.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ToolsetDetail, ToolsetRow, ToolsetsReport } from './api-types.ts';

export async function toolsetRows(gateway: Gateway): Promise<ToolsetsReport> {
  const { toolsets, problems, missing } = await listToolsets(gateway, {});
  return {
    toolsets: toolsets.map((toolset) => toRow(gateway, toolset)),
    problems,
    equipped: gateway.equipped?.name ?? null,
    missing,
    canEquip: gateway.config.controls.includes('equip') || gateway.config.controls.includes('toolsets'),
  };
}

function toRow(
  gateway: Gateway,
  { name, description, tools, size, tokens, equipped, place }: ListedToolset,
): ToolsetRow {
  const having = gateway.clients().filter(({ chosen }) => chosen.toolset?.name === name);
  return {
    ...{ name, description, size, tokens, equipped, place },
    tools: tools.map(({ namespacedName }) => namespacedName),
    editable: place === 'project' || place === 'user',
    sessions: having.map(({ label, agent, own }) => ({
      id: label,
      agent,
      client: own.traits.title === 'unknown' ? (own.traits.sent?.name ?? null) : own.traits.title,
    })),
  };
}

export async function toolsetDetail(gateway: Gateway, name: string): Promise<ToolsetDetail> {
  const { toolset, tools } = await showToolset(gateway, { name });
  const listed = (await listToolsets(gateway, {})).toolsets.find((one) => one.name === toolset.name)!;
  const costs = new Map(toolsWithin(toolset, gateway.catalog).map((entry) => [entry.name, tokensOf(entry)]));
  return {
    ...toRow(gateway, listed),
    members: tools.map(({ namespacedName, exposed, description }) => ({
      name: namespacedName,
      exposed,
      description,
      tokens: (exposed === null ? undefined : costs.get(exposed)) ?? 0,
    })),
  };
}
