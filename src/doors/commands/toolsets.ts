/** What `toolgate toolsets` shows and changes in a gateway. */
import { patternHint } from '../../access/pattern-hint.ts';
import { isMeant, refersTo, type ToolReference, toolsWithin } from '../../access/toolset.ts';
import { GatewayError, messageOf } from '../../base/errors.ts';
import { didYouMean } from '../../base/text.ts';
import { awayError, awayOwners, awayText, awayWith } from '../../catalog/away.ts';
import { canonicalName } from '../../catalog/entry.ts';
import { tokensOf, tokensOfAll } from '../../catalog/tokens.ts';
import { withoutTools } from '../../controls/edit-toolset.ts';
import { isOpen, referenceTo } from '../../controls/references.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { EquippedClients } from '../../gateway/root.ts';
import { meterTokens } from '../../observe/token-meter.ts';
import type { LibraryToolset } from '../../store/toolset-library.ts';
import { readToolset, type ToolsetPlace } from '../../store/toolsets.ts';

export interface ToolsetList {
  readonly toolsets: readonly ListedToolset[];
  /** Files that cannot be used: one sentence each. */
  readonly problems: readonly string[];
  /** The toolset that should be equipped and does not exist; null if there is none. */
  readonly missing: string | null;
}

export interface ListedToolset extends LibraryToolset {
  readonly equipped: boolean;
  /** How many tools it has now. */
  readonly size: number;
  /** How many tokens these cost a model: counted if that was asked for, else about so many. */
  readonly tokens: number;
}

export interface ToolsetsRequest {
  /** Whether tokens are counted; else they are an estimate. */
  readonly tokens?: boolean;
}

export async function listToolsets(gateway: Gateway, { tokens }: ToolsetsRequest): Promise<ToolsetList> {
  const { toolsets, problems } = await gateway.toolsets.list();
  const { equipped, catalog } = gateway;
  const costOf = tokens === true ? (await meterTokens(catalog.entries.tool.values())).ofAll : tokensOfAll;
  return {
    toolsets: toolsets.map((toolset) => {
      const tools = toolsWithin(toolset, catalog);
      return {
        ...toolset,
        equipped: toolset.name === equipped?.name,
        size: tools.length,
        tokens: costOf(tools),
      };
    }),
    problems,
    missing: equipped?.isMissing === true ? equipped.name : null,
  };
}

/** A toolset, and each tool that it means. */
export interface ShownToolset {
  readonly toolset: LibraryToolset;
  readonly tools: readonly ShownTool[];
}

export interface ShownTool {
  readonly namespacedName: string;
  /** Null if no server has it now. */
  readonly exposed: string | null;
  /** What it does, or why it is missing. */
  readonly description: string;
}

export async function showToolset(gateway: Gateway, { name }: { readonly name: string }): Promise<ShownToolset> {
  const toolset = await find(gateway, name);
  return { toolset, tools: toolset.tools.flatMap((reference) => resolveReference(reference, gateway)) };
}

function resolveReference(reference: ToolReference, gateway: Gateway): ShownTool[] {
  const meant = toolsOf(gateway).filter((entry) => refersTo(reference, entry));
  const { namespacedName } = reference;
  if (meant.length === 0) return [{ namespacedName, exposed: null, description: whyMissing(reference, gateway) }];
  return meant.map((entry) => ({
    namespacedName: canonicalName(entry),
    exposed: entry.name,
    description: entry.item.description,
  }));
}

/** The server of a tool that is missing, its state and the reason, as far as they are known. */
function whyMissing(reference: ToolReference, { catalog }: Gateway): string {
  const known = [...catalog.claims.tool.values()].filter((entry) => entry !== null && refersTo(reference, entry));
  const owners = awayOwners(catalog, known);
  const away = owners.length > 0 ? owners : awayWith(catalog, ['tool'], reference.namespacedName);
  return away.length > 0 ? awayText(away) : 'no server has it now';
}

/** A tool that can be put into a toolset. */
export interface ToolChoice {
  readonly name: string;
  readonly description: string;
  readonly tokens: number;
  /** Whether one of the names that were asked for means it. */
  readonly isChosen: boolean;
}

export function toolChoices(gateway: Gateway, { chosen }: { readonly chosen: readonly string[] }): ToolChoice[] {
  return toolsOf(gateway).map((entry) => ({
    name: canonicalName(entry),
    description: entry.item.description,
    tokens: tokensOf(entry),
    isChosen: chosen.some((one) => isMeant(one, entry)),
  }));
}

export interface SavedToolsetReport {
  readonly toolset: LibraryToolset;
  /** How many tools it has now. */
  readonly size: number;
}

export interface NewToolset {
  readonly name: string;
  readonly description: string;
  /** Names and patterns of tools. */
  readonly tools: readonly string[];
  readonly place: ToolsetPlace;
}

