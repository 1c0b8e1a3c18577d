/** The options of both kinds of servers, and values derived from them. */
import { isObject, toObject } from '../base/objects.ts';
import { IDENTITY } from '../base/version.ts';
import type { ServerIdentity } from '../gateway/root.ts';
import type { CustomEndpointDefinition } from './endpoints.ts';
import { warn, wrongOptions } from './errors.ts';
import { unknownNames } from './exposure.ts';
import type { Logger } from './logger.ts';
import type { FastifyLike } from './serve.ts';
import type {
  Authenticate,
  ExposurePolicy,
  Mode,
  ModuleLoader,
  NameIn,
  PermissionConfig,
  SessionContextConfig,
  ToolSetCatalog,
} from './types.ts';

/** How a server is reached over HTTP. */
export interface HttpOptions {
  /**
   * Default: `127.0.0.1`. To make the server reachable from other machines, set another address, and set `authenticate`
   * to decide who may use it.
   */
  readonly host?: string;
  /** Default: 3000. 0 for any free port. */
  readonly port?: number;
  /** The prefix of all paths. Default: `/`. */
  readonly basePath?: string;
  /** Which web pages of other origins may use the server: true for all, or a list of origins. Default: none. */
  readonly cors?: boolean | readonly string[];
  /** The same as the option `logger` of the server, which counts if both are set. */
  readonly logger?: boolean | Logger;
  /** A Fastify instance to add the routes to. Then the server does not listen itself. */
  readonly app?: FastifyLike;
  readonly customEndpoints?: readonly CustomEndpointDefinition[];
  /**
   * The host names under which the server may be called, in addition to loopback; `'any'` if something else checks
   * them.
   */
  readonly allowedHosts?: readonly string[] | 'any';
}

/** How a server introduces itself. */
export interface ServerInfo extends ServerIdentity {
  /** Instructions for models on how to use its tools. */
  readonly instructions?: string;
}

/**
 * The options are generic only in the names that they use, so that the compiler refuses unknown options and names of
 * toolsets and loaders that do not exist. `Key` and `Loader` are the names that exist, `Named` and `Module` those that
 * are mentioned.
 */
interface CommonOptions<
  Server,
  Key extends string,
  Named extends string,
  Loader extends string,
  Module extends string,
