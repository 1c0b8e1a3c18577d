/** What a program says of its toolsets, and of whom they are for. */
import type { McpToolDefinition, ToolDefinition } from '../tools/define-tool.ts';

/** A tool of a toolset: with `execute`, or with `handler`. */
// biome-ignore lint/suspicious/noExplicitAny: any of them
export type AnyTool = McpToolDefinition | ToolDefinition<any, any>;

/** A group of tools that is switched on and off as one. */
export interface ToolSetDefinition {
  /** For people. */
  readonly name: string;
  /** What it is for, for models. */
  readonly description: string;
  /** Its tools, as far as they are there from the beginning. */
  readonly tools?: readonly AnyTool[];
  /** The loaders that bring the others when it is switched on. */
  readonly modules?: readonly string[];
  /** When a model should choose it. */
  readonly decisionCriteria?: string;
}

/** Toolsets by key. With `namespaceToolsWithSetKey` the key stands before the names of their tools. */
export type ToolSetCatalog = Readonly<Record<string, ToolSetDefinition>>;

/** Tools of another server, or of a folder, as a loader may give them. */
export interface ToolSource {
  readonly kind: 'server' | 'folder';
  readonly words: Readonly<Record<string, unknown>>;
}

/** What a loader brings. */
export type LoadedTools = ToolSource | readonly (AnyTool | ToolSource)[];

/** Brings tools when a toolset is switched on. It is asked once for each context, and again after it failed. */
// biome-ignore lint/suspicious/noExplicitAny: the context is the program's own
export type ModuleLoader = (context?: any) => LoadedTools | Promise<LoadedTools>;

/** Whether clients switch toolsets, all have the same, or everything is there. */
export type Mode = 'DYNAMIC' | 'STATIC' | 'ALL';

/** Which toolsets may be switched on, how many, and how their tools are called. */
export interface ExposurePolicy {
  /** How many toolsets a client may have switched on. */
  readonly maxActiveToolsets?: number;
  /** Whether tools are called `set.tool`; true unless it is said. */
  readonly namespaceToolsWithSetKey?: boolean;
  /** The only toolsets that may be switched on. */
  readonly allowlist?: readonly string[];
  /** Toolsets that may not. */
  readonly denylist?: readonly string[];
  /** Called when a client wants more than `maxActiveToolsets`. */
  onLimitExceeded?(attempted: string[], active: string[]): void;
}

/** Which toolsets a client gets. */
export interface PermissionConfig {
  /** Whether a header of each request names them, or the program says it. A header is for servers behind a proxy that sets it. */
  readonly source: 'headers' | 'config';
  /** Default: `mcp-toolset-permissions`. */
  readonly headerName?: string;
  /** By client id. */
  readonly staticMap?: Readonly<Record<string, readonly string[]>>;
  /** Asked before `staticMap`, and only there. Nothing or null: it knows nothing of the client. Where it fails the client gets nothing. */
  resolver?(clientId: string): MaybePromise<readonly string[] | null | undefined>;
  /** For clients of which neither knows anything. Default: none. */
  readonly defaultPermissions?: readonly string[];
  /** Milliseconds until `resolver` is asked again for a client. Default: a minute. */
  readonly refreshMs?: number;
}

export type MaybePromise<T> = T | Promise<T>;

/** What each client may say beside its id, for loaders to know. */
export interface SessionContextConfig {
  readonly enabled?: boolean;
  readonly queryParam?: {
    /** Default: `config`. */
    readonly name?: string;
    /** Default: `base64`. */
    readonly encoding?: 'base64' | 'json';
    /** The only keys that are taken over. */
    readonly allowedKeys?: readonly string[];
  };
  /** Makes the context of a client, instead of merging. Asked once for each client. */
  contextResolver?(
    request: SessionRequestContext,
    baseContext: unknown,
    parsedQueryConfig?: Record<string, unknown>,
  ): unknown;
  /** How what a client says is put into the `context` of all. Default: `shallow`. */
  readonly merge?: 'shallow' | 'deep';
}

/** The first request of a client, for `contextResolver`. */
export interface SessionRequestContext {
  readonly clientId: string;
  readonly headers: Record<string, string>;
  readonly query: Record<string, string>;
}

/** Who somebody is that `authenticate` knows. */
export interface AuthenticatedClient {
  readonly clientId: string;
  /** The toolsets that it gets, instead of what `permissions` says. Not for `createMcpServer`. */
  readonly toolsets?: readonly string[];
  /** Until when it is let in, in milliseconds since 1970. */
  readonly expires?: number;
}

/** A request, as far as it says who sends it. */
export interface ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Says who sends a request; null, or nothing, for nobody. */
export type Authenticate = (request: ClientRequest) => MaybePromise<AuthenticatedClient | null | undefined>;
