/** The tools with which a model finds toolsets and switches them on and off for its client. */

import { type GatewayError, toGatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import type { Caller } from '../calls/caller.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { readArguments } from '../controls/arguments.ts';
import type { ProgramControl } from '../controls/control.ts';
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
  description: 'Lists the names of all tools that can be called now, in one list and by toolset.',
  inputSchema: NOTHING,
  annotations: READS,
};

const SWITCHING = [
  {
    name: 'list_toolsets',
    title: 'List toolsets',
    description: 'Lists all toolsets: what each is for, whether it is enabled, and the tools of the enabled ones.',
    inputSchema: NOTHING,
    annotations: READS,
  },
  {
    name: 'enable_toolset',
    title: 'Enable a toolset',
    description: 'Enables a toolset: its tools are added to the list and can be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'disable_toolset',
    title: 'Disable a toolset',
    description: 'Disables a toolset: its tools are removed from the list and can no longer be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'describe_toolset',
    title: 'Describe a toolset',
    description: 'Says what a toolset is for, whether it is enabled, and if so, its tools.',
    inputSchema: NAME,
    annotations: READS,
  },
] as const;

/** What the meta-tools act on. */
export interface MetaToolTarget {
  readonly keys: readonly string[];
  find(name: unknown): { readonly key: string; readonly definition: ToolSetDefinition };
  /** Whether callers may switch the toolset. */
  isOffered(key: string): boolean;
  /** The names of the tools that the caller has, by toolset. */
  toolsOf(caller: Caller): ReadonlyMap<string, readonly string[]>;
  isActive(caller: Caller, key: string): boolean;
  enable(caller: Caller, key: string): Promise<void>;
  disable(caller: Caller, key: string): Promise<void>;
}

/** `switches`: whether clients switch toolsets. If not, they can only list their tools. */
export function createMetaTools(target: MetaToolTarget, switches: boolean): ProgramControl {
  const definitions = switches ? [LIST_TOOLS, ...SWITCHING] : [LIST_TOOLS];
  const entries: readonly Entry[] = definitions.map(builtInEntry);

  function describe(caller: Caller, key: string, definition: ToolSetDefinition) {
    const { name, description, modules = [], decisionCriteria } = definition;
    return {
      key,
      active: target.isActive(caller, key),
      definition: { name, description, modules, decisionCriteria },
      tools: target.toolsOf(caller).get(key) ?? [],
    };
  }

  function toolsetNamedBy(args: unknown) {
    const found = target.find(readArguments(args, ['name']).name);
    if (!target.isOffered(found.key))
      throw new ToolingError('E_VALIDATION', `The toolset "${found.key}" is not allowed here.`);
    return found;
  }

  const runs: Readonly<Record<string, (caller: Caller, args: unknown) => object | Promise<object>>> = {
    list_tools(caller, args) {
      readArguments(args, []);
      const byToolset = target.toolsOf(caller);
      return { tools: [...byToolset.values()].flat(), toolsetToTools: Object.fromEntries(byToolset) };
    },
    list_toolsets(caller, args) {
      readArguments(args, []);
      const offered = target.keys.filter(target.isOffered);
      return { toolsets: offered.map((key) => describe(caller, key, target.find(key).definition)) };
    },
    describe_toolset(caller, args) {
      const { key, definition } = toolsetNamedBy(args);
      return describe(caller, key, definition);
    },
    async enable_toolset(caller, args) {
      const { key } = toolsetNamedBy(args);
      const wasActive = target.isActive(caller, key);
      await target.enable(caller, key);
      const tools = target.toolsOf(caller).get(key) ?? [];
      const message = wasActive
        ? `The toolset "${key}" is already enabled.`
        : `Enabled the toolset "${key}": ${counted(tools.length, 'tool')}.`;
      return { success: true, message, tools };
    },
    async disable_toolset(caller, args) {
      const { key } = toolsetNamedBy(args);
      const wasActive = target.isActive(caller, key);
      await target.disable(caller, key);
      const message = wasActive
        ? `Disabled the toolset "${key}": its tools are removed.`
        : `The toolset "${key}" is not enabled.`;
      return { success: true, message };
    },
  };

  return {
    entries,
    hint(name) {
      const key = switches ? target.keys.find((one) => name.startsWith(`${one}.`) && target.isOffered(one)) : undefined;
      return key === undefined ? '' : ` If it belongs to the toolset "${key}", call enable_toolset first.`;
    },
    async run(caller, name, args) {
      try {
        return resultOf(await runs[name]!(caller, args), false);
      } catch (error) {
        const known = toGatewayError(error);
        if (known.code === 'internal') throw error;
        return resultOf(failure(name, known), true);
      }
    },
  };
}

/** The message is for models, the code for programs. */
function failure(name: string, error: GatewayError): object {
  const code = error instanceof ToolingError ? error.reason : 'E_VALIDATION';
  const { message } = error;
  if (name === 'describe_toolset') return { error: message, code };
  return { success: false, message, code };
}

function resultOf(value: object, isError: boolean): Buffer {
  const text = JSON.stringify(value);
  return toBytes({ content: [{ type: 'text', text }], structuredContent: value, ...(isError && { isError }) });
}
