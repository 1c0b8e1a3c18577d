/** Names and definitions of the tools with which a model builds and equips toolsets. */
import type { Toolset } from '../access/toolset.ts';
import { memo } from '../base/memo.ts';
import { isObject } from '../base/objects.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { toolsetCosts, toolsetLines, toolsetNames } from './toolset-lines.ts';

const NAME = {
  type: 'string',
  pattern: '^[a-z0-9-]+$',
  minLength: 2,
  maxLength: 50,
} as const;

const REFERENCE = {
  type: 'object',
  properties: {
    namespacedName: { type: 'string', description: 'The tool as "server.tool", such as "git.status".' },
    refId: { type: 'string', description: 'Its refId, of discover-all-tools with "detail": "full".' },
  },
  additionalProperties: false,
} as const;

const TOOLS = { type: 'array', minItems: 1, maxItems: 100, items: REFERENCE } as const;

const DETAIL = {
  type: 'string',
  enum: ['short', 'full'],
  description: 'full: with definitions and refIds. Default: short.',
} as const;

const nothing = { type: 'object', properties: {}, additionalProperties: false } as const;

const definitions = [
  {
    name: 'discover-all-tools',
    title: 'Discover all tools',
    description:
      'Lists the tools of every connected server, whether or not they are equipped. Use it to choose tools for build-toolset.',
    inputSchema: {
      type: 'object',
      properties: {
        server: { type: 'string', description: 'Only tools of this server, or of those that match a pattern.' },
        query: { type: 'string', description: 'Only tools with all of these words in their name or description.' },
        limit: { type: 'integer', minimum: 1, description: 'The most tools in the answer. Default: 100.' },
        offset: { type: 'integer', minimum: 0, description: 'How many tools to skip.' },
        detail: DETAIL,
      },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'build-toolset',
    title: 'Build a toolset',
    description: 'Saves a toolset: a named choice of tools from any servers. Equip it to use them.',
    inputSchema: {
      type: 'object',
      properties: {
        name: { ...NAME, description: 'Lower-case letters, digits and hyphens.' },
        description: { type: 'string', maxLength: 200, description: 'What the toolset is for.' },
        tools: {
          ...TOOLS,
          description: 'The tools, each by namespacedName or by refId. "git.*" means every tool of a server.',
        },
        autoEquip: { type: 'boolean', description: 'Equip it at once.' },
        detail: DETAIL,
      },
      required: ['name', 'tools'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  },
  {
    name: 'edit-toolset',
    title: 'Edit a toolset',
    description:
      'Adds tools to a saved toolset or removes some, or renames it. Everyone who has it equipped sees that.',
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'The toolset.' },
        add: { ...TOOLS, description: 'The tools to add.' },
        remove: { ...TOOLS, description: 'The tools or patterns to remove.' },
        newName: { ...NAME, description: 'Its new name.' },
        description: { type: 'string', maxLength: 200, description: 'What the toolset is for.' },
        detail: DETAIL,
      },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  },
  {
    name: 'list-saved-toolsets',
    title: 'List toolsets',
    description:
      'Lists all toolsets: saved ones, those of the configuration, and implicit ones: each server is one, and "all" has every tool.',
    inputSchema: {
      type: 'object',
      properties: { name: { type: 'string', description: 'Only this one, with its tools.' }, detail: DETAIL },
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'equip-toolset',
    title: 'Equip a toolset',
    description: 'Makes the tools of a toolset usable, instead of those of the toolset that was equipped before.',
    inputSchema: {
      type: 'object',
      properties: { name: { type: 'string', description: 'The toolset.' }, detail: DETAIL },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'unequip-toolset',
    title: 'Unequip the toolset',
    description: 'Takes the tools of the equipped toolset away again.',
    inputSchema: nothing,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'get-active-toolset',
    title: 'Get the active toolset',
    description: 'Says which toolset is equipped, which of its tools can be used, and which servers are missing.',
    inputSchema: { type: 'object', properties: { detail: DETAIL }, additionalProperties: false },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'delete-toolset',
    title: 'Delete a toolset',
    description: 'Deletes a saved toolset for good.',
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'The toolset.' },
        confirm: { type: 'boolean', description: 'Must be true.' },
      },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'add-tool-annotation',
    title: 'Annotate a tool',
    description: 'Adds notes to a tool of the equipped toolset. They are shown with its description from then on.',
    inputSchema: {
      type: 'object',
      properties: {
        toolRef: { ...REFERENCE, description: 'The tool, by namespacedName or by refId.' },
        notes: {
          type: 'array',
          minItems: 1,
          maxItems: 20,
          items: {
            type: 'object',
            properties: { name: NAME, note: { type: 'string', minLength: 1, maxLength: 500 } },
            required: ['name', 'note'],
            additionalProperties: false,
          },
        },
      },
      required: ['toolRef', 'notes'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
] as const;

export type EquipTool = (typeof definitions)[number]['name'];

const ENTRIES: readonly Entry[] = definitions.map(builtInEntry);

export const EQUIP_NAMES: readonly string[] = ENTRIES.map(({ name }) => name);

export const EQUIP: EquipTool = 'equip-toolset';

/** The most characters of its description. */
const DESCRIPTION_ROOM = 2_000;

/** The tools for a caller with this catalog. `equip-toolset` names the toolsets, so that a model can equip one at once. */
export const equipEntries = memo((catalog: Catalog) =>
  memo((made: readonly Toolset[]): readonly Entry[] =>
    definitions.map((definition, i) =>
      definition.name === EQUIP ? builtInEntry(withToolsets(definition, catalog, made)) : ENTRIES[i]!,
    ),
  ),
);

function withToolsets<Definition extends { readonly name: string; readonly description: string }>(
  definition: Definition,
  catalog: Catalog,
  made: readonly Toolset[],
): Definition {
  const costs = toolsetCosts(catalog)(made);
  if (costs.length === 0) return definition;
  const start = `${definition.description} Each server is a toolset too. The toolsets, and about what each costs:\n`;
  return { ...definition, description: start + toolsetLines(costs, DESCRIPTION_ROOM - start.length) };
}

/** The most characters of the names in the instructions. Those of servers follow, and clients cut all of them. */
const INSTRUCTIONS_ROOM = 1_000;

/** What a model should know before it looks at the tools. */
export function equipInstructions(catalog: Catalog, made: readonly Toolset[]): string {
  const costs = toolsetCosts(catalog)(made);
  if (costs.length === 0) return '';
  const names = toolsetNames(costs, INSTRUCTIONS_ROOM);
  return `Tools can be used once their toolset is equipped: call ${EQUIP} with one of these names. In brackets is the number of tools. ${names}`;
}

/** Alternative names that other programs use. Calls to them are answered, but they are not listed. */
export const EQUIP_ALIASES: Readonly<Record<string, EquipTool>> = { 'list-available-tools': 'discover-all-tools' };

/** Arguments for a call by this name. Programs that use an alternative name expect the long answer that it has there. */
export function equipArguments(name: unknown, given: unknown): unknown {
  if (typeof name !== 'string' || !Object.hasOwn(EQUIP_ALIASES, name)) return given;
  return given === undefined || isObject(given) ? { detail: 'full', ...given } : given;
}

export function aliasedEquipTool(name: string): Entry | undefined {
  return ENTRIES.find((entry) => entry.name === EQUIP_ALIASES[name]);
}
