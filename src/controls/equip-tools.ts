/** Names and definitions of the tools with which a model builds and equips toolsets. */
import { builtInEntry, type Entry } from '../catalog/entry.ts';

const NAME = {
  type: 'string',
  pattern: '^[a-z0-9-]+$',
  minLength: 2,
  maxLength: 50,
} as const;

const REFERENCE = {
  type: 'object',
  properties: {
    namespacedName: { type: 'string', description: 'The tool as "server.tool", for example "git.status".' },
    refId: { type: 'string', description: 'The tool by the refId that discover-all-tools gives.' },
  },
  additionalProperties: false,
} as const;

const nothing = { type: 'object', properties: {}, additionalProperties: false } as const;

const definitions = [
  {
    name: 'discover-all-tools',
    title: 'Discover all tools',
    description:
      'Lists every tool of every connected server, whether or not it is equipped, with what each costs in tokens. Use it to choose tools for build-toolset.',
    inputSchema: nothing,
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
          type: 'array',
          minItems: 1,
          maxItems: 100,
          items: REFERENCE,
          description: 'The tools, each by namespacedName or by refId.',
        },
        autoEquip: { type: 'boolean', description: 'Equip it at once.' },
      },
      required: ['name', 'tools'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  },
  {
    name: 'list-saved-toolsets',
    title: 'List toolsets',
    description: 'Lists all toolsets.',
    inputSchema: nothing,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'equip-toolset',
    title: 'Equip a toolset',
    description: 'Makes the tools of a toolset usable, instead of those of the toolset that was equipped before.',
    inputSchema: {
      type: 'object',
      properties: { name: { type: 'string', description: 'The toolset.' } },
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
    inputSchema: nothing,
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

export const EQUIP_ENTRIES: readonly Entry[] = definitions.map(builtInEntry);

export const EQUIP_NAMES: readonly string[] = EQUIP_ENTRIES.map(({ name }) => name);

/** Alternative names that other programs use. Calls to them are answered, but they are not listed. */
export const EQUIP_ALIASES: Readonly<Record<string, EquipTool>> = { 'list-available-tools': 'discover-all-tools' };
