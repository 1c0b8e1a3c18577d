/** What callers see at the start, what they may change of it, and the toolsets of the configuration. */
import * as z from 'zod';
import type { ResolveContext } from './context.ts';
import { choice, type Section, section, text, toolList } from './fields.ts';

/** `auto` stands for no control if there are only a few tools, for `activate` if there are more, and for `search` if there are many. */
export type Control = 'activate' | 'equip' | 'toolsets' | 'search' | 'auto' | 'request' | 'prompt';

/** Which clients are offered `toolman_call`. */
export type CallThrough = 'auto' | 'always' | 'never';

/** A toolset in the configuration. */
export interface ToolsetConfig {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly { readonly namespacedName: string }[];
  readonly toolNotes: readonly never[];
}

const toolsetSchema = section(
  {
    description: text().prefault('').describe('What the toolset is for.'),
    tools: toolList().describe(
      'Its tools: `server.tool`, exposed names, patterns over either, or categories such as `category:read`.',
    ),
  },
  { id: 'Toolset', description: 'A named choice of tools.' },
);

const CONTROLS = ['activate', 'equip', 'toolsets', 'search', 'auto', 'request', 'prompt'] as const satisfies Control[];

/** The controls with which a model chooses its tools. */
const SELECTING: readonly Control[] = ['activate', 'equip', 'toolsets', 'search'];

export const toolsetShape = {
  active_toolsets: toolList()
    .optional()
    .describe(
      'Patterns over exposed names (`*` any characters, `?` one), or categories of tools: the tools and resources that are active at the start. ' +
        'Default: none if a control such as `activate` is on, else all.',
    ),
  controls: z
    .union([z.array(choice(CONTROLS)), z.literal('auto', { error: 'expected "auto" or a list such as ["activate"]' })])
    .transform((controls): readonly Control[] => (controls === 'auto' ? [controls] : controls))
    .optional()
    .describe(
      'Built-in tools that let a model change what it sees: single tools (`activate`), one toolset at a time (`equip`), any number of toolsets (`toolsets`), or a search that finds and calls tools (`search`). `auto` shows up to 15 tools of at most 3,000 tokens directly, is `activate` for up to 60 tools, and `search` for more. ' +
        'Default: `["activate"]` in tools.toml, `["equip"]` in .mcp.json, else none. A tools.toml without `active_toolsets` and `toolsets` is searched above 60 tools, as with `auto`.',
    ),
  call_through: choice(['auto', 'always', 'never'] satisfies CallThrough[])
    .prefault('auto')
    .describe(
      'Which clients are offered `toolman_call`, which calls a tool that is missing from their list: those that do not list again after a change (`auto`), all, or none.',
    ),
  catalog: choice(['short', 'full'])
    .optional()
    .describe(
      '`short`: the description of `toolman_activate` and the instructions have at most 2,000 characters, servers first. ' +
        '`full`: every tool is in the description. Default: `full` for clients that are known to show it whole, else `short`.',
    ),
  mark_active: z
    .boolean({ error: 'expected true or false' })
    .prefault(true)
    .describe(
      'Whether the description of `toolman_activate` marks what is active. It then changes with each activation. `false` suits clients with a prompt cache: an activation only adds to the end of the list.',
    ),
  selection: choice(['own', 'shared'])
    .prefault('own')
    .describe('Whether each client has its own selection, or all clients share one.'),
  toolsets: z
    .record(z.string(), toolsetSchema, { error: 'expected a map of toolsets' })
    .optional()
    .describe('Toolsets by name, in addition to saved ones: named choices of tools to equip or enable.'),
};

export function resolveToolsets(
  { activeToolsets, controls, callThrough, catalog, markActive, selection, toolsets }: Section<typeof toolsetShape>,
  defaultControls: readonly Control[],
  { texts, add }: ResolveContext,
) {
  const other = controls?.includes('auto') === true ? controls.find((one) => SELECTING.includes(one)) : null;
  if (other) add(['controls'], `"auto" chooses what to show by itself. Leave it out, or leave "${other}" out`);
  return {
    activeToolsets: activeToolsets === null ? null : texts(['active_toolsets'], activeToolsets),
    controls: [...new Set(controls ?? defaultControls)],
    // A file that says nothing about what clients see.
    searchesMany:
      controls === null && activeToolsets === null && toolsets === null && defaultControls.includes('activate'),
    callThrough,
    catalog,
    markActive,
    selection,
    toolsets: Object.entries(toolsets ?? {}).map(
      ([name, { description, tools }]): ToolsetConfig => ({
        name,
        description,
        tools: tools.map((namespacedName) => ({ namespacedName })),
        toolNotes: [],
      }),
    ),
  };
}
