/** Calls and lists for the program around a gateway, as values: it need not be anybody's client. */
import type { Kind } from '../catalog/item.ts';
import { type LocalCallOptions, type LocalDoor, type LocalGateway, openLocalDoor } from './local.ts';

/** As whom a program asks. */
export interface Asking {
  /** An agent, with what its policy allows. Absent: the operator, whom policies do not hold. */
  readonly agent?: string;
}

/** As whom a program calls, and what a call may have beside its arguments. */
export interface ProgramCallOptions extends Asking, LocalCallOptions {}

/** A part of what a tool answers. */
export type ContentBlock = (
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: ResourceContents }
) & { readonly annotations?: Readonly<Record<string, unknown>>; readonly _meta?: Readonly<Record<string, unknown>> };

/** What is in a resource. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  /** In base64. */
  readonly blob?: string;
}

/** What a tool answers. A tool that could not do what it should says so by `isError`; nothing is thrown for that. */
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

/** A tool as it is listed. */
export interface SeenTool extends SeenItem {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A resource as it is listed. */
export interface SeenResource extends SeenItem {
  readonly name: string;
  readonly uri: string;
  readonly mimeType?: string;
}

/** A resource template as it is listed. */
export interface SeenTemplate extends SeenItem {
  readonly name: string;
  readonly uriTemplate: string;
  readonly mimeType?: string;
}

/** A prompt as it is listed. */
export interface SeenPrompt extends SeenItem {
  readonly name: string;
  readonly arguments?: readonly { readonly name: string; readonly description?: string; readonly required?: boolean }[];
}

/** Everything that somebody may use, as it is listed: active or not. */
export interface Seen {
  readonly tools: readonly SeenTool[];
  readonly resources: readonly SeenResource[];
  readonly resourceTemplates: readonly SeenTemplate[];
  readonly prompts: readonly SeenPrompt[];
}

/** What the program around a gateway asks for. */
export interface ProgramCalls {
  /**
   * Calls a tool, with everything that holds for a call: policies of the agent, limits, middleware, the audit. Rejects with
   * a `GatewayError` where Toolgate refuses or the server cannot be reached, and with a `RelayedError` for an error that the
   * server answered with.
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
   * What an agent may use, or all there is. Waits for servers that are starting, as long as `start_wait` says.
   *
   * @example
   * const { tools } = await gateway.view({ agent: 'writer' });
   */
  view(asking?: Asking): Promise<Seen>;
}

/** Agents that are remembered between two calls. */
const MOST = 1_000;

interface Regular {
  readonly door: LocalDoor;
  running: number;
}

export function createProgramCalls(gateway: LocalGateway): ProgramCalls {
  const sessionless = new Map<string | null, Regular>();

  function regularOf({ agent = null }: { readonly agent?: string | null }): Regular {
    const known = sessionless.get(agent);
    if (known !== undefined) return known;
    if (sessionless.size >= MOST) makeRoom();
    const regular = { door: openLocalDoor(gateway, 'all', agent), running: 0 };
    sessionless.set(agent, regular);
    return regular;
  }

  function makeRoom(): void {
    for (const [agent, { door, running }] of sessionless) {
      if (running > 0) continue;
      sessionless.delete(agent);
      door.close();
      return;
    }
  }

  return {
    async call<Structured>(name: string, args = {}, options: ProgramCallOptions = {}) {
      const regular = regularOf(options);
      regular.running++;
      try {
        const bytes = await regular.door.callTool(name, args, options);
        return JSON.parse(bytes.toString()) as ToolCallResult<Structured>;
      } finally {
        regular.running--;
      }
    },
    async view(asking = {}) {
      const { door } = regularOf(asking);
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

/** Gives a gateway that is otherwise whole its desk. */
export function withProgramCalls<G extends ProgramCalls>(rest: Omit<G, keyof ProgramCalls> & LocalGateway): G {
  return Object.assign(rest, createProgramCalls(rest)) as unknown as G;
}