> {
  /** The toolsets. */
  readonly catalog: ToolSetCatalog<Key, NameIn<NoInfer<Loader>, Module>>;
  /** The loaders of tools, by the names that toolsets list in `modules`. */
  readonly moduleLoaders?: { readonly [Name in Loader]: ModuleLoader };
  readonly exposurePolicy?: ExposurePolicy<NameIn<NoInfer<Key>, Named>>;
  /** Passed to loaders. */
  readonly context?: unknown;
  /** Whether there are meta-tools. Default: yes for `createMcpServer`, no for `createPermissionBasedMcpServer`. */
  readonly registerMetaTools?: boolean;
  readonly http?: HttpOptions;
  /**
   * Where events are logged. Default: what the program's own functions throw is written to standard error, with the
   * stack. `true` writes every event there, as lines of JSON; a logger gets every event; `false` logs nothing. Clients
   * never see a stack.
   */
  readonly logger?: boolean | Logger;
  /** How the server introduces itself. Default: like the server from `createServer`. */
  readonly serverInfo?: ServerInfo;
  /** Returns a server of the official SDK. Only its name, version and instructions are used. Called once. */
  readonly createServer?: () => Server;
  /** Served at `/.well-known/mcp-config`. */
  readonly configSchema?: object;
  readonly sessionContext?: SessionContextConfig;
  /** Determines who sends a request. Without it, the server trusts the id that a client sends. */
  readonly authenticate?: Authenticate;
  /**
   * How many clients are remembered after they disconnect, and for how many milliseconds. Default: 1,000 clients for an
   * hour.
   */
  readonly clients?: { readonly most?: number; readonly ttlMs?: number };
  /** Milliseconds that a call of a function may take without reporting progress. Default: five minutes. */
  readonly callTimeoutMs?: number;
  /** Settings of the gateway, as in its configuration file: `limits`, `policy`, `security`, `audit` and others. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** See `createMcpServer`. */
export interface CreateMcpServerOptions<
  Server = unknown,
  Key extends string = string,
  Named extends string = string,
  Loader extends string = string,
  Module extends string = string,
> extends CommonOptions<Server, Key, Named, Loader, Module> {
  /**
   * `DYNAMIC`: each client switches toolsets on and off. `STATIC`: all clients have the listed toolsets. Default:
   * `STATIC` if `toolsets` is set, otherwise `DYNAMIC`.
   */
  readonly startup?: {
    readonly mode?: Exclude<Mode, 'ALL'>;
    readonly toolsets?: readonly NameIn<NoInfer<Key>, Named>[] | 'ALL';
  };
}

/** See `createPermissionBasedMcpServer`. */
export interface CreatePermissionBasedMcpServerOptions<
  Server = unknown,
  Key extends string = string,
  Named extends string = string,
  Loader extends string = string,
  Module extends string = string,
> extends CommonOptions<Server, Key, Named, Loader, Module> {
  readonly permissions: PermissionConfig<NameIn<NoInfer<Key>, Named>>;
  /** Not allowed: `permissions` decides which toolsets a client has. */
  readonly startup?: never;
}

/** The toolsets that all clients have; null if each client switches its own. */
export function fixedToolsets({ startup = {}, catalog }: CreateMcpServerOptions): readonly string[] | null {
  const { mode, toolsets } = startup;
  if (mode !== undefined && mode !== 'DYNAMIC' && mode !== 'STATIC')
    throw wrongOptions('startup.mode must be "DYNAMIC" or "STATIC".');
  if (mode === 'DYNAMIC' && toolsets !== undefined)
    warn('startup.toolsets is ignored: in DYNAMIC mode, clients choose their toolsets.');
  if (mode === 'DYNAMIC' || (mode === undefined && toolsets === undefined)) return null;
  const keys = Object.keys(catalog ?? {});
  if (toolsets === 'ALL') return keys;
  if (toolsets === undefined) return [];
  if (!Array.isArray(toolsets)) throw wrongOptions('startup.toolsets must be "ALL" or a list of toolsets.');
  const unknown = unknownNames(toolsets, keys);
  if (unknown !== '') warn(`startup.toolsets names ${unknown}`);
  const known = keys.filter((key) => toolsets.includes(key));
  if (toolsets.length > 0 && known.length === 0)
    throw wrongOptions(`startup.toolsets names no existing toolset. Existing ones: ${keys.join(', ') || 'none'}.`);
  return known;
}

export function allowedOrigins(cors: HttpOptions['cors']): readonly string[] {
  if (cors === undefined || cors === false) return [];
  return cors === true ? ['*'] : cors;
}

/**
 * The introduction that clients get. `server` is what `createServer` returned. The SDK keeps its introduction in
 * private fields, so those are read.
 */
export function introductionOf(
  info: ServerInfo | undefined,
  server: unknown,
): { readonly identity: ServerIdentity; readonly instructions: string } {
  const outer = toObject(server);
  const fields = isObject(outer.server) ? outer.server : outer;
  const found = [fields._serverInfo, fields.serverInfo].find(isIdentity);
  const instructions = info?.instructions ?? fields._instructions;
  return {
    identity: info !== undefined ? withoutInstructions(info) : found === undefined ? IDENTITY : pickIdentity(found),
    instructions: typeof instructions === 'string' ? instructions.trim() : '',
  };
}

function withoutInstructions({ instructions: _, ...identity }: ServerInfo): ServerIdentity {
  return identity;
}

function isIdentity(value: unknown): value is ServerIdentity {
  return isObject(value) && typeof value.name === 'string' && typeof value.version === 'string';
}

function pickIdentity({ name, version, title }: ServerIdentity): ServerIdentity {
  return { name, version, ...(title !== undefined && { title }) };
}