export async function createToolset(gateway: Gateway, request: NewToolset): Promise<SavedToolsetReport> {
  const { name, description, tools, place } = request;
  const toolset = { name, description, tools: resolve(gateway, tools), toolNotes: [] };
  return report(gateway, await gateway.toolsets.create(toolset, place));
}

export interface ToolsetImport {
  /** As hypertool-mcp saves it. */
  readonly toolset: unknown;
  readonly name: string;
  readonly place: ToolsetPlace;
}

export async function importToolset(gateway: Gateway, request: ToolsetImport): Promise<SavedToolsetReport> {
  const { description, tools, toolNotes } = readImported(request);
  return report(
    gateway,
    await gateway.toolsets.create({ name: request.name, description, tools, toolNotes }, request.place),
  );
}

function readImported({ toolset, name }: ToolsetImport) {
  try {
    return readToolset(toolset, name);
  } catch (error) {
    throw new GatewayError('usage', messageOf(error));
  }
}

export interface ToolsetEdit {
  readonly name: string;
  readonly description?: string;
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** All tools of the toolset from now on, in place of `add` and `remove`. */
  readonly tools?: readonly string[];
}

export async function editToolset(gateway: Gateway, edit: ToolsetEdit): Promise<SavedToolsetReport> {
  const { name, description, add, remove } = edit;
  const chosen = edit.tools === undefined ? null : resolve(gateway, edit.tools);
  const added = resolve(gateway, add);
  const saved = await gateway.toolsets.change(name, (toolset) => {
    if (chosen !== null) return { ...toolset, tools: chosen };
    const known = new Set(toolset.tools.map(({ namespacedName }) => namespacedName));
    const gone = remove.map((namespacedName) => ({ namespacedName }));
    const kept = withoutTools(toolset, gone, toolsOf(gateway));
    const fresh = added.filter(({ namespacedName }) => !known.has(namespacedName));
    return { ...toolset, description: description ?? toolset.description, tools: [...kept, ...fresh] };
  });
  return report(gateway, saved);
}

export async function renameToolset(
  gateway: Gateway,
  { name, to }: { readonly name: string; readonly to: string },
): Promise<SavedToolsetReport> {
  return report(gateway, await gateway.toolsets.change(name, (toolset) => ({ ...toolset, name: to })));
}

export async function deleteToolset(gateway: Gateway, { name }: { readonly name: string }): Promise<object> {
  await gateway.toolsets.remove(name);
  return {};
}

export interface EquipRequest {
  /** Null unequips. */
  readonly name: string | null;
  /** Whose toolset changes: the clients of an agent, one session, or all. Absent: those that have not chosen themselves. */
  readonly who?: EquippedClients;
}

/** How many connected clients have it now; null if it was equipped for those that have not chosen themselves. */
export async function equipToolset(gateway: Gateway, { name, who }: EquipRequest): Promise<{ clients: number | null }> {
  if (name !== null) await find(gateway, name);
  if (who !== undefined) return { clients: await gateway.equipClients(name, who) };
  await gateway.equip(name);
  return { clients: null };
}

async function find({ toolsets }: Gateway, name: string): Promise<LibraryToolset> {
  const toolset = await toolsets.find(name);
  if (toolset !== null) return toolset;
  const names = (await toolsets.list()).toolsets.map((one) => one.name);
  throw new GatewayError('usage', `There is no toolset "${name}".${didYouMean(name, names)}`);
}

const toolsOf = ({ catalog }: Gateway) => [...catalog.entries.tool.values()];

/** With those of servers that are not up, as they were last known. */
const knownToolsOf = ({ catalog }: Gateway) => [...catalog.claims.tool.values()].filter((entry) => entry !== null);

/** References for these names and patterns. Each has to mean at least one tool. A pattern stays one. */
function resolve(gateway: Gateway, names: readonly string[]): ToolReference[] {
  const entries = knownToolsOf(gateway);
  const unknown: string[] = [];
  const found = names.flatMap((name): ToolReference[] => {
    const meant = entries.filter((entry) => isMeant(name, entry));
    if (meant.length > 0) return isOpen(name) ? [{ namespacedName: name }] : meant.map(referenceTo);
    const away = awayWith(gateway.catalog, ['tool'], name);
    if (away.length > 0)
      throw awayError(away, `Nothing was saved: the tool "${name}" is not known now: ${awayText(away)}.`);
    unknown.push(`"${name}".${patternHint(name, gateway.statuses(), entries.map(canonicalName), '.')}`);
    return [];
  });
  if (unknown.length > 0)
    throw new GatewayError('usage', `Nothing was saved: there is no tool ${unknown.join(' And no tool ')}`);
  return [...new Map(found.map((one) => [one.namespacedName, one])).values()];
}

function report({ catalog }: Gateway, toolset: LibraryToolset): SavedToolsetReport {
  return { toolset, size: toolsWithin(toolset, catalog).length };
}
