/** The options of both servers, and what they have in common. */
import type { CustomEndpointDefinition } from './endpoints.ts';
import type { Logger } from './logger.ts';
import type { FastifyLike } from './serve.ts';
import type { ServerInfo } from './server-info.ts';
import type {
  Authenticate,
  ExposurePolicy,
  Mode,
  ModuleLoader,
  PermissionConfig,
  SessionContextConfig,
  ToolSetCatalog,
} from './types.ts';

/** Where a server is reached over HTTP. */
export interface HttpOptions {
  /** Default: `127.0.0.1`. Name another to be reached from elsewhere, and say by `authenticate` who may come. */
  readonly host?: string;
  /** Default: 3000; 0 for any that is free. */
  readonly port?: number;
  /** What stands before all paths. Default: `/`. */
  readonly basePath?: string;
  /** Which pages of browsers may come from elsewhere: all, or those of these origins. Default: none. */
  readonly cors?: boolean | readonly string[];
  /** Whether what happens is written down, as lines of JSON on standard error, or by a logger of the program. Default: no. */
  readonly logger?: boolean | Logger;
  /** A Fastify instance to add the routes to. Then nothing listens by itself. */
  readonly app?: FastifyLike;
  readonly customEndpoints?: readonly CustomEndpointDefinition[];
  /** The names by which the server may be called, beside loopback; "any" where something else looks at that. */
  readonly allowedHosts?: readonly string[] | 'any';
}

interface CommonOptions {
  /** The toolsets that there are. */
  readonly catalog: ToolSetCatalog;
  /** What brings tools when they are wanted, by the names that `modules` of a toolset gives. */
  readonly moduleLoaders?: Readonly<Record<string, ModuleLoader>>;
  readonly exposurePolicy?: ExposurePolicy;
  /** What loaders are told. */
  readonly context?: unknown;
  /** Whether there are meta-tools. Default: yes, but none where permissions decide. */
  readonly registerMetaTools?: boolean;
  readonly http?: HttpOptions;
  /** Who the server says it is. Default: what a server of `createServer` knows. */
  readonly serverInfo?: ServerInfo;
  /** A server of the official SDK, asked once for its name, version and instructions. Nothing else of it is used. */
  readonly createServer?: () => unknown;
  /** What stands at `/.well-known/mcp-config`. */
  readonly configSchema?: object;
  readonly sessionContext?: SessionContextConfig;
  /** Says who sends a request. Without it a client is who it says it is. */
  readonly authenticate?: Authenticate;
  /** How many clients are remembered, and for how many milliseconds after they went. Default: 1,000, and an hour. */
  readonly clients?: { readonly most?: number; readonly ttlMs?: number };
  /** Milliseconds that a call of a function may take without a sign of life. Default: five minutes. */
  readonly callTimeoutMs?: number;
  /** Settings of the gateway inside, in the words of its configuration: `limits`, `policy`, `security`, `audit` and others. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** See `createMcpServer`. */
export interface CreateMcpServerOptions extends CommonOptions {
  /** `DYNAMIC`: each client switches toolsets on and off. `STATIC`: all have these. Default: `STATIC` where `toolsets` are named. */
  readonly startup?: { readonly mode?: Exclude<Mode, 'ALL'>; readonly toolsets?: readonly string[] | 'ALL' };
}

/** See `createPermissionBasedMcpServer`. */
export interface CreatePermissionBasedMcpServerOptions extends CommonOptions {
  readonly permissions: PermissionConfig;
  /** Which toolsets a client has is what `permissions` says. */
  readonly startup?: never;
}
