/** Runs the tools with which a model finds toolsets of a program and switches them on and off for its client. */
import { type GatewayError, toGatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import type { Caller } from '../calls/caller.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { readArguments } from '../controls/arguments.ts';
import type { ProgramControl } from '../controls/control.ts';
import { LIST_TOOLS, SWITCHING_TOOLS } from '../controls/toolset-tools.ts';
import { toBytes } from '../protocol/json.ts';
import { ToolingError } from './errors.ts';
import type { ToolSetDefinition } from './types.ts';

/** What the meta-tools act on. */
export interface MetaToolTarget {
  readonly keys: readonly string[];
  /** Throws an `E_VALIDATION` if callers are offered no toolset of that name. */
  find(name: unknown): { readonly key: string; readonly definition: ToolSetDefinition };
  /** Whether callers may switch the toolset. */
  isOffered(key: string): boolean;
  /** The names of the tools that the caller has, by toolset. */
  toolsOf(caller: Caller): ReadonlyMap<string, readonly string[]>;
  isActive(caller: Caller, key: string): boolean;
  /** The names of the tools of a toolset, enabled or not, as far as they are known and allowed. */
  toolsIn(caller: Caller, key: string): Promise<readonly string[]>;
  /** Runs the loaders of a toolset, so that its tools are known. Rejects if one fails. */
  load(caller: Caller, key: string): Promise<void>;
  enable(caller: Caller, key: string): Promise<void>;
  disable(caller: Caller, key: string): Promise<void>;
}

/** `switches`: whether clients switch toolsets. If not, they can only list their tools. */
export function createMetaTools(target: MetaToolTarget, switches: boolean): ProgramControl {
  const definitions = switches ? [LIST_TOOLS, ...SWITCHING_TOOLS] : [LIST_TOOLS];
  const entries: readonly Entry[] = definitions.map(builtInEntry);

  async function describe(caller: Caller, key: string, definition: ToolSetDefinition) {
    const { name, description, modules = [], decisionCriteria } = definition;
    return {
      key,
      active: target.isActive(caller, key),
      definition: { name, description, modules, decisionCriteria },
      tools: await target.toolsIn(caller, key),
    };
  }

  function toolsetNamedBy(args: unknown) {
    return target.find(readArguments(args, ['name']).name);
  }

  const runs: Readonly<Record<string, (caller: Caller, args: unknown) => object | Promise<object>>> = {
    list_tools(caller, args) {
      readArguments(args, []);
      const byToolset = target.toolsOf(caller);
      return { tools: [...byToolset.values()].flat(), toolsetToTools: Object.fromEntries(byToolset) };
    },
    async list_toolsets(caller, args) {
      readArguments(args, []);
      const offered = target.keys.filter(target.isOffered);
      const all = offered.map((key) => describe(caller, key, target.find(key).definition));
      return { toolsets: await Promise.all(all) };
    },
    async describe_toolset(caller, args) {
      const { key, definition } = toolsetNamedBy(args);
      const problem = await problemOf(target.load(caller, key));
      return { ...(await describe(caller, key, definition)), ...(problem !== null && { problem }) };
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

/** Why the tools of a toolset cannot all be told; null if they can. */
async function problemOf(loading: Promise<void>): Promise<string | null> {
  try {
    await loading;
    return null;
  } catch (error) {
    if (error instanceof ToolingError) return error.message;
    throw error;
  }
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
