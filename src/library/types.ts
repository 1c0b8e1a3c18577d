/** How a program describes its toolsets and their clients. */
import type { PromptDefinition } from '../tools/define-prompt.ts';
import type { ResourceDefinition } from '../tools/define-resource.ts';
import type { McpToolDefinition, ToolDefinition } from '../tools/define-tool.ts';

/** A tool of a toolset, with `execute` or with `handler`. */
// biome-ignore lint/suspicious/noExplicitAny: with any schemas
export type AnyTool = McpToolDefinition | ToolDefinition<any, any>;

/**
 * A name that is one of `Known`. A text that is known only when the program runs is accepted too, because it may come
 * from a file or the environment; the server checks it.
 */
export type NameIn<Known extends string, Given extends string> = string extends Given
  ? Given
  : string extends Known
    ? Given
    : NoInfer<Known>;

/** Anything that a toolset may have. */
// biome-ignore lint/suspicious/noExplicitAny: with any arguments
type AnyItem = AnyTool | PromptDefinition<any> | ResourceDefinition;

/** A group of tools that is switched on and off together. */
export interface ToolSetDefinition<Module extends string = string> {
  /** The name that people see. */
  readonly name: string;
  /** Tells models what the toolset is for. */
  readonly description: string;
  /** Tools that need no loading. */
  readonly tools?: readonly AnyTool[];
  /** Prompts and resources that are there while the toolset is switched on. Each has a `name`. */
  // biome-ignore lint/suspicious/noExplicitAny: with any arguments
  readonly prompts?: readonly PromptDefinition<any>[];
  readonly resources?: readonly ResourceDefinition[];
  /** The loaders that provide more tools when the toolset is switched on. */
  readonly modules?: readonly Module[];
  /** Tells models when to choose it. */
  readonly decisionCriteria?: string;
}

/** Toolsets by key. With `namespaceToolsWithSetKey` the names of their tools begin with the key. */
export type ToolSetCatalog<Key extends string = string, Module extends string = string> = {
  readonly [Name in Key]: ToolSetDefinition<Module>;
};

/** The tools of a server or a folder, for a loader to return. */
export interface ToolSource {
  readonly kind: 'server' | 'folder';
  readonly words: Readonly<Record<string, unknown>>;
}

/** What a loader returns. */
export type LoadedTools = ToolSource | readonly (AnyItem | ToolSource)[];

/** Provides tools when a toolset is switched on. Called once for each context, and again after a failure. */
// biome-ignore lint/suspicious/noExplicitAny: the program decides what its context is
export type ModuleLoader = (context?: any) => LoadedTools | Promise<LoadedTools>;

/** Whether clients switch toolsets, all clients have the same, or all have everything. */
export type Mode = 'DYNAMIC' | 'STATIC' | 'ALL';

/** Which toolsets may be switched on, how many, and how their tools are named. */
export interface ExposurePolicy<Toolset extends string = string> {
  /** How many toolsets a client may have switched on at a time. */
  readonly maxActiveToolsets?: number;
  /** Whether tools are named `set.tool`. Default: true. */
  readonly namespaceToolsWithSetKey?: boolean;
  /** The only toolsets that may be switched on. */
  readonly allowlist?: readonly Toolset[];
  /** Toolsets that may not be switched on. */
  readonly denylist?: readonly Toolset[];
  /** Called when a client wants more than `maxActiveToolsets`. */
  onLimitExceeded?(attempted: string[], active: string[]): void;
}

/** Which toolsets a client gets. */
export interface PermissionConfig<Toolset extends string = string> {
  /**
   * `headers`: a header of each request names them. Use that only behind a proxy that sets the header. `config`: the
   * program decides.
   */
  readonly source: 'headers' | 'config';
  /** Default: `mcp-toolset-permissions`. */
  readonly headerName?: string;
  /** By client id. */
  readonly staticMap?: Readonly<Record<string, readonly Toolset[]>>;
  /**
   * Asked before `staticMap`, if the source is `config`. Return nothing for an unknown client. If it fails, the client
   * gets no toolsets.
   */
  resolver?(clientId: string): MaybePromise<readonly string[] | null | undefined>;
  /** For clients that are unknown to `resolver` and `staticMap`. Default: none. */
  readonly defaultPermissions?: readonly Toolset[];
  /** Milliseconds until `resolver` is asked again for a client. Default: a minute. */
  readonly refreshMs?: number;
}

export type MaybePromise<T> = T | Promise<T>;

/** The context for loaders that clients may send in the URL. */
export interface SessionContextConfig {
  readonly enabled?: boolean;
  readonly queryParam?: {
    /** Default: `config`. */
    readonly name?: string;
    /** Default: `base64`. */
    readonly encoding?: 'base64' | 'json';
    /** The only keys that are used. */
    readonly allowedKeys?: readonly string[];
  };
  /** Creates the context of a client, instead of merging. Called once for each client. */
  contextResolver?(
    request: SessionRequestContext,
    baseContext: unknown,
    parsedQueryConfig?: Record<string, unknown>,
  ): unknown;
  /** How the client's values are merged into the program's `context`. Default: `shallow`. */
  readonly merge?: 'shallow' | 'deep';
}

/** The first request of a client, for `contextResolver`. */
export interface SessionRequestContext {
  readonly clientId: string;
  readonly headers: Record<string, string>;
  readonly query: Record<string, string>;
}

/** A client that `authenticate` recognized. */
export interface AuthenticatedClient {
  readonly clientId: string;
  /** The toolsets that the client gets, instead of those from `permissions`. Not for `createMcpServer`. */
  readonly toolsets?: readonly string[];
  /** When this expires, in milliseconds since 1970. */
  readonly expires?: number;
}

/** The parts of a request that identify its sender. */
export interface ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Determines who sends a request. Returns null or nothing for an unknown sender. */
export type Authenticate = (request: ClientRequest) => MaybePromise<AuthenticatedClient | null | undefined>;
