/** The tools by which a model finds toolsets and switches them on and off for itself. */

import { type GatewayError, toGatewayError } from '../base/errors.ts';
import type { Caller } from '../calls/caller.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { readArguments } from '../controls/arguments.ts';
import type { ProgramControl } from '../controls/program-control.ts';
import { toBytes } from '../protocol/json.ts';
import { ToolingError } from './errors.ts';
import type { ToolSetDefinition } from './types.ts';

const NOTHING = { type: 'object', properties: {}, additionalProperties: false } as const;
const NAME = {
  type: 'object',
  properties: { name: { type: 'string', description: 'The key of the toolset.' } },
  required: ['name'],
  additionalProperties: false,
} as const;
const READS = { readOnlyHint: true, idempotentHint: true, openWorldHint: false } as const;
const SWITCHES = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

const LIST_TOOLS = {
  name: 'list_tools',
  title: 'List tools',
  description: 'Lists the names of the tools that can be called now, all together and by toolset.',
  inputSchema: NOTHING,
  annotations: READS,
};

const SWITCHING = [
  {
    name: 'list_toolsets',
    title: 'List toolsets',
    description: 'Lists all toolsets: what each is for, whether it is enabled, and which tools it brings then.',
    inputSchema: NOTHING,
    annotations: READS,
  },
  {
    name: 'enable_toolset',
    title: 'Enable a toolset',
    description: 'Enables a toolset: its tools are in the list from then on and can be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'disable_toolset',
    title: 'Disable a toolset',
    description: 'Disables a toolset: its tools are gone from the list and can no longer be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'describe_toolset',
    title: 'Describe a toolset',
    description: 'Says what a toolset is for, whether it is enabled, and which tools it brings.',
    inputSchema: NAME,
    annotations: READS,
  },
] as const;

/** What the tools do, for whoever calls. */
export interface MetaToolTarget {
  readonly keys: readonly string[];
  find(name: unknown): { readonly key: string; readonly definition: ToolSetDefinition };
  /** Those that the caller may switch. */
  isOffered(key: string): boolean;
  /** The names of the tools that the caller has, by the toolset that they are of. */
  toolsOf(caller: Caller): ReadonlyMap<string, readonly string[]>;
  isActive(caller: Caller, key: string): boolean;
  enable(caller: Caller, key: string): Promise<void>;
  disable(caller: Caller, key: string): Promise<void>;
}

export function createMetaTools(desk: MetaToolTarget, switches: boolean): ProgramControl {
  const definitions = switches ? [LIST_TOOLS, ...SWITCHING] : [LIST_TOOLS];
  const entries: readonly Entry[] = definitions.map(builtInEntry);

  function describe(caller: Caller, key: string, definition: ToolSetDefinition) {
    const { name, description, modules = [], decisionCriteria } = definition;
    return {
      key,
      active: desk.isActive(caller, key),
      definition: { name, description, modules, decisionCriteria },
      tools: desk.toolsOf(caller).get(key) ?? [],
    };
  }

  function named(args: unknown) {
    const found = desk.find(readArguments(args, ['name']).name);
    if (!desk.isOffered(found.key))
      throw new ToolingError('E_VALIDATION', `The toolset "${found.key}" is not allowed here.`);
    return found;
  }

  const runs: Readonly<Record<string, (caller: Caller, args: unknown) => object | Promise<object>>> = {
    list_tools(caller, args) {
      readArguments(args, []);
      const byToolset = desk.toolsOf(caller);
      return { tools: [...byToolset.values()].flat(), toolsetToTools: Object.fromEntries(byToolset) };
    },
    list_toolsets(caller, args) {
      readArguments(args, []);
      const offered = desk.keys.filter(desk.isOffered);
      return { toolsets: offered.map((key) => describe(caller, key, desk.find(key).definition)) };
    },
    describe_toolset(caller, args) {
      const { key, definition } = named(args);
      return describe(caller, key, definition);
    },
    async enable_toolset(caller, args) {
      const { key } = named(args);
      const wasActive = desk.isActive(caller, key);
      await desk.enable(caller, key);
      const tools = desk.toolsOf(caller).get(key) ?? [];
      const message = wasActive
        ? `The toolset "${key}" is enabled already.`
        : `Enabled the toolset "${key}": ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}.`;
      return { success: true, message, tools };
    },
    async disable_toolset(caller, args) {
      const { key } = named(args);
      const wasActive = desk.isActive(caller, key);
      await desk.disable(caller, key);
      const message = wasActive
        ? `Disabled the toolset "${key}": its tools are gone.`
        : `The toolset "${key}" is not enabled.`;
      return { success: true, message };
    },
  };

  return {
    entries,
    hint(name) {
      const key = switches ? desk.keys.find((one) => name.startsWith(`${one}.`) && desk.isOffered(one)) : undefined;
      return key === undefined ? '' : ` If it is of the toolset "${key}", enable that first: call enable_toolset.`;
    },
    async run(caller, name, args) {
      try {
        return said(await runs[name]!(caller, args), false);
      } catch (error) {
        const known = toGatewayError(error);
        if (known.code === 'internal') throw error;
        return said(failure(name, known), true);
      }
    },
  };
}

/** What a model reads of it, and a program. */
function failure(name: string, error: GatewayError): object {
  const code = error instanceof ToolingError ? error.reason : 'E_VALIDATION';
  const { message } = error;
  if (name === 'describe_toolset') return { error: message, code };
  return { success: false, message, code };
}

function said(value: object, isError: boolean): Buffer {
  const text = JSON.stringify(value);
  return toBytes({ content: [{ type: 'text', text }], structuredContent: value, ...(isError && { isError }) });
}
