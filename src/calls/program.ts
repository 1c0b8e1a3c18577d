/** Calls and lists for the program that embeds a gateway, as plain values. The program does not need an MCP client. */
import type { Kind } from '../catalog/item.ts';
import { type LocalCallOptions, type LocalDoor, type LocalGateway, openLocalDoor } from './local.ts';

/** The identity that a program uses. */
export interface Asking {
  /** An agent, restricted by its policy. Absent: the operator, who is exempt from policies. */
  readonly agent?: string;
}

/** The identity that a program calls with, and the options of the call. */
export interface ProgramCallOptions extends Asking, LocalCallOptions {}

/** One block of a tool's result. */
export type ContentBlock = (
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: ResourceContents }
) & { readonly annotations?: Readonly<Record<string, unknown>>; readonly _meta?: Readonly<Record<string, unknown>> };

/** The contents of a resource. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  /** In base64. */
  readonly blob?: string;
}

/** The result of a tool. A tool that fails sets `isError`; that does not throw. */
export interface ToolCallResult<Structured = Readonly<Record<string, unknown>>> {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: Structured;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

interface SeenItem {
  readonly title?: string;
  readonly description?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A tool as listed. */
export interface SeenTool extends SeenItem {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A resource as listed. */
export interface SeenResource extends SeenItem {
  readonly name: string;
  readonly uri: string;
  readonly mimeType?: string;
}

/** A resource template as listed. */
export interface SeenTemplate extends SeenItem {
  readonly name: string;
  readonly uriTemplate: string;
  readonly mimeType?: string;
}

/** A prompt as listed. */
export interface SeenPrompt extends SeenItem {
  readonly name: string;
  readonly arguments?: readonly { readonly name: string; readonly description?: string; readonly required?: boolean }[];
}

/** Everything that the agent or operator may use, as listed, whether active or not. */
export interface Seen {
  readonly tools: readonly SeenTool[];
  readonly resources: readonly SeenResource[];
  readonly resourceTemplates: readonly SeenTemplate[];
  readonly prompts: readonly SeenPrompt[];
}

/** The calls that the program around a gateway can make. */
export interface ProgramCalls {
  /**
   * Calls a tool. Everything that applies to calls applies here too: the agent's policy, limits, middleware and the
   * audit. Rejects with a `GatewayError` if Toolgate refuses or the server cannot be reached, and with a `RelayedError`
   * if the server answers with an error.
   *
   * @example
   * const { content, isError } = await gateway.call('files_read_file', { path: 'notes.txt' }, { agent: 'writer' });
   */
  call<Structured = Readonly<Record<string, unknown>>>(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: ProgramCallOptions,
  ): Promise<ToolCallResult<Structured>>;
  /**
   * Returns what an agent may use, or everything. Waits for servers that are starting, for at most `start_wait`.
   *
   * @example
   * const { tools } = await gateway.view({ agent: 'writer' });
   */
  view(asking?: Asking): Promise<Seen>;
}

/** The maximum number of agents whose door stays open between calls. */
const MOST = 1_000;

interface AgentDoor {
  readonly door: LocalDoor;
  running: number;
}

export function createProgramCalls(gateway: LocalGateway): ProgramCalls {
  const agentDoors = new Map<string | null, AgentDoor>();

  function doorOf({ agent = null }: { readonly agent?: string | null }): AgentDoor {
    const known = agentDoors.get(agent);
    if (known !== undefined) return known;
    if (agentDoors.size >= MOST) makeRoom();
    const agentDoor = { door: openLocalDoor(gateway, 'all', agent), running: 0 };
    agentDoors.set(agent, agentDoor);
    return agentDoor;
  }

  function makeRoom(): void {
    for (const [agent, { door, running }] of agentDoors) {
      if (running > 0) continue;
      agentDoors.delete(agent);
      door.close();
      return;
    }
  }

  return {
    async call<Structured>(name: string, args = {}, options: ProgramCallOptions = {}) {
      const agentDoor = doorOf(options);
      agentDoor.running++;
      try {
        const bytes = await agentDoor.door.callTool(name, args, options);
        return JSON.parse(bytes.toString()) as ToolCallResult<Structured>;
      } finally {
        agentDoor.running--;
      }
    },
    async view(asking = {}) {
      const { door } = doorOf(asking);
      const list = async <T>(kind: Kind) => (await door.list(kind)) as readonly T[];
      return {
        tools: await list<SeenTool>('tool'),
        resources: await list<SeenResource>('resource'),
        resourceTemplates: await list<SeenTemplate>('template'),
        prompts: await list<SeenPrompt>('prompt'),
      };
    },
  };
}
